"""Does the default envelope mean what the specification says?"""

from __future__ import annotations

import json
from typing import Any

import pytest

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
