"""Is Open Library's answer read as its rules say?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Outcome, Reply
from catalog_fallback.sources.open_library import OpenLibrarySource
from tests.loopback import Loopback, ok
from tests.sources.contract import SourceContract, json_reply

ASKED = "9780306406157"
OTHER = "9782070464234"


def source(url: str | None = None) -> OpenLibrarySource:
    """Return the source, with its own URL or another."""
    return OpenLibrarySource(SourceConfig("open_library", url=url, contact="mail@example.com"))


def record(isbn: str = ASKED, **fields: Any) -> dict[str, Any]:
    """Return a record with one ISBN-13 and a title."""
    return {"title": "Tea", "identifiers": {"isbn_13": [isbn]}, **fields}


class TestOpenLibrary(SourceContract):
    """The contract, for Open Library."""

    source_class = OpenLibrarySource
    item_id, other_id = ASKED, OTHER
    not_found = (json_reply({}),)
    wrong_id = "invalid_schema"

    def document(self, item_id: str, name: str) -> Any:
        return {
            f"ISBN:{item_id}": {
                "title": name,
                "authors": [{"name": "Ann"}],
                "publishers": [{"name": "House"}],
                "publish_date": "1999",
                "identifiers": {"isbn_10": [], "isbn_13": [item_id]},
            }
        }


def judge(document: Any, asked: str = ASKED) -> tuple[Outcome, str]:
    """Return outcome and reason of a 200 with this document."""
    verdict = source().parse(json_reply(document), asked)
    return verdict.outcome, verdict.reason


def item(document: Any, asked: str = ASKED) -> Mapping[str, Any]:
    """Return the item of a document that is a find."""
    verdict = source().parse(json_reply(document), asked)
    assert verdict.item is not None, verdict
    return verdict.item


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (f"ISBN:{ASKED}", "ok"),
        (f"isbn:{ASKED}", "ok"),
        ("ISBN:0306406152", "ok"),
        ("ISBN:0-306-40615-2", "ok"),
        (f"ISBN:{OTHER}", "invalid_schema"),
        ("ISBN:", "invalid_schema"),
        (f"OLID:{ASKED}", "invalid_schema"),
        (ASKED, "invalid_schema"),
        ("error", "invalid_schema"),
    ],
)
def test_key_repeats_the_isbn_that_was_asked_for(key: str, expected: str) -> None:
    """A reply under any other key is not the agreed one; the ISBN in it may be in its old form."""
    assert judge({key: record()})[1] == expected


@pytest.mark.parametrize(
    "document",
    [
        {f"ISBN:{ASKED}": record(), f"ISBN:{OTHER}": record(OTHER)},
        {f"ISBN:{ASKED}": record(), "ISBN:0306406152": record()},
        {f"ISBN:{ASKED}": record(), "notice": {}},
        {f"ISBN:{ASKED}": []},
        {f"ISBN:{ASKED}": None},
        {"numFound": 0, "start": 0, "docs": []},
        {"key": "/books/OL1M", "type": {"key": "/type/redirect"}, "location": "/books/OL2M"},
        {"key": "/works/OL1W", "type": {"key": "/type/delete"}, "revision": 2},
        [],
    ],
    ids=str,
)
def test_other_documents_are_malformed(document: Any) -> None:
    """More keys, other keys, search results, redirects and deletions on other routes: invalid schema."""
    assert judge(document) == (Outcome.STOP, "invalid_schema")


@pytest.mark.parametrize(
    ("identifiers", "expected"),
    [
        ({"isbn_13": [ASKED]}, "ok"),
        ({"isbn_10": ["0306406152"]}, "ok"),
        ({"isbn_10": [ASKED]}, "ok"),
        ({"isbn_13": [OTHER, ASKED]}, "ok"),
        ({"isbn_13": [OTHER], "isbn_10": ["0306406152"]}, "ok"),
        ({"isbn_13": ["978-0-306-40615-7"]}, "ok"),
        ({"isbn_13": [OTHER]}, "invalid_item"),
        ({"isbn_13": ["garbage"], "isbn_10": ["2070464237"]}, "invalid_item"),
    ],
    ids=str,
)
def test_open_library_8120_identifiers_are_compared_as_isbn_13(identifiers: Any, expected: str) -> None:
    """The record's ISBNs, in whichever list and form, have to hold the one that was asked for (isbnlib#23)."""
    assert judge({f"ISBN:{ASKED}": record(identifiers=identifiers)})[1] == expected


@pytest.mark.parametrize(
    "identifiers", [{}, None, [], {"goodreads": ["1"]}, {"isbn_13": ["garbage"]}, {"isbn_13": None}]
)
def test_record_without_isbns_is_marked(identifiers: Any) -> None:
    """Nothing to compare: the key vouches for the book, and the item says that it was not verified."""
    assert item({f"ISBN:{ASKED}": record(identifiers=identifiers)})["verified"] is False
    assert item({f"ISBN:{ASKED}": record()})["verified"] is True


