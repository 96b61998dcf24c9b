"""Do lookups share one deadline where they are told to, and only there?"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from datetime import timedelta
from typing import Any

import pytest

from catalog_fallback.resilience import time_budget as module
from catalog_fallback.resilience.time_budget import Deadline, checked_budget, deadline, is_used_up, time_budget
from catalog_fallback.results import NoReply
from tests.scripted import PATH, Programmed
from tests.sites import FOUND, MovableClock, Site, words


def test_a_deadline_says_what_is_left(moving: MovableClock) -> None:
    """Never less than nothing."""
    one = deadline(2.0, module.clock.monotonic())
    assert one.left() == pytest.approx(2.0, abs=0.05)
    assert not one.has_passed
    moving.move(3)
    assert (one.left(), one.has_passed) == (0.0, True)


def test_a_deadline_has_passed_at_its_very_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing left nothing can be begun (resilience4j 2038: equal is not "almost")."""
    monkeypatch.setattr(module.clock, "monotonic", lambda: 5.0)
    assert Deadline(5.0).has_passed
    assert Deadline(5.0).left() == 0.0
    with time_budget(1):
        assert not is_used_up(5.999)
        assert is_used_up(6.0)


@pytest.mark.parametrize(("budget", "seconds"), [(1, 1.0), (0.001, 0.001), (timedelta(minutes=1), 60.0), (1e9, 1e9)])
def test_budgets_are_seconds(budget: Any, seconds: float) -> None:
    """Whatever they were given as."""
    assert checked_budget(budget) == seconds
    assert type(checked_budget(budget)) is float


def test_without_a_shared_budget_nothing_is_used_up() -> None:
    """Outside of any block."""
    assert not is_used_up(float("inf"))


def test_the_earlier_deadline_wins(moving: MovableClock) -> None:
    """Nested blocks can only shorten; leaving one brings the outer one back."""
    with time_budget(10) as outer:
        with time_budget(20) as longer:
            assert longer == outer
        with time_budget(1) as shorter:
            assert shorter.left() == pytest.approx(1, abs=0.05)
            assert deadline(5, module.clock.monotonic()) == shorter
            assert deadline(0.5, module.clock.monotonic()).left() < 0.51
        assert deadline(50, module.clock.monotonic()) == outer
    assert deadline(50, module.clock.monotonic()).left() > 49


def test_an_exception_ends_the_block_too() -> None:
    """The next lookup outside is not hurried."""
    with pytest.raises(KeyError), time_budget(0.001):
        raise KeyError
    assert not is_used_up(float("inf"))


def test_threads_do_not_inherit_it_unless_they_take_the_context() -> None:
    """A context variable: a thread starts without, a copied context brings it along."""
    seen: list[bool] = []

    def look() -> None:
        seen.append(is_used_up(float("inf")))

    with time_budget(1):
        context = contextvars.copy_context()
        for target in (look, lambda: context.run(look)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    assert seen == [False, True]


def test_tasks_inherit_it_and_keep_theirs_apart() -> None:
    """Two tasks with budgets of their own do not disturb each other."""

    async def one(seconds: float) -> float:
        with time_budget(seconds) as mine:
            await asyncio.sleep(0)
            assert deadline(100, 0.0).at <= mine.at
            await asyncio.sleep(0)
            return mine.left()

    async def both() -> list[float]:
        with time_budget(50):
            return list(await asyncio.gather(one(10), one(20), one(90)))

    left = asyncio.run(both())
    assert left == pytest.approx([10, 20, 50], abs=0.5)


# --- lookups --------------------------------------------------------------------------------------------------------


def test_lookups_share_what_is_left(site: Site, moving: MovableClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second gets what the first left over, the third gets "deadline" and calls nobody."""

    def slow(timeout: float) -> NoReply:
        moving.move(min(timeout, 1.0))
        return NoReply("timeout")

    monkeypatch.setattr(Programmed, "program", staticmethod(slow))
    monkeypatch.setattr(Programmed, "timeouts", [])
    site.configure({"BACKEND": PATH + "Programmed", "TIMEOUT": 10}, {"ENABLED": False}, BUDGET=5)
    with time_budget(1.5):
        lookups = [site.find(item_id) for item_id in ("P001", "P002", "P003")]
    assert Programmed.timeouts == pytest.approx([1.5, 0.5], abs=0.1)
    assert [words(lookup) for lookup in lookups] == [
        ("unavailable", "incomplete_search"),
        ("unavailable", "deadline"),
        ("unavailable", "deadline"),
    ]
    assert lookups[2].trace == ()


def test_a_lookups_own_budget_cannot_lengthen_it(site: Site, moving: MovableClock) -> None:
    """The earlier deadline wins."""
    site.say(FOUND)
    with time_budget(1):
        assert site.find(budget=100).is_found
        moving.move(1)
        assert words(site.find(budget=100)) == ("unavailable", "deadline")


def test_used_up_is_no_excuse_for_bad_arguments(site: Site, moving: MovableClock) -> None:
    """ValueError is for bad arguments, and only for them."""
    with time_budget(1):
        moving.move(1)
        with pytest.raises(ValueError, match="budget"):
            site.find(budget=0)
        with pytest.raises(ValueError, match="ID_PATTERN"):
            site.find("no ID")
        assert site.find().is_unavailable
