"""How is a long list of items fetched ahead of time? What is fresh is skipped, and the sources set the pace."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import close_old_connections

from catalog_fallback import clock, conf, services
from catalog_fallback.cache import entries_of
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.entry_form import Kept
from catalog_fallback.resilience.rate_limiter import buckets_of
from catalog_fallback.results import Lookup

#: Share of a source's limit that is used here; the rest is left to the site's visitors.
SHARE = 0.9
#: Slices that fit into the source's limit: no window of PER seconds then sees more than CALLS calls.
_SLICES = 10
#: Rounds of all workers that one slice takes where there is no limit.
_ROUNDS = 4
#: How often a slice is tried whose calls a guard refuses, and how long is waited before the next time, in seconds.
TRIES = 3
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: Slices in a row of which nobody took a single call: then it ends.
DEAD_SLICES = 3
#: Seconds after which a wait looks whether it shall end.
_STEP = 0.2


@dataclass(frozen=True, slots=True)
class Pace:
    """So many items at once, then nothing until ``interval`` seconds since the last slice began (0: no pause)."""

    source: str
    at_once: int
    interval: float

    @property
    def per_second(self) -> float:
        """Items a second, infinity without a limit."""
        return self.at_once / self.interval if self.interval else math.inf

    def seconds_for(self, count: int) -> float:
        """How long so many items take at least."""
        return count * self.interval / self.at_once


def pace_of(config: CatalogConfig, limit_rate: float | None = None) -> Pace:
    """Return the pace that stays inside the first source's RATE_LIMIT and below ``limit_rate`` items a second."""
    source = config.sources[0]
    items_a_call = conf.backend_of(source).batch_size
    calls, per_second = config.max_parallel * _ROUNDS, math.inf
    if source.rate_limit is not None:
        calls = min(config.max_parallel, max(1, source.rate_limit.calls // _SLICES))
        # The limiter counts over more than PER, to be right on several hosts: what it would refuse is too fast.
        per_second = SHARE * items_a_call * source.rate_limit.calls / buckets_of(source.rate_limit.per).span
    at_once = calls * items_a_call
    if limit_rate is not None:
        per_second = min(per_second, limit_rate)
        at_once = min(at_once, max(1, int(limit_rate)))
    return Pace(source.alias, at_once, at_once / per_second)


@dataclass(slots=True)
class Counts:
    """What became of the items; ``fresh`` ones were in the cache already."""

    fresh: int = 0
    found: int = 0
    not_found: int = 0
    unavailable: int = 0
    stopped: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.fresh + self.found + self.not_found + self.unavailable + self.stopped

    def add(self, lookup: Lookup) -> None:
        """Count the answer to one item."""
        setattr(self, lookup.state, getattr(self, lookup.state) + 1)


def _never() -> bool:
    return False


def _nothing(counts: Counts) -> None:
    pass


class Warming:
    """One run over a list, or over a part of it.

    ``is_over`` is asked between slices and while it waits; ``after_slice`` is told how far it is.
    """

    def __init__(
        self,
        config: CatalogConfig,
        *,
        language: str | None = None,
        limit_rate: float | None = None,
        is_refresh: bool = False,
        is_over: Callable[[], bool] = _never,
        after_slice: Callable[[Counts], None] = _nothing,
    ) -> None:
        self.counts = Counts()
        self.pace = pace_of(config, limit_rate)
        self._config = config
        self._asks: Mapping[str, Any] = {"catalog": config.alias, "language": language, "refresh": is_refresh}
        self._is_over = is_over
        self._after_slice = after_slice
        self._next_at = clock.monotonic()
        self._dead_slices = 0

    @property
    def nobody_answers(self) -> bool:
        """Whether it ended because no source could be called for a long time."""
        return self._dead_slices >= DEAD_SLICES

    def run(self, item_ids: Sequence[str]) -> bool:
        """Fetch the IDs (in their normal form) that are not fresh; False when it ended before all were done.

        Raises ValueError for a language that cannot be.
        """
        todo = item_ids if self._asks["refresh"] else self._without_fresh(item_ids)
        for start in range(0, len(todo), self.pace.at_once):
            if not self._wait(self._next_at - clock.monotonic()):
                return False
            self._next_at = clock.monotonic() + self.pace.interval
            close_old_connections()  # one that the database has ended would cost every slice that follows its answers
            self._fetch(todo[start : start + self.pace.at_once])
            self._after_slice(self.counts)
            if self.nobody_answers:
                return False
        return not self._is_over()

    def _without_fresh(self, item_ids: Sequence[str]) -> list[str]:
        """Leave out, with one round trip, what the cache has an answer to that is not over yet."""
        entries = entries_of[self._config.alias]
        queries = [entries.query(item_id, self._asks["language"]) for item_id in item_ids]
        now = clock.wall()
        kept = zip(item_ids, entries.look_many(queries), strict=True)
        todo = [item_id for item_id, each in kept if not _is_fresh(each, now)]
        self.counts.fresh += len(item_ids) - len(todo)
        return todo

    def _fetch(self, item_ids: Sequence[str]) -> None:
        """Look a slice up; what a guard refused is tried again a few times, when the guard may think better of it."""
        left = list(item_ids)
        for _ in range(TRIES):
            lookups = services.find_items(left, budget=self._budget(len(left)), **self._asks)
            refused = [lookup for lookup in lookups.values() if _is_refused(lookup)]
            for lookup in lookups.values():
                if not _is_refused(lookup):
                    self.counts.add(lookup)
            left = [lookup.item_id for lookup in refused]
            if not left or not self._wait(_pause(refused)):
                break
        self.counts.unavailable += len(left)
        self._dead_slices = self._dead_slices + 1 if len(left) == len(item_ids) else 0

    def _budget(self, count: int) -> float:
        """Nobody waits for an answer here: enough for every source to use all the time that it may."""
        limits = sum(source.attempts * source.timeout for source in self._config.sources)
        return max(self._config.budget, limits * math.ceil(count / self._config.max_parallel))

    def _wait(self, seconds: float) -> bool:
        """Wait; False as soon as it shall end."""
        until = clock.monotonic() + seconds
        while not self._is_over():
            left = until - clock.monotonic()
            if left <= 0:
                return True
            clock.sleep(min(left, _STEP))
        return False


def _is_fresh(kept: Kept, now: float) -> bool:
    return kept.entry is not None and kept.entry.expires_at > now


def _is_refused(lookup: Lookup) -> bool:
    """Whether the answer would have been another one if a guard had not refused a call."""
    return lookup.is_unavailable and any(not attempt.called for attempt in lookup.trace)


def _pause(refused: Sequence[Lookup]) -> float:
    """Return how long to wait before asking again, in seconds."""
    known = [lookup.retry_after for lookup in refused if lookup.retry_after is not None]
    return min(max(min(known, default=SHORTEST_PAUSE), SHORTEST_PAUSE), LONGEST_PAUSE)
