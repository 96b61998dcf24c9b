"""How did the calls of a source go lately? Counted by all processes together, where they share a cache.

Calls are added up in the process and written at most once a second. A number holds the calls of one class of latency in
one piece of time: how many there were, how many of them brought no answer, how many ran into their limit. So there are
few keys, whatever the traffic, and every one has a life.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog_fallback import clock
from catalog_fallback.process_lock import ProcessLock
from catalog_fallback.resilience.buckets import Buckets
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.store import Store, count
from catalog_fallback.results import Outcome, Verdict

#: Seconds that the figures look back.
WINDOW = 300.0
#: Upper bounds of the classes of latency, in seconds; what is longer is in a class of its own.
BOUNDS = (*(step * scale for scale in (0.001, 0.01, 0.1, 1.0) for step in (1, 1.5, 2, 3, 4, 5, 6, 8)), 10.0)

_PIECES = 10
_WRITE_EVERY = 1.0
#: Calls after which those of one key become one number: what waits to be written takes no more than this in memory.
_FOLD_AFTER = 64
#: Seconds for which the last failure is remembered.
_DAY = 86_400.0
#: Three numbers in one, which takes 63 bits: two million calls of one class in half a minute.
_BITS = 21
_MASK = (1 << _BITS) - 1
_CALL, _FAILURE, _TIMEOUT = 1, 1 << _BITS, 1 << (2 * _BITS)
_LIMIT = 1 << 3 * _BITS
_REASON = re.compile(r"[a-z0-9_]{1,64}")


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that brought no answer: why, and when (seconds since the epoch)."""

    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls that were counted together.

    ``failures`` brought no answer (``temporary`` or ``stop``); ``timeouts`` are those of them that ran into their own
    limit. ``latencies`` counts the calls of each class. ``limit`` is what a call may take at most, in seconds.
    """

    calls: int = 0
    failures: int = 0
    timeouts: int = 0
    latencies: Mapping[int, int] = field(default_factory=dict)
    limit: float = field(default=math.inf, compare=False)

    def percentile(self, percent: float) -> float | None:
        """Return the seconds within which so many percent of the calls ended, as exactly as the classes tell.

        That is more than the limit only where a call did not keep to it.
        """
        rank, passed = self.calls * percent / 100, 0
        for place in sorted(self.latencies):
            calls = self.latencies[place]
            if passed + calls >= rank:
                lower, upper = _limits(place)
                if lower <= self.limit:
                    upper = min(upper, self.limit)
                return lower + (upper - lower) * (rank - passed) / calls
            passed += calls
        return None


@dataclass(frozen=True, slots=True)
class Figures(Calls):
    """The calls of one source in the last five minutes, half a minute more or less.

    ``pieces`` are the same calls by half minutes, the oldest first; there are none where there were no calls.
    """

    last_failure: Failure | None = None
    pieces: tuple[Calls, ...] = ()


class Statistics:
    """Counts the calls of one source in one store. Making one writes nothing.

    ``limit`` is what a call may take at most, in seconds.
    """

    def __init__(self, store: Store, names: Names, limit: float = math.inf) -> None:
        self._store = store
        self._limit = limit
        self._head = names.key("stats")
        self._last = f"{self._head}:last"
        self._buckets = Buckets(WINDOW / _PIECES, back=_PIECES, ahead=1)
        self._lock = ProcessLock()
        #: What has not been written yet: keys, and what is to be added to them. The latest calls are not summed up yet.
        self._pending: deque[tuple[str, int]] = deque()
        self._sums: Counter[str] = Counter()
        self._failure: Failure | None = None
        self._written_at = float("-inf")

    def note(self, verdict: Verdict, seconds: float, *, timed_out: bool = False) -> None:
        """Note one call that was made; writes nothing yet."""
        delta = _CALL
        if verdict.outcome is Outcome.TEMPORARY or verdict.outcome is Outcome.STOP:
            delta += _FAILURE + (_TIMEOUT if timed_out else 0)
            self._failure = Failure(verdict.reason, clock.wall())
        key = self._key(self._buckets.number(clock.wall()), bisect_left(BOUNDS, seconds))
        self._pending.append((key, delta))
        if len(self._pending) >= _FOLD_AFTER:
            with self._lock.own:
                self._sum_up_locked()

    def write_if_due(self) -> None:
        """Write what was noted, unless this process did so within the second."""
        if clock.monotonic() - self._written_at >= _WRITE_EVERY:
            self.write()

    def read(self) -> Figures:
        """Return the figures of now; a round trip."""
        return self.of(self._store.get_many(self.keys()))

    def keys(self) -> tuple[str, ...]:
        """Return the keys of the figures of now: some hundreds, to be read in one round trip."""
        return (*(key for key, _ in self._keys()), self._last)

    def of(self, found: Mapping[str, Any]) -> Figures:
        """Return the figures that were read; what is no figure is as good as missing."""
        window = self._buckets.window(self._buckets.number(clock.wall()))
        pieces = tuple(self._piece(bucket, found) for bucket in window)
        whole = _sum(pieces, self._limit)
        return Figures(
            calls=whole.calls,
            failures=whole.failures,
            timeouts=whole.timeouts,
            latencies=whole.latencies,
            limit=self._limit,
            last_failure=_failure(found.get(self._last)),
            pieces=_history(pieces) if whole.calls else (),
        )

    def _piece(self, bucket: int, found: Mapping[str, Any]) -> Calls:
        counted = ((place, _counted(found.get(self._key(bucket, place)))) for place in range(len(BOUNDS) + 1))
        parts = [Calls(*numbers, {place: numbers[0]}) for place, numbers in counted if numbers is not None]
        return _sum(parts, self._limit)

    def write(self) -> None:
        """Write what was noted."""
        with self._lock.own:
            self._written_at = clock.monotonic()
            failure, self._failure = self._failure, None
            self._sum_up_locked()
            sums, self._sums = self._sums, Counter()
        for key, delta in sums.items():
            count(self._store, key, delta, 2 * WINDOW)
        if failure is not None:
            self._store.set(self._last, [failure.reason, failure.at], _DAY)

    def _sum_up_locked(self) -> None:
        while self._pending:
            key, delta = self._pending.popleft()
            self._sums[key] += delta

    def _keys(self) -> Iterator[tuple[str, int]]:
        """Yield all keys that count now, each with its class of latency."""
        for bucket in self._buckets.window(self._buckets.number(clock.wall())):
            for place in range(len(BOUNDS) + 1):
                yield self._key(bucket, place), place

    def _key(self, bucket: int, place: int) -> str:
        return f"{self._head}:{bucket}:{place}"


def _limits(place: int) -> tuple[float, float]:
    """The bounds of a class of latency; the last one has but a lower one."""
    lower = BOUNDS[place - 1] if place else 0.0
    return lower, BOUNDS[place] if place < len(BOUNDS) else lower


def _sum(parts: Sequence[Calls], limit: float) -> Calls:
    latencies: Counter[int] = Counter()
    for part in parts:
        latencies.update(part.latencies)
    return Calls(
        calls=latencies.total(),
        failures=sum(part.failures for part in parts),
        timeouts=sum(part.timeouts for part in parts),
        latencies=latencies,
        limit=limit,
    )


def _history(pieces: tuple[Calls, ...]) -> tuple[Calls, ...]:
    """Leave out what lies ahead, unless a host's clock is there already."""
    return pieces if pieces[-1].calls else pieces[:-1]


def _counted(value: Any) -> tuple[int, int, int] | None:
    """Calls, failures and time-outs of one number; None for anything that nobody can have counted."""
    if type(value) is not int or not 0 < value < _LIMIT:
        return None
    calls, failures, timeouts = value & _MASK, value >> _BITS & _MASK, value >> 2 * _BITS
    return (calls, failures, timeouts) if calls >= failures >= timeouts else None


def _failure(value: Any) -> Failure | None:
    match value:
        case [str() as reason, int() | float() as at] if _REASON.fullmatch(reason) and 0 <= at <= clock.wall() + _DAY:
            return Failure(reason, float(at))
    return None
