"""Does the rate limiter never let more than CALLS start in any window of PER?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_fallback.configuration import RateLimitConfig
from catalog_fallback.resilience.buckets import Buckets
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.rate_limiter import RateLimiter, RatePermit
from catalog_fallback.resilience.refusal import Refusal
from tests.resilience.worlds import FaultyStore, MovableClock

NAMES = Names("default", "primary")


def limiter(store: FaultyStore, calls: int = 3, per: float = 10.0) -> RateLimiter:
    """A limiter of one process."""
    return RateLimiter(RateLimitConfig(calls, per), store, NAMES)


def taken(limit: RateLimiter, tries: int) -> int:
    """How many of so many tries are let through."""
    return sum(isinstance(limit.take(), RatePermit) for _ in range(tries))


def test_so_many_calls_and_no_more(store: FaultyStore) -> None:
    """CALLS calls are let through at once, the next is refused and told when to come back."""
    limit = limiter(store, calls=3, per=10.0)
    assert taken(limit, 3) == 3
    refusal = limit.take()
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "rate_limited"
    assert refusal.retry_after is not None
    assert 10.0 < refusal.retry_after <= 11.5


def test_retry_after_is_right(store: FaultyStore, moving: MovableClock) -> None:
    """After the time named there is room, and a moment before there is none."""
    limit = limiter(store, calls=2, per=10.0)
    taken(limit, 1)
    moving.move(4)
    taken(limit, 1)
    refusal = limit.look(store.get_many(limit.keys()))
    assert refusal is not None
    assert refusal.retry_after is not None
    moving.move(refusal.retry_after - 0.01)
    assert taken(limit, 2) == 0
    moving.move(0.02)
    assert taken(limit, 2) == 1


def test_retry_after_of_many_calls_at_different_times(store: FaultyStore, moving: MovableClock) -> None:
    """A limiter that is over its limit (lost give-backs) waits until enough of its calls have left the window."""
    limit = limiter(store, calls=2, per=10.0)
    for _ in range(4):
        limit.note()
        moving.move(2)
    refusal = limit.look(store.get_many(limit.keys()))
    assert refusal is not None
    assert refusal.retry_after is not None
    moving.move(refusal.retry_after + 0.01)
    assert taken(limit, 2) == 1


def test_looking_takes_nothing(store: FaultyStore) -> None:
    """A look writes nothing, however often, and says what a call would meet."""
    limit = limiter(store, calls=1)
    for _ in range(5):
        assert limit.look(store.get_many(limit.keys())) is None
    assert store.contents() == {}
    taken(limit, 1)
    assert limit.look(store.get_many(limit.keys())) is not None
    assert {name for name, _ in store.commands} <= {"get_many", "add", "incr"}


def test_a_call_costs_two_commands(store: FaultyStore) -> None:
    """Counting and reading back: two commands where the bucket exists."""
    limit = limiter(store)
    taken(limit, 1)
    store.commands.clear()
    taken(limit, 1)
    assert [name for name, _ in store.commands] == ["incr", "get_many"]


def test_django_ratelimit_317_no_double_rate_at_the_edge(store: FaultyStore, moving: MovableClock) -> None:
    """Ten calls before an edge leave none for after it."""
    limit = limiter(store, calls=10, per=1.0)
    moving.now = 1_800_000_000.95
    assert taken(limit, 12) == 10
    moving.move(0.1)
    assert taken(limit, 12) == 0


def test_django_ratelimit_215_refused_calls_use_nothing_up(store: FaultyStore, moving: MovableClock) -> None:
    """A caller who hammers while it is limited is let through again after a window and its margin."""
    limit = limiter(store, calls=3, per=10.0)
    taken(limit, 3)
    for _ in range(100):
        assert taken(limit, 1) == 0
        moving.move(0.1)
    moving.move(1.6)
    assert taken(limit, 5) == 3


def test_django_ratelimit_85_counters_outlive_their_window(store: FaultyStore, moving: MovableClock) -> None:
    """A counter lives two windows longer than it is used, and no longer than a few."""
    limit = limiter(store, calls=3, per=3600.0)
    taken(limit, 1)
    (key,) = store.contents()
    assert 3 * 3600 < store.life(key) < 4 * 3600


def test_django_redis_181_an_expired_counter_does_not_come_back_for_ever(
    store: FaultyStore, moving: MovableClock
) -> None:
    """Every counter that there is has a life, also after its predecessor expired."""
    limit = limiter(store, calls=1, per=1.0)
    for _ in range(5):
        taken(limit, 2)
        moving.move(30)
    assert all(store.life(key) < 10 for key in store.contents())


@pytest.mark.parametrize(("back", "wait"), [(0.5, 12), (10, 22), (20, 0), (3600, 0), (-3600, 0)])
def test_pyratelimiter_55_a_clock_that_steps_does_not_lock_out(
    store: FaultyStore, moving: MovableClock, back: float, wait: float
) -> None:
    """After a step of the clock, wherever it goes, calls are let through again within two windows and their margin."""
    limit = limiter(store, calls=2, per=10.0)
    taken(limit, 2)
    moving.skew = -back
    moving.move(wait)
    assert taken(limit, 2) == 2


def test_the_own_bucket_missing_from_the_read_is_a_refusal(store: FaultyStore) -> None:
    """Counters that are lost between count and read prove nothing: refused, nothing given back."""
    limit = limiter(store)
    store.interruptions = [None, None, store.evict]
    refusal = limit.take()
    assert isinstance(refusal, Refusal)
    assert store.contents() == {}
    assert taken(limit, 1) == 1


def test_a_store_that_fails_between_count_and_read_cannot_tell(store: FaultyStore) -> None:
    """Where the store has just gone, another one has to decide."""
    limit = limiter(store)
    store.interruptions = [None, None, lambda: setattr(store, "is_paused", True)]
    assert limit.take() is None


def test_a_store_that_does_not_count_cannot_tell(store: FaultyStore) -> None:
    """None from the counting is neither yes nor no."""
    store.faults = ["lost", "lost"]
    assert limiter(store).take() is None


def test_a_call_that_took_too_long_to_count_does_not_start(store: FaultyStore, moving: MovableClock) -> None:
    """More than one bucket between clock and answer: refused, and given back."""
    limit = limiter(store, calls=3, per=10.0)
    taken(limit, 1)
    store.interruptions = [None, lambda: moving.move(0.6)]
    assert isinstance(limit.take(), Refusal)
    assert list(store.contents().values()) == [1]


def test_giving_back_makes_room_once(store: FaultyStore) -> None:
    """A call that did not start is not counted."""
    limit = limiter(store, calls=1)
    permit = limit.take()
    assert isinstance(permit, RatePermit)
    limit.give_back(permit)
    assert taken(limit, 2) == 1


def test_a_give_back_that_is_lost_is_not_tried_again(store: FaultyStore) -> None:
    """Rather one refusal too many than a call too many."""
    limit = limiter(store, calls=1)
    taken(limit, 1)
    store.faults = ["", "reply"]
    store.commands.clear()
    assert taken(limit, 1) == 0
    assert [name for name, _ in store.commands] == ["incr", "get_many", "incr"]


def test_processes_share_the_limit(store: FaultyStore) -> None:
    """Ten processes together get what one would get."""
    assert sum(taken(limiter(store, calls=7), 2) for _ in range(10)) == 7


@pytest.mark.parametrize(
    ("config", "other"),
    [
        pytest.param(RateLimitConfig(2, 10.0), RateLimitConfig(3, 10.0), id="CALLS"),
        pytest.param(RateLimitConfig(2, 10.0), RateLimitConfig(2, 1.0), id="PER"),
    ],
)
def test_every_option_changes_something(moving: MovableClock, config: RateLimitConfig, other: RateLimitConfig) -> None:
    """What is configured is used."""

    def story(config: RateLimitConfig) -> list[int]:
        limit = RateLimiter(config, FaultyStore(), NAMES)
        counts = []
        for _ in range(3):
            counts.append(taken(limit, 5))
            moving.move(3)
        return counts

    assert story(config) != story(other)


@pytest.mark.parametrize("per", [0.001, 0.05, 0.1, 0.25, 1.0, 60.0, 86_400.0])
def test_every_length_of_window_works(store: FaultyStore, moving: MovableClock, per: float) -> None:
    """Short and long windows admit CALLS, then none, then CALLS again after the margin."""
    limit = limiter(store, calls=2, per=per)
    assert taken(limit, 4) == 2
    moving.move(6 * per)
    assert taken(limit, 4) == 2


def test_buckets_count_from_the_past_into_the_future() -> None:
    """A window holds the older buckets, the own and those ahead."""
    buckets = Buckets(0.5, back=3, ahead=1)
    assert buckets.number(10.2) == 20
    assert list(buckets.window(20)) == [17, 18, 19, 20, 21]
    assert buckets.leaves_in(20, 10.2) == pytest.approx(1.8)
    assert buckets.leaves_in(10, 10.2) == 0.0


# ------------------------------------------------------------------------------------------ the proof, tried


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
