"""What does openBD (Japan) say about an ISBN? It answers with a list, by position, with null for unknown books."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from catalog_fallback import classify
from catalog_fallback.results import Reply, Verdict
from catalog_fallback.sources import json_body, json_reply, text
from catalog_fallback.sources.books import BatchBookSource
from catalog_fallback.sources.identifiers import isbn13_or_none
from catalog_fallback.sources.json_path import dig

_UNIQUE_NAMES = json_body.UNIQUE_NAMES | {"summary", "onix", "isbn", "title"}
_YEAR = re.compile("[0-9]{4}")


class OpenBDSource(BatchBookSource):
    """Books by ISBN; put it first in a catalog of Japanese books."""

    default_url: ClassVar[str | None] = "https://api.openbd.jp/v1/get?isbn={id}"
    defaults: ClassVar[Mapping[str, Any]] = {"RATE_LIMIT": {"CALLS": 60, "PER": 60}}
    batch_size: ClassVar[int] = 1000

    def parse_many(self, reply: Reply, item_ids: Sequence[str]) -> dict[str, Verdict]:
        """Return a verdict for each ID; a list of another length could not be told apart, so it is worthless."""
        records = json_reply.document(reply, _UNIQUE_NAMES)
        if isinstance(records, Verdict):
            return dict.fromkeys(item_ids, records)
        if not isinstance(records, list) or len(records) != len(item_ids):
            return dict.fromkeys(item_ids, classify.verdict("invalid_schema"))
        return {item_id: _judge(record, item_id) for item_id, record in zip(item_ids, records, strict=True)}


def _judge(record: Any, item_id: str) -> Verdict:
    if record is None:
        return classify.verdict("empty_result")
    if not isinstance(record, dict):
        return classify.verdict("invalid_schema")
    isbn = _isbn(record)
    if isbn != item_id:
        return classify.verdict("unverifiable" if isbn is None else "invalid_item")
    name = text.clean_name(dig(record, "summary", "title")) or text.clean_name(dig(record, *_ONIX_TITLE))
    if not name:
        return classify.verdict("no_name")
    return classify.found(
        text.without_empty(
            {
                "id": item_id,
                "name": name,
                "authors": _authors(dig(record, "summary", "author")),
                "publisher": text.clean_name(dig(record, "summary", "publisher")),
                "published": _year(dig(record, "summary", "pubdate")),
            }
        )
    )


_ONIX_TITLE = ("onix", "DescriptiveDetail", "TitleDetail", "TitleElement", "TitleText", "content")
#: Where a record's own ISBN is, the best place first.
_ISBN_PLACES = (("summary", "isbn"), ("onix", "RecordReference"), ("onix", "ProductIdentifier", "IDValue"))


def _isbn(record: dict[str, Any]) -> str | None:
    candidates = (isbn13_or_none(dig(record, *place)) for place in _ISBN_PLACES)
    return next((isbn for isbn in candidates if isbn is not None), None)


def _authors(value: Any) -> list[str]:
    """Return the names of ``"雨隠ギド／著 ひと／絵"``: divided by blanks, each followed by a slash and the role."""
    names = (re.split("[／/]", part)[0] for part in text.clean_name(value, limit=5000).split(" "))
    return [name for name in names if name][: text.MAX_ENTRIES]


def _year(value: Any) -> str:
    """Return the year of ``20130906``, ``2010-01`` or ``201110``; ``""`` where there is none."""
    year = _YEAR.match(text.clean_name(value))
    return "" if year is None else year[0]
