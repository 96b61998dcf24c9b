"""Does the proof of the rate limiter hold when it is tried, and can nothing in it be spared?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_fallback.configuration import RateLimitConfig
from catalog_fallback.resilience.buckets import Buckets
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.rate_limiter import RateLimiter, RatePermit
from tests.resilience.worlds import FaultyStore, MovableClock

NAMES = Names("default", "primary")


#: Before a command: so many buckets pass, that process makes a whole call. Last: buckets from permit to start.
Interruption = tuple[float, int, float]


class World:
    """Processes with clocks of their own, each of which may be held up at every command by what others do."""

    def __init__(self, moving: MovableClock, skews: list[float], calls: int, per: float) -> None:
        self.moving = moving
        self.skews = skews
        self.store = FaultyStore()
        self.limiters = [RateLimiter(RateLimitConfig(calls, per), self.store, NAMES) for _ in skews]
        self.bucket = self.limiters[0]._buckets.size
        self.starts: list[float] = []

    def take(self, process: int, interruptions: list[Interruption]) -> None:
        """One call; ``interruptions``: before each command so much time passes, and another process makes its call."""
        outer = self.moving.skew
        self.moving.skew = self.skews[process]
        self.store.interruptions += [self.interruption(*each) for each in interruptions]
        permit = self.limiters[process].take()
        if interruptions:
            self.store.interruptions.clear()
        if isinstance(permit, RatePermit):
            late = interruptions[0][2] if interruptions else 0.0
            self.moving.move(late * self.bucket)
            if self.moving.monotonic() <= permit.start_by:
                self.starts.append(self.moving.now)
        self.moving.skew = outer

    def interruption(self, buckets: float, process: int, _late: float) -> Callable[[], None]:
        """Let time pass, let another process make a whole call."""

        def happen() -> None:
            self.moving.move(buckets * self.bucket)
            if process < len(self.skews):
                self.take(process, [])

        return happen

    def most_in_any_window(self, per: float) -> int:
        """The largest number of starts within any ``per`` seconds."""
        starts = sorted(self.starts)
        return max((sum(start <= each <= start + per for each in starts) for start in starts), default=0)


PART = st.sampled_from([0.0, 0.01, 0.3, 0.49, 0.5, 0.9, 0.99, 1.0])
STEP = st.tuples(
    st.sampled_from([0.0, 0.2, 0.99, 1.0, 3.0, 17.0, 20.0, 20.9, 22.0]),
    st.integers(0, 2),
    st.lists(st.tuples(PART, st.integers(0, 3), PART), max_size=4),
)


@settings(max_examples=300, deadline=None)
@given(
    skews=st.lists(st.sampled_from([0.0, 0.5, 0.99, 1.0]), min_size=3, max_size=3),
    phase=PART,
    calls=st.integers(1, 3),
    steps=st.lists(STEP, max_size=14),
)
def test_never_more_than_calls_in_any_window(
    skews: list[float], phase: float, calls: int, steps: list[tuple[float, int, list[Interruption]]]
) -> None:
    """Skewed clocks, delays at every command, calls of others in between: the limit holds."""
    with pytest.MonkeyPatch.context() as patch:
        moving = MovableClock(1_800_000_000.0 + phase).install(patch)
        world = World(moving, skews, calls, per=20.0)
        assert world.bucket == 1.0
        for pause, process, interruptions in steps:
            moving.move(pause)
            world.take(process, interruptions)
        assert world.most_in_any_window(20.0) <= calls


def long_ago_by_the_clocks(world: World) -> None:
    """The first looks at its clock a bucket before it starts; the second starts PER later, its clock is ahead."""
    world.take(0, [(0.0, NOBODY, 0.99)])
    world.moving.move(20.0)
    world.take(1, [])


def in_the_future_by_the_clocks(world: World) -> None:
    """The first is held up between clock and count; meanwhile a second starts, whose clock is ahead."""
    world.take(0, [(0.98, 1, 0.0)])


NOBODY = 9


@pytest.mark.parametrize(
    ("schedule", "back", "ahead"),
    [
        pytest.param(long_ago_by_the_clocks, 21, 2, id="one bucket less back"),
        pytest.param(in_the_future_by_the_clocks, 22, 1, id="one bucket less ahead"),
    ],
)
def test_no_bucket_of_the_window_can_be_spared(
    moving: MovableClock,
    monkeypatch: pytest.MonkeyPatch,
    schedule: Callable[[World], None],
    back: int,
    ahead: int,
) -> None:
    """The worst schedules at both ends: one call starts; with a window that is one bucket smaller two would."""

    def started() -> int:
        moving.now = 1_800_000_000.05
        world = World(moving, [0.0, 1.0], calls=1, per=20.0)
        schedule(world)
        return world.most_in_any_window(20.0)

    assert started() == 1
    monkeypatch.setattr(Buckets, "window", lambda self, number: range(number - back, number + ahead + 1))
    assert started() == 2
