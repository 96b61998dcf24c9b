"""How are cases timed against each other so that the noise of the machine cancels out?

All cases run in one process, in rounds whose order is shuffled. A ratio is the median over the rounds of (time of the
case / time of its base in the same round): what disturbs the machine for longer than a round disturbs both.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

Case = Callable[[], object]

#: Seconds that one case takes in one round.
SLICE = 0.015
_MOST_LOOPS = 100_000


@dataclass(frozen=True, slots=True)
class Timing:
    """One case over all rounds: times in microseconds, one round's mean each."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median round."""
        return statistics.median(self.rounds)

    def ratio_to(self, base: Timing) -> float:
        """The median of the rounds' ratios."""
        return statistics.median(own / other for own, other in zip(self.rounds, base.rounds, strict=True))


def interleave(
    cases: Mapping[str, Case],
    rounds: int,
    *,
    seconds: float = SLICE,
    shuffle: Callable[[list[str]], None] = random.shuffle,
    now: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time every case once in each round, for about so many seconds each."""
    loops = {name: loops_for(case, seconds, now) for name, case in cases.items()}
    times: dict[str, list[float]] = {name: [] for name in cases}
    order = list(cases)
    with _without_collector():
        for _ in range(rounds):
            shuffle(order)
            for name in order:
                times[name].append(_mean(cases[name], loops[name], now))
            gc.collect()
    return {name: Timing(tuple(each)) for name, each in times.items()}


def loops_for(case: Case, seconds: float, now: Callable[[], float] = time.perf_counter) -> int:
    """Return how often the case fits into so many seconds, after a call that warms it up."""
    case()
    once = min(_mean(case, 3, now) for _ in range(3)) / 1e6
    return max(1, min(_MOST_LOOPS, int(seconds / max(once, 1e-9))))


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that so many percent of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, round(len(ordered) * percent / 100) - 1))]


def _mean(case: Case, loops: int, now: Callable[[], float]) -> float:
    """Microseconds of one call."""
    started = now()
    for _ in range(loops):
        case()
    return (now() - started) / loops * 1e6


@contextmanager
def _without_collector() -> Iterator[None]:
    """The garbage of one case must not be collected at the expense of another."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
