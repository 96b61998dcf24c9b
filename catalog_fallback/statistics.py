"""How did the calls of a source go lately? Counted by all processes together, where they share a cache.

Calls are added up in the process and written at most once a second. A number holds the calls of one class of latency in
one piece of time: how many there were, how many of them brought no answer, how many ran into their limit. So there are
few keys, whatever the traffic, and every one has a life.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog_fallback import clock
from catalog_fallback.resilience.buckets import Buckets
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.process_lock import ProcessLock
from catalog_fallback.resilience.store import Store, count, number
from catalog_fallback.results import Outcome, Verdict

#: Seconds that the figures look back.
WINDOW = 300.0
#: Upper bounds of the classes of latency, in seconds; what is longer is in a class of its own.
BOUNDS = (*(step * scale for scale in (0.001, 0.01, 0.1, 1.0) for step in (1, 1.5, 2, 3, 4, 5, 6, 8)), 10.0)

_PIECES = 10
_WRITE_EVERY = 1.0
#: Seconds for which the last failure is remembered.
_DAY = 86_400.0
#: Three numbers in one, which takes 63 bits: two million calls of one class in half a minute.
_BITS = 21
_MASK = (1 << _BITS) - 1
_CALL, _FAILURE, _TIMEOUT = 1, 1 << _BITS, 1 << (2 * _BITS)


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that brought no answer: why, and when (seconds since the epoch)."""

    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The calls of one source in the last five minutes, half a minute more or less.

    ``failures`` brought no answer (``temporary`` or ``stop``); ``timeouts`` are those of them that ran into their own
    limit. ``latencies`` counts the calls of each class.
    """

    calls: int = 0
    failures: int = 0
    timeouts: int = 0
    last_failure: Failure | None = None
    latencies: Mapping[int, int] = field(default_factory=dict)

    def percentile(self, percent: float) -> float | None:
        """Return the seconds within which so many percent of the calls ended, as exactly as the classes tell."""
        rank, passed = self.calls * percent / 100, 0
        for place in sorted(self.latencies):
            calls = self.latencies[place]
            if passed + calls >= rank:
                lower, upper = _limits(place)
                return lower + (upper - lower) * (rank - passed) / calls
            passed += calls
        return None


class Statistics:
    """Counts the calls of one source in one store. Making one writes nothing."""

    def __init__(self, store: Store, names: Names) -> None:
        self._store = store
        self._head = names.key("stats")
        self._buckets = Buckets(WINDOW / _PIECES, back=_PIECES, ahead=1)
        self._lock = ProcessLock()
        #: What has not been written yet: keys, and what is to be added to them.
        self._pending: deque[tuple[str, int]] = deque()
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

    def write_if_due(self) -> None:
        """Write what was noted, unless this process did so within the second."""
        if clock.monotonic() - self._written_at >= _WRITE_EVERY:
            self.write()

    def read(self) -> Figures:
        """Return the figures of now; a round trip."""
        keys = dict(self._keys())
        last = f"{self._head}:last"
        found = self._store.get_many((*keys, last))
        numbers = {key: number(found.get(key)) for key in keys}
        calls: Counter[int] = Counter()
        for key, value in numbers.items():
            if value:
                calls[keys[key]] += value & _MASK
        return Figures(
            calls=calls.total(),
            failures=sum(value >> _BITS & _MASK for value in numbers.values()),
            timeouts=sum(value >> 2 * _BITS for value in numbers.values()),
            last_failure=_failure(found.get(last)),
            latencies=calls,
        )

    def write(self) -> None:
        """Write what was noted."""
        sums: Counter[str] = Counter()
        with self._lock:
            self._written_at = clock.monotonic()
            failure, self._failure = self._failure, None
            while self._pending:
                key, delta = self._pending.popleft()
                sums[key] += delta
        for key, delta in sums.items():
            count(self._store, key, delta, 2 * WINDOW)
        if failure is not None:
            self._store.set(f"{self._head}:last", [failure.reason, failure.at], _DAY)

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


def _failure(value: Any) -> Failure | None:
    match value:
        case [str() as reason, int() | float() as at]:
            return Failure(reason, float(at))
    return None
