"""What does a look cost, and what does it show?"""

from __future__ import annotations

from typing import Any

import pytest

from catalog_fallback.configuration import BreakerConfig, GuardConfig, RateLimitConfig, SourceConfig
from catalog_fallback.resilience.guard import Guard, Stores
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.results import Verdict
from tests.resilience.breakers import CLOSED, HALF_OPEN, OPEN
from tests.resilience.guards import (
    BAD,
    GOOD,
    exhaust,
    guard,
    permit_of,
    settle,
)
from tests.resilience.worlds import FaultyStore, MovableClock


def test_one_read_for_all_guards(stores: Stores, store: FaultyStore) -> None:
    """All sources of a catalog, and other keys with them, in one command; nothing is taken."""
    guards = [guard(stores, alias) for alias in ("a", "b", "c")]
    store.set("mine", 7, 60)
    before = store.contents()
    stores.read(guards)
    store.commands.clear()
    view = stores.read(guards, more=("mine",))
    assert [name for name, _ in store.commands] == ["get_many"]
    assert view.found["mine"] == 7
    assert [guarded.look(view) for guarded in guards] == [None, None, None]
    assert store.contents() == before


def test_all_refused_costs_one_read(stores: Stores, store: FaultyStore) -> None:
    """Once the process knows that breakers are open, a look at all of them is one command."""
    guards = [guard(stores, alias) for alias in ("a", "b")]
    for guarded in guards:
        exhaust(guarded, "circuit_open")
    store.commands.clear()
    view = stores.read(guards)
    assert all(guarded.look(view) for guarded in guards)
    assert len(store.commands) == 1


def test_a_fresh_view_is_used_and_an_old_one_is_read_again(
    stores: Stores, store: FaultyStore, moving: MovableClock
) -> None:
    """Between look and take nothing is read again, unless a slow call came between."""
    guarded = guard(stores, rate_limit=None)
    view = stores.read((guarded,))
    store.commands.clear()
    guarded.take(view)
    assert store.commands == []
    moving.move(0.2)
    exhaust(guard(stores, rate_limit=None), "circuit_open")
    assert isinstance(guarded.take(view), Refusal)


def test_the_whole_call_costs_few_commands(stores: Stores, store: FaultyStore) -> None:
    """One read; with a rate limit two commands more; a success adds none."""
    for rate_limit, commands in ((None, 1), (RateLimitConfig(100, 60), 3)):
        guarded = guard(stores, rate_limit=rate_limit, breaker=BreakerConfig())
        settle(guarded, GOOD)
        store.commands.clear()
        settle(guarded, GOOD)
        assert len(store.commands) == commands


@pytest.mark.parametrize(
    ("verdicts", "pause", "shown"),
    [
        ([], 0, (CLOSED, "", None)),
        ([BAD, BAD], 0, (OPEN, "consecutive_failures", Refusal("circuit_open", 30.0))),
        ([BAD, BAD], 30, (HALF_OPEN, "consecutive_failures", None)),
    ],
)
def test_the_status_is_exactly_one_state(
    stores: Stores, moving: MovableClock, verdicts: list[Verdict], pause: float, shown: tuple[Any, ...]
) -> None:
    """opossum#484: closed, open, half-open or isolated; reading it takes no permit."""
    guarded = guard(stores)
    settle(guarded, *verdicts)
    opened_at = moving.now
    moving.move(pause)
    for _ in range(3):
        status = guarded.status(stores.read((guarded,)))
        assert (status.state, status.reason, status.refusal) == shown
        assert status.since == (opened_at if verdicts else None)
    assert (status.in_use, status.late_results) == (0, 0)


def test_a_guard_without_patterns_lets_everything_through(stores: Stores, store: FaultyStore) -> None:
    """No breaker, no limit: nothing is counted, the bulkhead stays."""
    guarded = guard(stores, breaker=None, rate_limit=None, max_concurrent=1)
    for verdict in (BAD, BAD, BAD, GOOD):
        settle(guarded, verdict)
    assert store.contents() == {}
    status = guarded.status(stores.read((guarded,)))
    assert (status.state, status.reason, status.since) == (CLOSED, "", None)
    assert guarded.reset() is True
    permit_of(guarded)
    assert guarded.take() == Refusal("bulkhead_full")


@pytest.mark.parametrize(
    ("config", "limit"),
    [(SourceConfig("primary", timeout=2.0, max_concurrent=3), 7), (GuardConfig("pay", max_concurrent=3), 65)],
)
def test_a_guard_is_made_from_its_configuration(
    stores: Stores, store: FaultyStore, moving: MovableClock, config: SourceConfig | GuardConfig, limit: float
) -> None:
    """Sources and guards of the settings; a call without a limit may take as long as its result would count."""
    told: list[Any] = []
    guarded = Guard.of(config, Names("default", config.alias), stores, on_change=lambda *change: told.append(change))
    assert guarded.bulkhead.max_concurrent == 3
    settle(guarded, *[BAD] * 5)
    moving.move(30)
    permit_of(guarded)
    (slot,) = [key for key in store.contents() if ":slot:" in key]
    assert store.life(slot) == limit
    assert [change[1] for change in told] == [OPEN, HALF_OPEN]
