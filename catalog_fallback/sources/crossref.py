"""What does Crossref say about a DOI? It has the works of its own members; other agencies' DOIs are a 404."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from catalog_fallback import classify
from catalog_fallback.results import Reply, Request, Verdict
from catalog_fallback.sources import json_body, json_reply, text
from catalog_fallback.sources.json_path import dig, first, objects
from catalog_fallback.sources.papers import PaperSource, what_is_wrong_with

#: The whole body of a 404 that means "no such work", whatever its Content-Type says.
NOT_FOUND = b"Resource not found."
_UNIQUE_NAMES = json_body.UNIQUE_NAMES | {"status", "message-type", "message", "DOI", "title"}


class CrossrefSource(PaperSource):
    """Papers by DOI; let DataCite follow. ``not_found`` is a 404 with one sentence; every other 404 is a stop."""

    default_url: ClassVar[str | None] = "https://api.crossref.org/works/{id}"
    defaults: ClassVar[Mapping[str, Any]] = {**PaperSource.defaults, "RATE_LIMIT": {"CALLS": 60, "PER": 60}}

    def request(self, item_id: str, language: str, vary: Mapping[str, str]) -> Request:
        """Return the GET for one work; a mail address in CONTACT puts it into the pool of identified callers."""
        request = super().request(item_id, language, vary)
        contact = self.config.contact.removeprefix("mailto:")
        is_mail = "@" in contact and "/" not in contact
        return dataclasses.replace(request, params={"mailto": contact}) if is_mail else request

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Return what the reply means: a 404 is judged by its text, a 200 by its JSON."""
        if reply.status == 404 and reply.body.strip() == NOT_FOUND:
            return classify.verdict("empty_result")
        answer = json_reply.document(reply, _UNIQUE_NAMES)
        if isinstance(answer, Verdict):
            return answer
        if not _is_work(answer):
            return classify.verdict("invalid_schema")
        return _judge(answer["message"], item_id)


def _is_work(answer: Any) -> bool:
    if not isinstance(answer, dict) or not isinstance(answer.get("message"), dict):
        return False
    return answer.get("status") == "ok" and answer.get("message-type") == "work"


def _judge(work: dict[str, Any], item_id: str) -> Verdict:
    wrong = what_is_wrong_with(work.get("DOI"), item_id)
    if wrong is not None:
        return classify.verdict(wrong)
    name = text.clean_name(first(work.get("title")))
    if not name:
        return classify.verdict("no_name")
    return classify.found(
        text.without_empty(
            {
                "id": item_id,
                "name": name,
                "authors": _authors(work.get("author")),
                "publisher": text.clean_name(work.get("publisher")),
                "published": _date(first(dig(work, "issued", "date-parts"))),
                "url": text.web_url(work.get("URL")),
            }
        )
    )


def _authors(value: Any) -> list[str]:
    """Return the names of persons (given and family name) and of groups (one name)."""
    return list(filter(None, map(_author, objects(value, text.MAX_ENTRIES))))


def _author(author: dict[str, Any]) -> str:
    person = text.joined((text.clean_name(author.get("given")), text.clean_name(author.get("family"))), " ")
    return person or text.clean_name(author.get("name"))


def _date(parts: Any) -> str:
    """Return ``[2009, 6, 26]`` as ``2009-06-26``; month and day may be missing, and so may everything."""
    numbers = []
    for part, highest in zip(parts if isinstance(parts, list) else [], (9999, 12, 31), strict=False):
        if type(part) is not int or not 0 < part <= highest:
            break
        numbers.append(part)
    return "-".join(f"{number:02d}" for number in numbers)
