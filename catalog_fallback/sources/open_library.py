"""What does Open Library say about an ISBN? Its ``/api/books.json`` answers with a mapping of bibliographic keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from catalog_fallback import classify
from catalog_fallback.results import Reply, Verdict
from catalog_fallback.sources import json_body, json_reply, text
from catalog_fallback.sources.books import BatchBookSource
from catalog_fallback.sources.identifiers import isbn13_or_none

_UNIQUE_NAMES = json_body.UNIQUE_NAMES | {"title", "identifiers", "isbn_10", "isbn_13"}


class OpenLibrarySource(BatchBookSource):
    """Books by ISBN. ``not_found`` is a 200 with an empty object; a 404 means that the route is gone."""

    default_url: ClassVar[str | None] = "https://openlibrary.org/api/books.json?bibkeys=ISBN:{id}&jscmd=data"
    defaults: ClassVar[Mapping[str, Any]] = {"RATE_LIMIT": {"CALLS": 60, "PER": 60}}
    batch_size: ClassVar[int] = 25
    separator: ClassVar[str] = ",ISBN:"

    def parse_many(self, reply: Reply, item_ids: Sequence[str]) -> dict[str, Verdict]:
        """Return a verdict for each ID; a key that nobody asked for makes the whole reply worthless."""
        records = json_reply.document(reply, _UNIQUE_NAMES)
        if isinstance(records, Verdict):
            return dict.fromkeys(item_ids, records)
        by_isbn = _by_isbn(records)
        if by_isbn is None or not by_isbn.keys() <= set(item_ids):
            return dict.fromkeys(item_ids, classify.verdict("invalid_schema"))
        return {item_id: _judge(by_isbn.get(item_id), item_id) for item_id in item_ids}


def _by_isbn(records: Any) -> dict[str | None, dict[str, Any]] | None:
    """Return ISBN-13 → record; None when the reply is no mapping of ``ISBN:…`` keys, each once, to objects."""
    if not isinstance(records, dict) or not all(isinstance(record, dict) for record in records.values()):
        return None
    by_isbn = {_isbn_of_key(key): record for key, record in records.items()}
    return by_isbn if len(by_isbn) == len(records) else None


def _isbn_of_key(key: str) -> str | None:
    prefix, _, number = key.partition(":")
    return isbn13_or_none(number) if prefix.upper() == "ISBN" else None


def _judge(record: dict[str, Any] | None, item_id: str) -> Verdict:
    if record is None:
        return classify.verdict("empty_result")
    isbns = _isbns(record.get("identifiers"))
    if isbns and item_id not in isbns:
        return classify.verdict("invalid_item")
    title = text.clean_name(record.get("title"))
    if not title:
        return classify.verdict("no_name")
    return classify.found(
        text.without_empty(
            {
                "id": item_id,
                "name": text.joined((title, text.clean_name(record.get("subtitle"))), ": "),
                "authors": text.names_of(record.get("authors")),
                "publisher": text.joined(text.names_of(record.get("publishers")), ", "),
                "published": text.clean_name(record.get("publish_date")),
                "url": text.web_url(record.get("url")),
                "verified": bool(isbns),
            }
        )
    )


def _isbns(identifiers: Any) -> set[str]:
    """Return the record's own ISBNs as ISBN-13, in whichever list they are; a record may have none."""
    if not isinstance(identifiers, dict):
        return set()
    numbers = [*text.texts(identifiers.get("isbn_13")), *text.texts(identifiers.get("isbn_10"))]
    return {isbn for isbn in map(isbn13_or_none, numbers) if isbn is not None}
