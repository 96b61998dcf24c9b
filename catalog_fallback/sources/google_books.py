"""What does Google Books say about an ISBN? A search whose hits may be other books, so each one is compared."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from catalog_fallback import classify
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.headers import MAX_RETRY_AFTER
from catalog_fallback.results import Reply, Request, Verdict
from catalog_fallback.sources import json_body, json_reply, text
from catalog_fallback.sources.books import BookSource
from catalog_fallback.sources.identifiers import isbn13_or_none
from catalog_fallback.sources.json_path import dig, objects

_FIELDS = "title,subtitle,authors,publisher,publishedDate,industryIdentifiers,infoLink"
_UNIQUE_NAMES = json_body.UNIQUE_NAMES | {"kind", "totalItems", "items", "volumeInfo", "title", "identifier"}
#: Types of identifiers that are ISBNs; ``OTHER`` may look like one (``GENT:…``) and is none.
_ISBN_TYPES = ("ISBN_10", "ISBN_13")
_COUNTRY = re.compile("[A-Z]{2}")


class GoogleBooksSource(BookSource):
    """Books by ISBN. Needs a key in OPTIONS: without one, Google answers 429 for ever.

    ``key``
        The API key. It is sent as a query parameter and shown nowhere.
    ``country``
        Two capital letters; for servers whose country Google cannot tell (403 ``unknownLocation``).
    """

    default_url: ClassVar[str | None] = (
        "https://www.googleapis.com/books/v1/volumes?q=isbn:{id}&maxResults=5&printType=books"
        f"&fields=kind,totalItems,items(id,volumeInfo({_FIELDS}))"
    )
    defaults: ClassVar[Mapping[str, Any]] = {"RATE_LIMIT": {"CALLS": 60, "PER": 60}}

    def __init__(self, config: SourceConfig, *, key: str = "", country: str = "") -> None:
        """Take key and country from OPTIONS."""
        super().__init__(config)
        self._key = key
        self._country = country

    def request(self, item_id: str, language: str, vary: Mapping[str, str]) -> Request:
        """Return the search for one ISBN, with key and country."""
        given = {"country": self._country, "key": self._key}
        params = {name: value for name, value in given.items() if value}
        return dataclasses.replace(super().request(item_id, language, vary), params=params)

    def check(self) -> Iterable[str]:
        """Complain about a missing key, and about a country that is none."""
        yield from super().check()
        if not self._key:
            yield 'its OPTIONS have no "key", and without one Google Books answers 429 (quota exceeded) for ever'
        if self._country and _COUNTRY.fullmatch(self._country) is None:
            yield 'the "country" in its OPTIONS has to be two capital letters, as in "DE"'

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Return what the reply means: "not found" is a complete list of volumes with nothing in it."""
        if reply.status == 429 and _is_daily_quota(reply.body):
            return classify.verdict("http_429", MAX_RETRY_AFTER)
        found = json_reply.document(reply, _UNIQUE_NAMES)
        if isinstance(found, Verdict):
            return found
        if not isinstance(found, dict) or found.get("kind") != "books#volumes":
            return classify.verdict("invalid_schema")
        return _judge(found.get("items", []), found.get("totalItems"), item_id)


def _is_daily_quota(body: bytes) -> bool:
    """Whether a 429 speaks of a quota per day: it will not be over in a minute."""
    details = dig(json_body.decode(body), "error", "details")
    units = (dig(detail, "metadata", "quota_unit") for detail in objects(details, text.MAX_ENTRIES))
    return any(isinstance(unit, str) and unit.startswith("1/d") for unit in units)


def _judge(volumes: Any, total: Any, item_id: str) -> Verdict:
    """Judge the list of hits; their number changes from call to call, so only "none at all" means something."""
    if not isinstance(volumes, list):
        return classify.verdict("invalid_schema")
    if not volumes:
        return classify.verdict("empty_result" if type(total) is int and total == 0 else "invalid_schema")
    has_isbns = False
    about = [volume.get("volumeInfo") for volume in objects(volumes, text.MAX_ENTRIES)]
    for volume in objects(about, text.MAX_ENTRIES):
        isbns = set(_isbns(volume))
        if item_id in isbns:
            return _book(volume, item_id)
        has_isbns = has_isbns or bool(isbns)
    return classify.verdict("invalid_item" if has_isbns else "unverifiable")


def _isbns(volume: dict[str, Any]) -> Iterator[str]:
    for entry in objects(volume.get("industryIdentifiers"), text.MAX_ENTRIES):
        isbn = isbn13_or_none(entry.get("identifier")) if entry.get("type") in _ISBN_TYPES else None
        if isbn is not None:
            yield isbn


def _book(volume: dict[str, Any], item_id: str) -> Verdict:
    title = text.clean_name(volume.get("title"))
    if not title:
        return classify.verdict("no_name")
    return classify.found(
        text.without_empty(
            {
                "id": item_id,
                "name": text.joined((title, text.clean_name(volume.get("subtitle"))), ": "),
                "authors": text.texts(volume.get("authors")),
                "publisher": text.clean_name(volume.get("publisher")),
                "published": text.clean_name(volume.get("publishedDate")),
                "url": text.web_url(volume.get("infoLink")),
            }
        )
    )
