"""Where did the time of a look-up go? One bar a call, drawn against the budget; positions in percent of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from django.utils.translation import gettext as _

from catalog_fallback import conf
from catalog_fallback.results import Attempt, Lookup, Outcome
from portal.wording import OUTCOMES, Text, reason_words, seconds_words

#: The thinnest bar that can still be seen.
_THINNEST = 0.8


class Bar(NamedTuple):
    """One line of the trace. ``start``, ``width``, ``limit_start`` and ``limit_width`` are for attributes of SVG."""

    source: str
    outcome: Outcome
    outcome_words: Text
    reason: str
    reason_words: str
    called: bool
    took: str
    start: str
    width: str
    limit_width: str
    spoken: str


class Timeline(NamedTuple):
    """All calls of a look-up. ``spent`` and ``budget`` are seconds, for attributes."""

    bars: tuple[Bar, ...]
    spent: str
    budget: str
    spent_words: str
    budget_words: str


def timeline(lookup: Lookup, elapsed: float) -> Timeline:
    """Draw a look-up that took ``elapsed`` seconds."""
    config = conf.catalog(lookup.catalog)
    limits = {source.alias: source.timeout for source in config.sources}
    whole = max(config.budget, elapsed, sum(attempt.elapsed_ms for attempt in lookup.trace) / 1000)
    return Timeline(
        bars=tuple(_bars(lookup.trace, limits, whole)),
        spent=f"{elapsed:.4f}",
        budget=f"{config.budget:.4f}",
        spent_words=seconds_words(elapsed),
        budget_words=seconds_words(config.budget),
    )


def _bars(trace: tuple[Attempt, ...], limits: Mapping[str, float], whole: float) -> Iterator[Bar]:
    """One bar after the other; between them nothing happens that would be seen."""
    started = 0.0
    for attempt in trace:
        seconds = attempt.elapsed_ms / 1000
        limit = min(limits.get(attempt.source, 0.0), whole - started)
        took = seconds_words(seconds) if attempt.called else _("not called")
        yield Bar(
            attempt.source,
            attempt.outcome,
            OUTCOMES[attempt.outcome],
            attempt.reason,
            reason_words(attempt.reason),
            attempt.called,
            took,
            start=_percent(min(started / whole, 1 - _THINNEST / 100)),
            width=_percent(max(seconds / whole, _THINNEST / 100)),
            limit_width=_percent(limit / whole if attempt.called else 0.0),
            spoken=_spoken(started, took, attempt.called),
        )
        started += seconds


def _spoken(started: float, took: str, called: bool) -> str:
    if not called:
        return took
    return _("began after %(start)s, took %(took)s") % {"start": seconds_words(started), "took": took}


def _percent(part: float) -> str:
    return f"{100 * part:.3f}"
