"""What does a guard do while the shared store is in trouble?"""

from __future__ import annotations

import pytest

from catalog_fallback.configuration import BreakerConfig, RateLimitConfig
from catalog_fallback.resilience.guard import Stores
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.store import ProcessStore
from catalog_fallback.results import Outcome, Verdict
from tests.resilience.breakers import CLOSED, OPEN
from tests.resilience.guards import (
    BAD,
    GOOD,
    exhaust,
    guard,
    look,
    permit_of,
    read_limiter,
    settle,
    state,
)
from tests.resilience.worlds import FaultyStore, MovableClock


def test_a_paused_store_is_replaced(stores: Stores, store: FaultyStore) -> None:
    """While the shared store is left alone the guard works in the process, and goes back afterwards."""
    guarded = guard(stores)
    store.is_paused = True
    settle(guarded, BAD, BAD)
    assert isinstance(guarded.take(), Refusal)
    store.is_paused = False
    assert isinstance(guarded.take(), Permit)
    assert store.contents().keys() <= {key for key in store.contents() if ":calls:" in key}


def test_a_store_that_cannot_tell_is_replaced_for_that_decision(stores: Stores, store: FaultyStore) -> None:
    """django-redis answers None while it hides an error: nobody waits, nothing raises, the process decides."""
    guarded = guard(stores, rate_limit=RateLimitConfig(1, 60))
    store.faults = ["lost", "lost"]
    permit_of(guarded).cancel()
    store.faults = ["lost", "lost"]
    answer = guarded.take()
    assert isinstance(answer, Refusal)
    assert answer.reason == "rate_limited"
    assert store.contents() == {}
    assert isinstance(guarded.take(), Permit)


def test_a_seat_that_is_gone_meanwhile_is_a_refusal(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between look and take another thread takes the last seat."""
    guarded = guard(stores, max_concurrent=1)
    permit_of(guarded)
    monkeypatch.setattr(guarded.bulkhead, "look", lambda: None)
    assert guarded.take() == Refusal("bulkhead_full")
    assert guarded.bulkhead.in_use == 1


def test_a_probe_that_cannot_be_told_is_decided_in_the_process(
    stores: Stores, store: FaultyStore, moving: MovableClock
) -> None:
    """What was taken of the shared store is given back before the other one decides."""
    guarded = guard(stores)
    exhaust(guarded, "circuit_open")
    moving.move(30)
    permit_of(guarded).cancel()
    counted = sum(read_limiter(guarded).values())
    store.faults = ["", "lost"]
    permit = permit_of(guarded)
    assert sum(read_limiter(guarded).values()) == counted
    assert guarded.bulkhead.in_use == 1
    permit.cancel()
    assert guarded.bulkhead.in_use == 0


def test_neither_store_can_tell(store: FaultyStore, moving: MovableClock) -> None:
    """Then the answer is no."""
    other = FaultyStore()
    guarded = guard(Stores(store, other))
    store.faults, other.faults = ["lost"] * 9, ["lost"] * 9
    assert guarded.take() == Refusal("circuit_open")
    assert guarded.bulkhead.in_use == 0


def test_litellm_34300_a_cache_that_hides_its_errors_is_left_alone(
    stores: Stores, store: FaultyStore, moving: MovableClock
) -> None:
    """Empty answers without an error: after three decisions the process works by itself, and then tries again."""
    guarded = guard(stores, rate_limit=None)
    for _ in range(3):
        permit = permit_of(guarded)
        store.faults = ["lost"] * 5
        permit.settle(BAD)
    store.faults.clear()
    store.commands.clear()
    assert guarded.take() == Refusal("circuit_open", 30.0)
    assert store.commands == []
    moving.move(5.1)
    assert isinstance(guarded.take(), Permit)
    assert store.commands


@pytest.mark.parametrize("rate_limit", [None, RateLimitConfig(100, 60)], ids=["failure counted", "call counted"])
def test_answers_in_between_keep_the_store_in_use(
    stores: Stores, store: FaultyStore, rate_limit: RateLimitConfig | None
) -> None:
    """Only decisions in a row count: a store that loses a command now and then is not left alone."""
    guarded = guard(stores, rate_limit=rate_limit, breaker=BreakerConfig(100, None))
    for faults in (["lost"] * 5, [], ["lost"] * 5, [], ["lost"] * 5):
        permit = permit_of(guarded)
        store.faults = faults
        permit.settle(BAD)
        store.faults = []
    store.commands.clear()
    permit_of(guarded)
    assert store.commands


def test_a_permit_is_settled_in_the_store_that_issued_it(stores: Stores, store: FaultyStore) -> None:
    """The store comes back, or goes, between take and settle: the result goes where the permit is from."""
    guarded = guard(stores, rate_limit=None)
    store.is_paused = True
    local = [permit_of(guarded) for _ in range(2)]
    store.is_paused = False
    for permit in local:
        permit.settle(BAD)
    assert state(guarded) is CLOSED
    assert store.contents() == {}
    store.is_paused = True
    assert state(guarded) is OPEN


def test_a_failure_that_the_shared_store_did_not_take_counts_in_the_process(stores: Stores, store: FaultyStore) -> None:
    """litellm#34300: a broken cache does not make a broken source look well."""
    guarded = guard(stores, rate_limit=None)
    permits = [permit_of(guarded) for _ in range(2)]
    store.is_paused = True
    for permit in permits:
        permit.settle(BAD)
    assert isinstance(guarded.take(), Refusal)


def test_a_failure_that_the_process_could_not_take_either_is_let_go(store: FaultyStore) -> None:
    """Nothing is left to count it in, and nothing loops."""
    other = FaultyStore()
    guarded = guard(Stores(store, other), rate_limit=None)
    store.is_paused = True
    permit = permit_of(guarded)
    other.is_paused = True
    permit.settle(BAD)
    assert guarded.bulkhead.in_use == 0


def test_a_cool_down_survives_the_store(stores: Stores, store: FaultyStore) -> None:
    """The process that was told keeps to it, whatever becomes of the shared store."""
    guarded = guard(stores)
    settle(guarded, Verdict(Outcome.STOP, "http_429", retry_after=60.0))
    store.is_paused = True
    assert look(guarded) == Refusal("cooling_down", 60.0, Outcome.STOP)


def test_without_the_store_the_limit_is_per_process(stores: Stores, store: FaultyStore) -> None:
    """What a process has used up before the store went it has used up afterwards."""
    guarded = guard(stores, rate_limit=RateLimitConfig(3, 60))
    settle(guarded, GOOD, GOOD, GOOD)
    store.is_paused = True
    assert look(guarded) is not None
    assert isinstance(guarded.take(), Refusal)


def test_reset_closes_both(stores: Stores, store: FaultyStore) -> None:
    """An operator's reset reaches the shared state, and this process's own."""
    guarded = guard(stores, rate_limit=None)
    for is_paused in (False, True):
        store.is_paused = is_paused
        exhaust(guarded, "circuit_open")
    store.is_paused = False
    assert guarded.reset() is True
    assert state(guarded) is CLOSED
    store.is_paused = True
    assert state(guarded) is CLOSED
    assert guarded.reset() is False


def test_the_stores_are_the_sites_choice(store: FaultyStore) -> None:
    """An empty store of one's own is taken, not replaced."""
    own = ProcessStore()
    assert Stores(store, own).local is own
    assert isinstance(Stores(store).local, ProcessStore)
