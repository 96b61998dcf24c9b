"""What may HEADERS, OPTIONS, URL and the lists of statuses and reasons hold?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from catalog_fallback import classify
from catalog_fallback.conf.complaints import Place, did_you_mean, sized
from catalog_fallback.conf.values import members, table
from catalog_fallback.results import Outcome
from catalog_fallback.sources.url_template import URLTemplate

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"([\x21-\x7e\xa1-\xff]([\t\x20-\x7e\xa0-\xff]*[\x21-\x7e\xa1-\xff])?)?")
_HTTP_REASON = re.compile(r"http_[1-9][0-9][0-9]")
#: Client errors that speak of the caller or of the moment, never of the item.
_NEVER_NOT_FOUND = frozenset({401, 403, 407, 408, 425, 429})
CAN_MEAN_NOT_FOUND = frozenset({204, *range(400, 500)}) - _NEVER_NOT_FOUND
_NEXT_OUTCOMES = ("not_found", "temporary", "stop")


def headers(value: object, place: Place) -> Mapping[str, Any]:
    """Read HEADERS: names to texts or callables, none of which is ever shown."""
    found: dict[str, Any] = {}
    for name, content in table(value, place, "a dict of header name to text or callable").items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            place.complain("E003", f"has {sized(name)} as a key, which is no header name.", 'Write it as "X-Api-Key".')
        elif callable(content) or (isinstance(content, str) and _HEADER_VALUE.fullmatch(content)):
            found[name] = content
        else:
            place.at(name).refuse(content, "a text without line breaks and outer blanks, or a callable returning one")
    return MappingProxyType(found)


def options(value: object, place: Place) -> Mapping[str, Any]:
    """Read OPTIONS: keyword arguments of the backend, none of which is ever shown."""
    given = table(value, place, "a dict of keyword arguments for the backend")
    for name in given:
        if not isinstance(name, str) or not name.isidentifier():
            place.complain(
                "E003",
                f"has {sized(name)} as a key, which is no keyword argument.",
                "Use the names of the backend's keyword arguments.",
            )
    return MappingProxyType(dict(given))


def url(value: object, place: Place) -> str | None:
    """Read URL: a template that cannot be led astray. It may hold a key, so it is never shown."""
    if not isinstance(value, str) or not value:
        place.refuse(value, 'an http(s) URL with "{id}" in its path or query')
        return None
    for problem in URLTemplate(value).complaints():
        place.complain("E006", f"is no usable URL: {problem}", 'Write it as "https://api.example.com/items/{id}".')
    return value


def not_found_statuses(value: object, place: Place) -> frozenset[int]:
    """Read NOT_FOUND_STATUSES: only statuses that can mean "no such item"."""
    statuses = members(value, place, "a list of HTTP statuses, as in [404, 410]")
    for status in statuses:
        if not isinstance(status, int) or status not in CAN_MEAN_NOT_FOUND:
            place.complain(
                "E010",
                f"holds {place.shown(status)}, which cannot mean that there is no such item.",
                "List 204 or client errors that the API documents as such (404, 410); never 401, 403, 407, 408, 425, "
                "429, a redirect or a server error.",
            )
    return frozenset(status for status in statuses if isinstance(status, int))


def temporary_reasons(value: object, place: Place) -> frozenset[str]:
    """Read TEMPORARY_REASONS: only reasons that are a stop otherwise."""
    reasons = _reasons(value, place, ())
    for reason in sorted(reasons):
        outcome = classify.of_reason(reason)
        if outcome is not Outcome.STOP or reason == "deadline":
            why = "is always a stop" if reason == "deadline" else f"is {outcome} already"
            place.complain("E011", f'holds "{reason}", which {why}.', "List only reasons that are a stop by default.")
    return reasons


def next_on(value: object, place: Place) -> frozenset[str]:
    """Read NEXT_ON: outcomes or reasons after which the next source is asked."""
    return _reasons(value, place, _NEXT_OUTCOMES)


def _reasons(value: object, place: Place, outcomes: tuple[str, ...]) -> frozenset[str]:
    """The reasons of the classification table, or outcomes, in a list. A find ends a search: it is no reason."""
    known = [*outcomes, *(reason for reason, outcome in classify.REASONS.items() if outcome is not Outcome.FOUND)]
    known.append("cooling_down")
    found = set()
    for reason in members(value, place, 'a list of texts, as in ["http_500"]'):
        if isinstance(reason, str) and (reason in known or _is_http_reason(reason)):
            found.add(reason)
        else:
            hint = did_you_mean(reason, [*known, "http_404", "http_500"])
            place.complain("E011", f"holds {place.shown(reason)}, which is no reason that can stand here.", hint)
    return frozenset(found)


def _is_http_reason(reason: str) -> bool:
    return _HTTP_REASON.fullmatch(reason) is not None and reason != "http_200"
