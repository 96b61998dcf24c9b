"""May one more call start in this window? Never more than CALLS in any window of PER, over all processes.

PER is cut into k buckets, counted under their numbers. A call adds one to the bucket that its clock names, *then* reads
the buckets that count, and starts only if their sum is within CALLS, and within one bucket's length of having looked at
the clock.

Why that holds: take the calls that started within some PER, and of those the one that was counted last. Whatever the
others did, they were counted before it read. Each of them looked at the clock at most one bucket before it started, and
so at most PER + 1 bucket before the last one did; hosts' clocks may differ by one bucket: it is at most k + 2 buckets
back. The last one may itself have waited a bucket between clock and count, and its clock may be a bucket behind: the
others are at most 2 buckets ahead. So it read them all, and all of them together were within CALLS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from catalog_fallback import clock
from catalog_fallback.configuration import RateLimitConfig
from catalog_fallback.resilience.buckets import Buckets
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.store import Store, count, number

#: Buckets a window, unless they would be shorter than hosts' clocks can be expected to agree, in seconds.
_BUCKETS, _SHORTEST = 20, 0.1
_REASON = "rate_limited"


@dataclass(frozen=True, slots=True)
class RatePermit:
    """One call that was counted; it starts before ``start_by`` (monotonic) or not at all."""

    key: str
    start_by: float


def buckets_of(per: float) -> Buckets:
    """Return the pieces into which a window is cut, and how many of them count."""
    pieces = max(1, min(_BUCKETS, math.floor(per / _SHORTEST)))
    return Buckets(per / pieces, back=pieces + 2, ahead=2)


class RateLimiter:
    """Counts the starts of one source's calls in one store."""

    def __init__(self, config: RateLimitConfig, store: Store, names: Names) -> None:
        self.calls = config.calls
        self._store = store
        self._head = names.key("calls")
        self._buckets = buckets_of(config.per)
        #: Counters live two windows longer than they are used.
        self._life = self._buckets.span + 2 * config.per

    def keys(self) -> tuple[str, ...]:
        """Return the keys of the buckets that count now."""
        return self._keys(self._buckets.number(clock.wall()))

    def look(self, found: Mapping[str, Any]) -> Refusal | None:
        """Return the refusal that a call would meet now; takes nothing."""
        now = clock.wall()
        return self._refusal(found, self._buckets.number(now), now, room=self.calls - 1)

    def left(self, found: Mapping[str, Any]) -> int:
        """Return how many calls there is room for now."""
        counted = sum(number(found.get(key)) for key in self.keys())
        return min(max(0, self.calls - counted), self.calls)  # what the cache holds may be garbage

    def take(self) -> RatePermit | Refusal | None:
        """Count one call, if there is room; None when the store cannot tell."""
        started_at, now = clock.monotonic(), clock.wall()
        bucket = self._buckets.number(now)
        own = self._key(bucket)
        if count(self._store, own, 1, self._life) is None:
            return None
        found = self._store.get_many(self._keys(bucket))
        if own not in found:  # what was counted just now is gone, and who knows what else
            return None if self._store.is_paused else Refusal(_REASON, self._buckets.size)
        permit = RatePermit(own, started_at + self._buckets.size)
        refusal = self._refusal(found, bucket, now, room=self.calls) or self._late(permit)
        if refusal is None:
            return permit
        self.give_back(permit)
        return refusal

    def give_back(self, permit: RatePermit) -> None:
        """Take back the count of a call that did not start: once, and never again."""
        self._store.incr(permit.key, -1, self._life)

    def note(self) -> None:
        """Count a call that another store let start."""
        count(self._store, self._key(self._buckets.number(clock.wall())), 1, self._life)

    def _late(self, permit: RatePermit) -> Refusal | None:
        return Refusal(_REASON, self._buckets.size) if clock.monotonic() > permit.start_by else None

    def _refusal(self, found: Mapping[str, Any], bucket: int, now: float, room: int) -> Refusal | None:
        window = self._buckets.window(bucket)
        counted = [number(found.get(self._key(each))) for each in window]
        too_many = sum(counted) - room
        if too_many <= 0:
            return None
        freed = zip(window, accumulate(counted), strict=True)
        last = next(each for each, calls in freed if calls >= too_many)
        return Refusal(_REASON, self._buckets.leaves_in(last, now))

    def _keys(self, bucket: int) -> tuple[str, ...]:
        return tuple(self._key(each) for each in self._buckets.window(bucket))

    def _key(self, bucket: int) -> str:
        return f"{self._head}:{bucket}"
