"""Does the rate limiter never let more than CALLS start in any window of PER?"""

from __future__ import annotations

import pytest

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
