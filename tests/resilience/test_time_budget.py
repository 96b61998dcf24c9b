"""Do lookups that share a budget share one deadline?"""

from __future__ import annotations

from datetime import timedelta

import pytest

from catalog_fallback.resilience import time_budget as budgets
from tests.resilience.worlds import MovableClock


def test_a_deadline_runs_down(moving: MovableClock) -> None:
    """What is left never falls below nothing."""
    deadline = budgets.Deadline(moving.monotonic() + 2)
    assert (deadline.left(), deadline.has_passed) == (2.0, False)
    moving.move(2)
    assert (deadline.left(), deadline.has_passed) == (0.0, True)
    moving.move(2)
    assert deadline.left() == 0.0


@pytest.mark.parametrize(("budget", "seconds"), [(1, 1.0), (0.001, 0.001), (timedelta(minutes=1), 60.0)])
def test_budgets_are_seconds(budget: object, seconds: float) -> None:
    """Numbers and timedeltas of at least a millisecond."""
    assert budgets.checked_budget(budget) == seconds


@pytest.mark.parametrize("budget", [0, 0.0009, -1, float("nan"), float("inf"), True, None, "1", timedelta(0)])
def test_a_bad_budget_is_a_value_error(budget: object) -> None:
    """Whatever is no duration, or too short for anything, is refused."""
    with pytest.raises(ValueError, match="budget="):
        budgets.checked_budget(budget)


def test_the_earlier_deadline_wins(moving: MovableClock) -> None:
    """Nested budgets, and a lookup's own: whichever ends first; afterwards everything is as before."""
    now = moving.monotonic()
    with budgets.time_budget(5) as outer:
        with budgets.time_budget(2) as inner:
            assert budgets.deadline(10, now).at == inner.at == now + 2
            assert budgets.deadline(1, now).at == now + 1
        with budgets.time_budget(9) as longer:
            assert longer.at == outer.at == now + 5
        assert not budgets.is_used_up(now + 4)
        assert budgets.is_used_up(now + 5)
    assert budgets.deadline(10, now).at == now + 10
    assert not budgets.is_used_up(now + 100)
