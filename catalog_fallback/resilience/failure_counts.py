"""Has the source failed often enough? Failures in a row, and the share of calls that failed, in a sliding window.

The counters of one breaker in one store. A failure is written at once. Successes are added up in the process and
written at most once a second; only where failures in a row had been counted is there something to clear at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog_fallback import clock
from catalog_fallback.configuration import BreakerConfig
from catalog_fallback.process_lock import ProcessLock
from catalog_fallback.resilience.buckets import Buckets
from catalog_fallback.resilience.keys import token
from catalog_fallback.resilience.store import Store, count, number

_BUCKETS = 10
#: One number counts both: calls in its lower half, failures in its upper half.
_CALL, _FAILURE = 1, (1 << 32) + 1
_FLUSH_EVERY = 1.0


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted within the window."""

    in_a_row: int
    failures: int
    calls: int


class FailureCounts:
    """The counters of one breaker; all names carry the generation."""

    def __init__(self, config: BreakerConfig, store: Store, head: str) -> None:
        self._config = config
        self._store = store
        self._head = head
        self._buckets = Buckets(config.window / _BUCKETS, back=_BUCKETS - 1, ahead=1)
        #: Counters live two windows longer than they are used.
        self._life = 3.5 * config.window
        self._lock = ProcessLock()
        #: Successes not yet written: the keys of their buckets.
        self._pending: deque[str] = deque()
        self._flushed_at = float("-inf")
        #: Until when (monotonic) failures of this process are within the window.
        self._has_failures_until = float("-inf")
        #: The generation in which this process last counted a failure in a row, until it saw it cleared.
        self._uncleared = ""

    def keys(self, generation: str) -> tuple[str, ...]:
        """Return the key that says whether failures in a row were counted."""
        return (self._run(generation),)

    def are_in_a_row(self, generation: str, found: Mapping[str, Any]) -> bool:
        """Whether there was something to clear when ``found`` was read."""
        return self._run(generation) in found

    def succeeded(self, generation: str, *, has_run: bool) -> str:
        """Count a success; return the rule that is met, if any. ``has_run``: there was something to clear before."""
        if has_run or self._uncleared == generation:
            self._uncleared = ""
            self._store.delete(self._run(generation))
        if self._config.failure_rate is None:
            return ""
        self._pending.append(self._bucket("tally", generation))
        self._flush()
        if clock.monotonic() >= self._has_failures_until:
            return ""
        return self._rule(self._read(generation, run=""))

    def failed(self, generation: str, found: Mapping[str, Any]) -> str | None:
        """Count a failure; return the rule that is met, ``""`` where none is, None when the store cannot tell."""
        run = ""
        if self._config.consecutive_failures is not None:
            run = self._counted_run(generation, found)
            if not run:
                return None
        if self._config.failure_rate is not None:
            if self._count(self._bucket("tally", generation), _FAILURE) is None:
                return None
            self._has_failures_until = clock.monotonic() + self._config.window
        return self._rule(self._read(generation, run))

    def _counted_run(self, generation: str, found: Mapping[str, Any]) -> str:
        """Count one more failure in a row; return the run's name, empty when the store cannot tell.

        A success ends the run by deleting its name: what was counted under it counts no more.
        """
        run = self._named_run(self._run(generation), found)
        if not run or self._count(self._bucket("run", run), 1) is None:
            return ""
        self._uncleared = generation
        return run

    def _named_run(self, key: str, found: Mapping[str, Any]) -> str:
        life = 2 * self._life
        run = found.get(key)
        if isinstance(run, str):
            self._store.touch(key, life)
            return run
        new = token()
        is_new = self._store.add(key, new, life)
        if is_new is None:
            return ""
        winner = new if is_new else self._store.get_many((key,)).get(key)
        # Gone again: a success came between, and what is counted under a name that nobody reads is as good as cleared.
        return winner if isinstance(winner, str) else new

    def _rule(self, tally: Tally) -> str:
        config = self._config
        if config.consecutive_failures is not None and tally.in_a_row >= config.consecutive_failures:
            return "consecutive_failures"
        if config.failure_rate is None or tally.calls < max(1, config.minimum_calls):
            return ""
        return "failure_rate" if tally.failures / tally.calls >= config.failure_rate else ""

    def _read(self, generation: str, run: str) -> Tally:
        tallies = self._window("tally", generation) if self._config.failure_rate is not None else ()
        runs = self._window("run", run) if run else ()
        found = self._store.get_many((*tallies, *runs))
        sums = [divmod(number(found.get(key)), 1 << 32) for key in tallies]
        unwritten = sum(1 for key in self._pending.copy() if key in tallies)
        return Tally(
            in_a_row=sum(number(found.get(key)) for key in runs),
            failures=sum(failures for failures, _ in sums),
            calls=sum(calls for _, calls in sums) + unwritten,
        )

    def _flush(self) -> None:
        """Write the successes that have been added up, unless this process did so within the second."""
        now = clock.monotonic()
        if now - self._flushed_at < _FLUSH_EVERY:
            return
        with self._lock.own:
            if now - self._flushed_at < _FLUSH_EVERY:
                return
            self._flushed_at = now
            sums: dict[str, int] = {}
            while self._pending:
                key = self._pending.popleft()
                sums[key] = sums.get(key, 0) + _CALL
        for key, calls in sums.items():
            self._count(key, calls)

    def _count(self, key: str, delta: int) -> int | None:
        return count(self._store, key, delta, self._life)

    def _run(self, generation: str) -> str:
        return f"{self._head}:run:{generation}"

    def _bucket(self, kind: str, name: str) -> str:
        return f"{self._head}:{kind}:{name}:{self._buckets.number(clock.wall())}"

    def _window(self, kind: str, name: str) -> tuple[str, ...]:
        window = self._buckets.window(self._buckets.number(clock.wall()))
        return tuple(f"{self._head}:{kind}:{name}:{bucket}" for bucket in window)
