"""What do a reply's headers say about waiting and keeping? ``Retry-After`` and ``Cache-Control``, never raising.

Header names are in lower case, as a :class:`~catalog_fallback.results.Reply` has them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache

#: A source is left alone for an hour at most, whatever it asks for.
MAX_RETRY_AFTER = 3600.0
#: CPython converts no longer digit strings to int; longer ones count as garbage.
_MAX_DIGITS = 4300
_MAX_CACHE_CONTROL = 4096
#: Longer than anything is kept; a number with more digits than this counts as this.
_FOR_EVER = 10_000_000_000.0
_SECONDS = re.compile(r"(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]+))?")
#: IMF-fixdate, RFC 850 and asctime have a day name and a time in common; ``parsedate`` alone accepts far more.
_DATE = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [ -~]{1,40}")
_DIRECTIVE = re.compile(r"""([^\s,=;"]+)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^,]*))?""")


@dataclass(frozen=True, slots=True)
class Directives:
    """What ``Cache-Control`` and ``Age`` allow. ``ttl`` is None where they set no limit."""

    may_store: bool = True
    ttl: float | None = None
    may_serve_stale: bool = True


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that ``Retry-After`` asks for, between 0 and an hour; None when absent or unparsable.

    Parts of a second are rounded up. A date counts from the reply's own ``Date`` where it has one, so that a clock
    that is wrong on either side does not matter, else from ``now`` (seconds since the epoch).
    """
    value = headers.get("retry-after", "").strip()
    seconds = _SECONDS.fullmatch(value)
    if seconds is not None:
        return _clamped_seconds(seconds["whole"], seconds["part"])
    moment = _moment(value)
    if moment is None:
        return None
    sent_at = _moment(headers.get("date", "").strip())
    return min(max(0.0, math.ceil(moment - (now if sent_at is None else sent_at))), MAX_RETRY_AFTER)


def _clamped_seconds(whole: str, part: str | None) -> float | None:
    if len(whole) > _MAX_DIGITS:
        return None
    whole = whole.lstrip("0")
    if len(whole) > len(str(int(MAX_RETRY_AFTER))):
        return MAX_RETRY_AFTER
    has_part = part is not None and part.strip("0") != ""
    return min(float(int(whole or "0") + has_part), MAX_RETRY_AFTER)


def _moment(value: str) -> float | None:
    """Return an HTTP date (any of the three forms) as seconds since the epoch; without a zone it is UTC."""
    if _DATE.fullmatch(value) is None:
        return None
    try:
        moment = parsedate_to_datetime(value)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def directives(headers: Mapping[str, str]) -> Directives:
    """Return what the upstream allows a shared cache to do with this reply.

    ``s-maxage`` is meant for shared caches and wins over ``max-age``; of duplicates the shortest counts, a bad value
    is 0. The age that the reply already has is taken off.
    """
    value = headers.get("cache-control", "")
    if len(value) > _MAX_CACHE_CONTROL:
        return Directives(may_store=False, ttl=0.0, may_serve_stale=False)
    said = _said(value)
    if said.ttl is None or "age" not in headers:
        return said
    return replace(said, ttl=max(0.0, said.ttl - _age(headers)))


@lru_cache(maxsize=64)
def _said(value: str) -> Directives:
    """Return what ``Cache-Control`` says; an API says the same with nearly every reply."""
    said = _parsed(value)
    return Directives(
        may_store=said.keys().isdisjoint(("no-store", "private", "no-cache")),
        ttl=said.get("s-maxage", said.get("max-age")),
        may_serve_stale=said.keys().isdisjoint(("must-revalidate", "proxy-revalidate")),
    )


def _parsed(value: str) -> dict[str, float]:
    """Return directive → seconds (0 for those without), the shortest of duplicates."""
    said: dict[str, float] = {}
    for match in _DIRECTIVE.finditer(value):
        name = match[1].lower()
        said[name] = min(_whole_seconds((match[2] or "").strip().strip('"')), said.get(name, _FOR_EVER))
    return said


def _whole_seconds(digits: str) -> float:
    if not (digits.isascii() and digits.isdigit()):
        return 0.0
    return float(int(digits)) if len(digits) <= len("9999999999") else _FOR_EVER


def _age(headers: Mapping[str, str]) -> float:
    return max(_ages(headers.get("age", "")), default=0.0)


def _ages(value: str) -> Iterator[float]:
    """Proxies that each add a line make a list; the longest age is the strictest."""
    return (_whole_seconds(part.strip()) for part in value[:_MAX_CACHE_CONTROL].split(","))
