"""How long may a lookup take at worst, and who has to wait longer than that? Computed from the inside out."""

from __future__ import annotations

from dataclasses import dataclass

from catalog_fallback.calling import longest_pause
from catalog_fallback.configuration import CatalogConfig, SourceConfig


@dataclass(frozen=True, slots=True)
class Waits:
    """The limits of one catalog, in seconds, each layer around the one before it.

    ``calls``: all attempts at each source, with the pauses between them. ``all_calls``: their sum. ``lookup``: the
    worst case of one lookup, the sum or BUDGET, whichever is less. ``outer``: what the web server waits for a request
    (OUTER_TIMEOUT).
    """

    calls: tuple[tuple[str, float], ...]
    all_calls: float
    budget: float
    lookup: float
    outer: float

    @property
    def fits(self) -> bool:
        """The web server waits longer than a lookup takes."""
        return self.outer > self.lookup

    @property
    def is_cut(self) -> bool:
        """BUDGET ends a lookup before all sources had all of their time."""
        return self.all_calls > self.budget


def waits_of(config: CatalogConfig) -> Waits:
    """Return the limits that a catalog's settings come to."""
    calls = tuple((source.alias, longest_call(source)) for source in config.sources)
    total = sum(seconds for _, seconds in calls)
    return Waits(calls, total, config.budget, min(config.budget, total), config.outer_timeout)


def longest_call(source: SourceConfig) -> float:
    """Return the seconds that all attempts at a source take at most, pauses included."""
    return source.attempts * source.timeout + sum(longest_pause(retry) for retry in range(1, source.attempts))


def sum_of_limits(config: CatalogConfig) -> float:
    """Return the seconds that the calls of one lookup may take: the sum of ATTEMPTS × TIMEOUT."""
    return sum(source.attempts * source.timeout for source in config.sources)
