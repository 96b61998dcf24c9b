"""Do the patterns refuse in their order, and give back what was taken before?"""

from __future__ import annotations

import pytest

from catalog_fallback.resilience.breaker_record import BreakerState
from catalog_fallback.resilience.guard import Stores
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.time_budget import Deadline
from tests.resilience.guards import (
    exhaust,
    guard,
    look,
    permit_of,
    read_limiter,
)
from tests.resilience.worlds import FaultyStore, MovableClock

ORDER = ["cooling_down", "bulkhead_full", "rate_limited", "circuit_open"]


@pytest.mark.parametrize("place", range(len(ORDER)))
def test_the_first_pattern_that_refuses_is_named(stores: Stores, place: int) -> None:
    """Cool-down, bulkhead, rate limit, breaker: of those that refuse the first gives the reason."""
    guarded = guard(stores)
    exhaust(guarded, "circuit_open")  # the only one that takes calls to be exhausted
    for what in ORDER[place:-1]:
        exhaust(guarded, what)
    refusals = {refusal.reason for refusal in (look(guarded), guarded.take()) if isinstance(refusal, Refusal)}
    assert refusals == {ORDER[place]}


def test_isolated_comes_before_everything(stores: Stores) -> None:
    """resilience4j#991: an operator's decision ignores every timer and every state."""
    guarded = guard(stores)
    assert look(guarded, is_isolated=True) == guarded.take(is_isolated=True) == Refusal("isolated")
    exhaust(guarded, "cooling_down")
    assert guarded.take(is_isolated=True) == Refusal("isolated")
    status = guarded.status(stores.read((guarded,)), is_isolated=True)
    assert status.state is BreakerState.ISOLATED
    assert status.refusal == Refusal("isolated")


def test_a_refused_call_takes_nothing(stores: Stores, store: FaultyStore, moving: MovableClock) -> None:
    """Whatever refuses: no seat, no count, no slot is kept, and nothing is counted for or against the source."""
    guarded = guard(stores)
    exhaust(guarded, "circuit_open")
    moving.move(30)
    probe = permit_of(guarded)
    before = store.contents()
    assert isinstance(guarded.take(), Refusal)
    assert store.contents() == before
    assert guarded.bulkhead.in_use == 1
    probe.cancel()
    assert guarded.bulkhead.in_use == 0


def test_a_slot_that_is_gone_meanwhile_gives_the_count_back(
    stores: Stores, store: FaultyStore, moving: MovableClock
) -> None:
    """The slot is the scarcest and comes last: where it is lost, what was taken before is given back."""
    guarded, other = guard(stores), guard(stores)
    exhaust(guarded, "circuit_open")
    moving.move(30)
    permit_of(guarded).cancel()
    counts = [sum(read_limiter(guarded).values())]
    view = stores.read((guarded,))
    probe = permit_of(other)
    assert guarded.take(view) == Refusal("circuit_open", 1.0)
    counts.append(sum(read_limiter(guarded).values()))
    assert counts[1] == counts[0] + 1
    assert guarded.bulkhead.in_use == 0
    probe.cancel()


@pytest.mark.parametrize(("budget", "wait", "reason"), [(1, 2.9, "deadline"), (100, 3.1, "rate_limited")])
def test_a_call_that_would_start_too_late_does_not_start(
    stores: Stores, store: FaultyStore, moving: MovableClock, budget: float, wait: float, reason: str
) -> None:
    """The budget, or the bucket that it was counted in, passes while the slot is taken: all is given back."""
    guarded = guard(stores)
    exhaust(guarded, "circuit_open")
    moving.move(30)
    permit_of(guarded).cancel()
    counted = sum(read_limiter(guarded).values())
    store.interruptions = [None, None, None, lambda: moving.move(wait)]
    assert guarded.take(deadline=Deadline(moving.monotonic() + budget)) == Refusal(reason)
    assert sum(read_limiter(guarded).values()) == counted
    assert guarded.bulkhead.in_use == 0
    assert not [key for key in store.contents() if ":slot:" in key]


def test_a_budget_that_is_used_up_asks_nobody(stores: Stores, store: FaultyStore, moving: MovableClock) -> None:
    """Not even the store."""
    assert guard(stores).take(deadline=Deadline(moving.monotonic())) == Refusal("deadline")
    assert store.commands == []
