"""Does the default envelope mean what the specification says?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from catalog_fallback.conf import source_complaints
from catalog_fallback.conf.registry import parse
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Outcome, Reply
from catalog_fallback.sources.json_item import JSONItemSource
from tests.sources.contract import SourceContract, json_reply

URL = "https://primary.example.com/items/{id}"


class TestJSONItem(SourceContract):
    """The contract, for the default envelope."""

    source_class = JSONItemSource
    url = URL
    item_id, other_id = "P001", "P002"
    not_found = (json_reply({"item": None}), json_reply({"item": None, "took_ms": 3}))
    no_name = "invalid_item"
    cleans_names = False

    def document(self, item_id: str, name: str) -> Any:
        return {"item": {"id": item_id, "name": name, "price": {"amount": 3, "currency": "EUR"}, "tags": ["a", "b"]}}


def judge(document: Any) -> tuple[Outcome, str]:
    """Return outcome and reason of a 200 with this document, asked for P001."""
    verdict = JSONItemSource(SourceConfig("primary", url=URL)).parse(json_reply(document), "P001")
    return verdict.outcome, verdict.reason


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({}, "invalid_schema"),
        ([], "invalid_schema"),
        (None, "invalid_schema"),
        ({"data": {"id": "P001", "name": "Tea"}}, "invalid_schema"),
        ({"id": "P001", "name": "Tea"}, "invalid_schema"),
        ({"item": []}, "invalid_schema"),
        ({"item": "P001"}, "invalid_schema"),
        ({"item": False}, "invalid_schema"),
        ({"item": None, "error": "database is down"}, "invalid_schema"),
        ({"item": None, "errors": [{"code": 7}]}, "invalid_schema"),
        ({"item": {}}, "invalid_item"),
        ({"item": {"name": "Tea"}}, "invalid_item"),
        ({"item": {"id": "P002", "name": "Tea"}}, "invalid_item"),
        ({"item": {"id": "p001", "name": "Tea"}}, "invalid_item"),
        ({"item": {"id": 1, "name": "Tea"}}, "invalid_item"),
        ({"item": {"id": ["P001"], "name": "Tea"}}, "invalid_item"),
        ({"item": {"id": "P001"}}, "invalid_item"),
        ({"item": {"id": "P001", "name": None}}, "invalid_item"),
        ({"item": {"id": "P001", "name": 5}}, "invalid_item"),
        ({"item": {"id": "P001", "name": " "}}, "invalid_item"),
    ],
    ids=json.dumps,
)
def test_what_is_no_answer(document: Any, reason: str) -> None:
    """An envelope that was not agreed on, and an item that is not the one, are stops."""
    assert judge(document) == (Outcome.STOP, reason)


@pytest.mark.parametrize(
    "body",
    [
        b'{"item": null, "item": {"id": "P001", "name": "Tea"}}',
        b'{"item": {"id": "P002", "id": "P001", "name": "Tea"}}',
        b'{"item": {"id": "P001", "name": "Tea", "name": "Coffee"}}',
    ],
)
def test_rapidjson_26_duplicate_keys(body: bytes) -> None:
    """Two values for what decides the meaning are no value: the last one does not win."""
    verdict = JSONItemSource(SourceConfig("primary", url=URL)).parse(Reply(200, {}, body), "P001")
    assert (verdict.outcome, verdict.reason) == (Outcome.STOP, "invalid_json")


def test_item_is_kept_as_it_comes() -> None:
    """Further fields, and the name's own spelling, are the site's business."""
    item = {"id": "P001", "name": " <Tea> &amp; more ", "nested": {"deep": [1, 2.5, None, True]}}
    verdict = JSONItemSource(SourceConfig("primary", url=URL)).parse(json_reply({"item": item}), "P001")
    assert verdict.item == item


# --- envelopes that OPTIONS describe -----------------------------------------------------------------------------

JSON_API = {"item_path": "data", "name_field": "attributes.title", "fields": {"price": "attributes.price.amount"}}
SEARCH = {"item_path": "results.0", "id_field": "sku", "name_field": "title", "not_found_when": {"count": 0}}


class TestWholeBody(SourceContract):
    """The contract, for an API whose body is the item."""

    source_class = JSONItemSource
    url = URL
    options = {"item_path": "", "id_field": "sku", "name_field": "title"}  # noqa: RUF012  # ClassVar in the base class
    item_id, other_id = "P001", "P002"
    not_found = ()
    no_name = "invalid_item"
    cleans_names = False

    def document(self, item_id: str, name: str) -> Any:
        return {"sku": item_id, "title": name, "tags": ["a"]}


class TestSearch(TestWholeBody):
    """The contract, for an API that answers with a list of hits."""

    options = SEARCH
    not_found = (json_reply({"count": 0, "results": []}), json_reply({"count": 0}, 404))
    body_statuses = frozenset({404})

    def document(self, item_id: str, name: str) -> Any:
        return {"count": 1, "results": [super().document(item_id, name)]}


def described(document: Any, status: int = 200, asked: str = "P001", **options: Any) -> Any:
    """Return the item of a find, else outcome and reason, where OPTIONS describe the envelope."""
    source = JSONItemSource(SourceConfig("primary", url=URL), **options)
    verdict = source.parse(json_reply(document, status), asked)
    return verdict.item if verdict.outcome is Outcome.FOUND else (str(verdict.outcome), verdict.reason)


@pytest.mark.parametrize(
    ("document", "options", "expected"),
    [
        ({"data": {"id": "P001", "name": "Tea"}}, {"item_path": "data"}, {"id": "P001", "name": "Tea"}),
        (
            {"sku": "P001", "title": "Tea", "x": 1},
            {"item_path": "", "id_field": "sku", "name_field": "title"},
            {"sku": "P001", "title": "Tea", "x": 1, "id": "P001", "name": "Tea"},
        ),
        (
            {"data": {"id": "P001", "attributes": {"title": "Tea", "price": {"amount": 3}}}},
            JSON_API,
            {"id": "P001", "name": "Tea", "price": 3},
        ),
        (
            {"data": {"id": "P001", "attributes": {"title": "Tea"}}},
            JSON_API,
            {"id": "P001", "name": "Tea"},
        ),
        (
            {"item": {"id": "P001", "name": "Tea", "x": None}},
            {"fields": {"y": "x"}},
            {"id": "P001", "name": "Tea", "y": None},
        ),
        ({"item": {"id": "P001", "name": "Tea", "x": 1}}, {"fields": {}}, {"id": "P001", "name": "Tea"}),
    ],
    ids=str,
)
def test_where_the_item_is(document: Any, options: dict[str, Any], expected: Any) -> None:
    """Paths say where; what is kept has an ID and a name under our names, and the fields that were asked for."""
    assert described(document, **options) == expected


@pytest.mark.parametrize(
    ("document", "status", "when", "expected"),
    [
        ({"count": 0}, 200, {"count": 0}, ("not_found", "empty_result")),
        ({"count": 0}, 404, {"count": 0}, ("not_found", "empty_result")),
        ({"count": 0}, 410, {"count": 0}, ("stop", "http_410")),
        ({"count": 0}, 503, {"count": 0}, ("temporary", "http_503")),
        ({"count": 0.0}, 200, {"count": 0}, ("not_found", "empty_result")),
        ({"count": False}, 200, {"count": 0}, ("stop", "invalid_schema")),
        ({"count": 0}, 200, {"count": False}, ("stop", "invalid_schema")),
        ({"count": "0"}, 200, {"count": 0}, ("stop", "invalid_schema")),
        ({}, 200, {"count": None}, ("stop", "invalid_schema")),
        ({"count": None}, 200, {"count": None}, ("not_found", "empty_result")),
        ({"results": []}, 200, {"results": []}, ("not_found", "empty_result")),
        ({"error": {"code": "gone"}}, 404, {"error.code": "gone"}, ("not_found", "empty_result")),
        ({"error": {"code": "busy"}}, 404, {"error.code": "gone"}, ("stop", "http_404")),
        ({"a": 1, "b": 2}, 200, {"a": 1, "b": 2}, ("not_found", "empty_result")),
        ({"a": 1, "b": 3}, 200, {"a": 1, "b": 2}, ("stop", "invalid_schema")),
        ({"item": None}, 200, {"count": 0}, ("stop", "invalid_schema")),
        ({"item": None}, 200, None, ("not_found", "empty_result")),
        ({"item": None}, 404, None, ("stop", "http_404")),
    ],
    ids=str,
)
def test_what_says_not_found(document: Any, status: int, when: Any, expected: tuple[str, str]) -> None:
    """The signal that the site described, in a 200 or 404, and then no other one."""
    assert described(document, status, not_found_when=when) == expected


@pytest.mark.parametrize(
    ("document", "options"),
    [
        (None, {"item_path": ""}),
        ([], {"item_path": ""}),
        ([None], {"item_path": "0"}),
        ({"results": []}, {"item_path": "results.0"}),
        ({"data": None, "errors": ["x"]}, {"item_path": "data"}),
        ({"data": "P001"}, {"item_path": "data"}),
    ],
    ids=str,
)
def test_nothing_in_the_place_of_the_item(document: Any, options: dict[str, Any]) -> None:
    """An empty list, a bare null and an error say nothing unless they were described."""
    assert described(document, **options) == ("stop", "invalid_schema")


def test_null_in_the_place_of_the_item() -> None:
    """In an object it means what it means in the default envelope."""
    assert described({"data": {"book": None}}, item_path="data.book") == ("not_found", "empty_result")


@pytest.mark.parametrize(("found", "is_it"), [(7, True), ("7", True), (7.0, False), (True, False), (8, False)])
def test_whole_numbers_as_ids(found: Any, is_it: bool) -> None:
    """They count as their digits as soon as the site described its envelope; never in the default one."""
    document = {"data": {"id": found, "name": "Tea"}}
    expected = {"id": "7", "name": "Tea"} if is_it else ("stop", "invalid_item")
    assert described(document, asked="7", item_path="data") == expected
    assert described({"item": {"id": 7, "name": "Tea"}}, asked="7") == ("stop", "invalid_item")


def test_names_that_decide_may_occur_once() -> None:
    """The described ones as well as the default ones."""
    source = JSONItemSource(SourceConfig("primary", url=URL), **SEARCH)
    for body in (b'{"count": 0, "count": 1}', b'{"results": [{"sku": "P001", "sku": "P002", "title": "Tea"}]}'):
        assert source.parse(Reply(200, {}, body), "P001").reason == "invalid_json"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"item_path": "a..b"}, '"item_path": a path has to be'),
        ({"id_field": None}, '"id_field": a path'),
        ({"name_field": 5}, '"name_field": a path'),
        ({"fields": {"x": ["a"]}}, '"fields": a path'),
        ({"fields": {"id": "x"}}, 'must not name "id" or "name"'),
        ({"not_found_when": {"a.": 1}}, '"not_found_when": a path'),
    ],
)
def test_what_cannot_be_a_description(options: dict[str, Any], message: str) -> None:
    """The option is named; the system check passes it on."""
    with pytest.raises(ValueError, match=message):
        JSONItemSource(SourceConfig("primary", url=URL), **options)
    raw = {"default": {"SOURCES": {"primary": {"URL": URL, "OPTIONS": options}}}}
    found, _ = parse(raw)
    said = " ".join(str(one) for one in source_complaints(found["default"].sources[0]))
    assert message.split('"')[1] in said