def test_item_has_plain_names() -> None:
    """What the API knows is under the same names as with every other adapter, and nothing else is."""
    document = record(
        subtitle="A <i>history</i>",
        authors=[{"name": "Ann &amp; Bob", "url": "x"}, {"name": ""}, {"url": "x"}],
        publishers=[{"name": "House"}, {"name": "Home"}],
        publish_date="Sept. 1999",
        url="https://openlibrary.org/books/OL1M/Tea",
        cover={"small": "https://covers.example.org/1.jpg"},
    )
    assert item({f"ISBN:{ASKED}": document}) == {
        "id": ASKED,
        "name": "Tea: A history",
        "authors": ["Ann & Bob"],
        "publisher": "House, Home",
        "published": "Sept. 1999",
        "url": "https://openlibrary.org/books/OL1M/Tea",
        "verified": True,
    }


@pytest.mark.parametrize("fields", [{"title": ""}, {"title": None}, {"title": ["x"]}, {"title": " ", "subtitle": "x"}])
def test_subtitle_alone_is_no_name(fields: dict[str, Any]) -> None:
    """The title is the name; without it the record has none."""
    assert judge({f"ISBN:{ASKED}": record(**fields)}) == (Outcome.STOP, "no_name")


def test_hostile_extra_fields_are_dropped() -> None:
    """A link that is no web address, and fields of other types, do not come through."""
    document = record(url="javascript:alert(1)", authors={"name": "x"}, publishers="x", publish_date=1999)
    assert item({f"ISBN:{ASKED}": document}) == {"id": ASKED, "name": "Tea", "verified": True}


def test_open_library_13669_route_gone_is_no_not_found() -> None:
    """A 404 with an empty body for a book that exists is a stop; it would have wiped out every book."""
    verdict = source().parse(Reply(404, {"content-type": "application/json"}), ASKED)
    assert (verdict.outcome, verdict.reason) == (Outcome.STOP, "http_404")


def test_code_py_597_exception_printed_with_200() -> None:
    """The text of a Python exception is no JSON, and no "not found"."""
    verdict = source().parse(Reply(200, {}, b"KeyError('isbn')"), ASKED)
    assert (verdict.outcome, verdict.reason) == (Outcome.STOP, "invalid_json")


def test_many_in_one_call() -> None:
    """Every ISBN that was asked for gets its own verdict; a missing key is "not found"."""
    third = "9784063879179"
    reply = json_reply({f"ISBN:{ASKED}": record(), "ISBN:2070464237": record(ASKED)})
    verdicts = source().parse_many(reply, [ASKED, OTHER, third])
    assert {isbn: verdict.reason for isbn, verdict in verdicts.items()} == {
        ASKED: "ok",
        OTHER: "invalid_item",
        third: "empty_result",
    }


@pytest.mark.parametrize(
    "reply", [Reply(503), Reply(200, {}, b"<html>"), json_reply([]), json_reply({"x": {}})], ids=str
)
def test_many_share_what_is_wrong_with_the_reply(reply: Reply) -> None:
    """A reply that is no answer is none for any of them."""
    verdicts = source().parse_many(reply, [ASKED, OTHER])
    assert set(verdicts) == {ASKED, OTHER}
    assert all(verdict.outcome in (Outcome.STOP, Outcome.TEMPORARY) for verdict in verdicts.values())


def test_default_url() -> None:
    """The adapter needs no URL; it asks the route that answers, with the ISBN-13."""
    expected = f"https://openlibrary.org/api/books.json?bibkeys=ISBN:{ASKED}&jscmd=data"
    assert source().request(ASKED, "", {}).url == expected


def test_over_the_wire() -> None:
    """One book and many are asked for as Open Library understands it, with a contact in the User-Agent."""
    with Loopback() as upstream:
        upstream.on("/api/books.json", ok({f"ISBN:{ASKED}": record()}))
        over = source(upstream.url("/api/books.json?bibkeys=ISBN:{id}&jscmd=data"))
        reply = over.fetch(ASKED, "", {}, timeout=5)
        many = over.fetch_many([ASKED, OTHER], "", {}, timeout=5)
        over.close()
    assert not isinstance(reply, NoReply)
    assert over.parse(reply, ASKED).outcome is Outcome.FOUND
    assert not isinstance(many, NoReply)
    assert [verdict.reason for verdict in over.parse_many(many, [ASKED, OTHER]).values()] == ["ok", "empty_result"]
    first, second = upstream.requests
    assert first.target == f"/api/books.json?bibkeys=ISBN:{ASKED}&jscmd=data"
    assert second.target == f"/api/books.json?bibkeys=ISBN:{ASKED}%2CISBN%3A{OTHER}&jscmd=data"
    assert "mail@example.com" in (first.header("User-Agent") or "")
    assert "application/json" in (first.header("Accept") or "")


def test_missing_extra_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings are refused with what to install, long before a lookup."""
    assert type(source()).missing_requirement() is None
    monkeypatch.setitem(__import__("sys").modules, "stdnum", None)
    assert "books" in str(type(source()).missing_requirement())
