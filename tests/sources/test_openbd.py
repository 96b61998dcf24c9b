"""Is openBD's answer read as its rules say?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Outcome, Reply
from catalog_fallback.sources.openbd import OpenBDSource
from tests.loopback import Loopback, ok
from tests.sources.contract import SourceContract, json_reply

ASKED = "9784063879179"
OTHER = "9784535585744"


def source(url: str | None = None) -> OpenBDSource:
    """Return the source, with its own URL or another."""
    return OpenBDSource(SourceConfig("openbd", url=url, contact="mail@example.com"))


def onix(**values: Any) -> dict[str, Any]:
    """Return the ONIX part of a record."""
    title = {"TitleElement": {"TitleText": {"content": values.pop("title", "茶")}}}
    return {"DescriptiveDetail": {"TitleDetail": title}, **values}


class TestOpenBD(SourceContract):
    """The contract, for openBD."""

    source_class = OpenBDSource
    item_id, other_id = ASKED, OTHER
    not_found = (json_reply([None]), Reply(200, {}, b"[null]\n"))

    def document(self, item_id: str, name: str) -> Any:
        summary = {
            "isbn": item_id,
            "title": name,
            "publisher": "講談社",
            "pubdate": "20130906",
            "author": "雨隠ギド／著",
        }
        return [{"summary": summary, "onix": onix(RecordReference=item_id, title=""), "hanmoto": {}}]


def judge(record: Any) -> tuple[Outcome, str]:
    """Return outcome and reason of a 200 with this one record."""
    verdict = source().parse(json_reply([record]), ASKED)
    return verdict.outcome, verdict.reason


def item(record: Any) -> Mapping[str, Any]:
    """Return the item of a record that is a find."""
    verdict = source().parse(json_reply([record]), ASKED)
    assert verdict.item is not None, verdict
    return verdict.item


@pytest.mark.parametrize(
    "document", [[], [None, None], [{}, None], {}, {"0": None}, "x", None, [[]], [5], [False]], ids=str
)
def test_other_documents_are_malformed(document: Any) -> None:
    """Another length, or anything but an object or null in the list, is no answer."""
    verdict = source().parse(json_reply(document), ASKED)
    assert (verdict.outcome, verdict.reason) == (Outcome.STOP, "invalid_schema")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"summary": {"isbn": ASKED, "title": "茶"}}, "ok"),
        ({"summary": {"isbn": "978-4-06-387917-9", "title": "茶"}}, "ok"),
        ({"summary": {"isbn": "4063879178", "title": "茶"}}, "ok"),
        ({"summary": {"isbn": "", "title": "茶"}, "onix": onix(RecordReference=ASKED)}, "ok"),
        ({"summary": {"title": "茶"}, "onix": onix(ProductIdentifier={"IDValue": ASKED})}, "ok"),
        ({"summary": {"title": "茶"}, "onix": onix(ProductIdentifier=[{"IDValue": ASKED}])}, "ok"),
        ({"onix": onix(RecordReference=ASKED)}, "ok"),
        ({"summary": {"isbn": OTHER, "title": "茶"}, "onix": onix(RecordReference=ASKED)}, "invalid_item"),
        ({"summary": {"isbn": "x", "title": "茶"}, "onix": onix(RecordReference=OTHER)}, "invalid_item"),
        ({"summary": {"title": "茶"}}, "unverifiable"),
        ({"summary": {"isbn": 9784063879179, "title": "茶"}}, "unverifiable"),
        ({"summary": [], "onix": []}, "unverifiable"),
        ({}, "unverifiable"),
    ],
    ids=str,
)
def test_record_has_to_hold_the_isbn(record: Any, reason: str) -> None:
    """The first ISBN that can be compared decides: summary, record reference, product identifier."""
    assert judge(record)[1] == reason


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"summary": {"isbn": ASKED, "title": "茶"}, "onix": onix(title="x")}, "茶"),
        ({"summary": {"isbn": ASKED, "title": ""}, "onix": onix(title="茶")}, "茶"),
        ({"summary": {"isbn": ASKED}, "onix": onix(title="茶")}, "茶"),
        (
            {
                "summary": {"isbn": ASKED},
                "onix": {"DescriptiveDetail": {"TitleDetail": [{"TitleElement": [{"TitleText": {"content": "茶"}}]}]}},
            },
            "茶",
        ),
    ],
)
def test_name_from_summary_or_onix(record: Any, name: str) -> None:
    """An empty title in the summary is looked up in the ONIX record."""
    assert item(record)["name"] == name


@pytest.mark.parametrize(
    "record", [{"summary": {"isbn": ASKED, "title": " "}}, {"summary": {"isbn": ASKED}, "onix": None}]
)
def test_no_name(record: Any) -> None:
    """A record without any title has no name."""
    assert judge(record) == (Outcome.STOP, "no_name")


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        ("雨隠ギド／著", ["雨隠ギド"]),
        ("MatRyer／著 鵜飼文敏／監修\u3000牧野聡/翻訳", ["MatRyer", "鵜飼文敏", "牧野聡"]),
        ("中西準子", ["中西準子"]),
        ("／著", None),
        ("", None),
        (None, None),
        (["x"], None),
    ],
)
def test_authors(author: Any, expected: list[str] | None) -> None:
    """Authors are divided by blanks of either width; the role behind the slash is cut off."""
    assert item({"summary": {"isbn": ASKED, "title": "茶", "author": author}}).get("authors") == expected


@pytest.mark.parametrize(
    ("pubdate", "expected"),
    [("20130906", "2013"), ("2010-01", "2010"), ("201110", "2011"), ("", None), ("c2010", None), (20130906, None)],
)
def test_published_is_the_year(pubdate: Any, expected: str | None) -> None:
    """Dates come in several forms; the year is in all of them."""
    assert item({"summary": {"isbn": ASKED, "title": "茶", "pubdate": pubdate}}).get("published") == expected


def test_item_has_plain_names() -> None:
    """What the API knows is under the same names as with every other adapter."""
    verdict = source().parse(json_reply(TestOpenBD().document(ASKED, "茶")), ASKED)
    assert verdict.item == {
        "id": ASKED,
        "name": "茶",
        "authors": ["雨隠ギド"],
        "publisher": "講談社",
        "published": "2013",
    }


def test_many_in_one_call() -> None:
    """Answers are by position: the n-th null is the n-th ISBN."""
    third = "9780306406157"
    reply = json_reply([None, {"summary": {"isbn": OTHER, "title": "茶"}}, {"summary": {"isbn": OTHER, "title": "茶"}}])
    verdicts = source().parse_many(reply, [ASKED, OTHER, third])
    assert {isbn: verdict.reason for isbn, verdict in verdicts.items()} == {
        ASKED: "empty_result",
        OTHER: "ok",
        third: "invalid_item",
    }


@pytest.mark.parametrize("document", [[None], [None, None, None], [], {}])
def test_length_mismatch_is_no_answer_for_any(document: Any) -> None:
    """When a position cannot be told, no null says "not found"."""
    verdicts = source().parse_many(json_reply(document), [ASKED, OTHER])
    assert [(v.outcome, v.reason) for v in verdicts.values()] == [(Outcome.STOP, "invalid_schema")] * 2


def test_over_the_wire() -> None:
    """One book and many are asked for in the one parameter."""
    with Loopback() as upstream:
        upstream.on("/v1/get", ok([None]), ok([None, None]))
        over = source(upstream.url("/v1/get?isbn={id}"))
        reply = over.fetch(ASKED, "", {}, timeout=5)
        many = over.fetch_many([ASKED, OTHER], "", {}, timeout=5)
        over.close()
    assert not isinstance(reply, NoReply)
    assert over.parse(reply, ASKED).reason == "empty_result"
    assert not isinstance(many, NoReply)
    assert [verdict.reason for verdict in over.parse_many(many, [ASKED, OTHER]).values()] == ["empty_result"] * 2
    assert [request.target for request in upstream.requests] == [
        f"/v1/get?isbn={ASKED}",
        f"/v1/get?isbn={ASKED}%2C{OTHER}",
    ]
    assert source().request(ASKED, "", {}).url == f"https://api.openbd.jp/v1/get?isbn={ASKED}"
