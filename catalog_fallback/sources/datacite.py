"""What does DataCite say about a DOI? It has data sets, software and much that Crossref does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from catalog_fallback import classify
from catalog_fallback.results import Reply, Verdict
from catalog_fallback.sources import json_body, json_reply, text
from catalog_fallback.sources.json_path import dig, objects
from catalog_fallback.sources.papers import PaperSource, what_is_wrong_with

_UNIQUE_NAMES = json_body.UNIQUE_NAMES | {"errors", "status", "data", "attributes", "titles", "title"}


class DataCiteSource(PaperSource):
    """Data sets and papers by DOI. ``not_found`` is a 404 whose first error says 404 too."""

    default_url: ClassVar[str | None] = "https://api.datacite.org/dois/{id}"
    defaults: ClassVar[Mapping[str, Any]] = {**PaperSource.defaults, "RATE_LIMIT": {"CALLS": 100, "PER": 60}}

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Return what the reply means."""
        if reply.status == 404 and _says_not_found(json_body.decode(reply.body, _UNIQUE_NAMES)):
            return classify.verdict("empty_result")
        answer = json_reply.document(reply, _UNIQUE_NAMES)
        if isinstance(answer, Verdict):
            return answer
        record = answer.get("data") if isinstance(answer, dict) else None
        return _judge(record, item_id) if isinstance(record, dict) else classify.verdict("invalid_schema")


def _says_not_found(answer: Any) -> bool:
    errors = answer.get("errors") if isinstance(answer, dict) else None
    return isinstance(errors, list) and dig(errors, "status") == "404"


def _judge(record: dict[str, Any], item_id: str) -> Verdict:
    wrong = what_is_wrong_with(record.get("id"), item_id)
    if wrong is not None:
        return classify.verdict(wrong)
    about = record.get("attributes")
    if not isinstance(about, dict):
        return classify.verdict("invalid_schema")
    name = text.clean_name(dig(about, "titles", "title"))
    if not name:
        return classify.verdict("no_name")
    return classify.found(
        text.without_empty(
            {
                "id": item_id,
                "name": name,
                "authors": list(filter(None, map(_creator, objects(about.get("creators"), text.MAX_ENTRIES)))),
                "publisher": _publisher(about.get("publisher")),
                "published": _year(about.get("publicationYear")),
                "url": text.web_url(about.get("url")),
            }
        )
    )


def _creator(creator: dict[str, Any]) -> str:
    """Return a person as ``David J Mossman``, not as the ``Mossman, David J`` of the catalog; others by their name."""
    given, family = text.clean_name(creator.get("givenName")), text.clean_name(creator.get("familyName"))
    return text.joined((given, family), " ") if given and family else text.clean_name(creator.get("name"))


def _publisher(value: Any) -> str:
    """Return a publisher's name, which comes as a text or as an object with an identifier."""
    return text.clean_name(value.get("name") if isinstance(value, dict) else value)


def _year(value: Any) -> str:
    return str(value) if type(value) is int and 0 < value <= 9999 else text.clean_name(value)
