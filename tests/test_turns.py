"""Do turns come back, whoever was torn away with one?"""

from __future__ import annotations

import pytest

from catalog_fallback import turns
from catalog_fallback.turns import Turns


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long."""
    monkeypatch.setattr(turns, "PATIENCE", 0.01)


def test_lost_turns_are_made_good() -> None:
    """Whoever waits in vain goes without one, and puts one back."""
    both = Turns(2)
    both.take()
    both.take()  # neither is ever put back
    both.take().put(0)
    both.take().put(0)
    assert both._free.qsize() == 1
    first, second = both.take(), both.take()
    assert both.take_free() is None
    first.put(0)
    second.put(0)
    assert both._free.qsize() == 2


def test_turns_do_not_become_more() -> None:
    """Who went without one while the cache was slow puts one back all the same; it is taken out again."""
    both = Turns(2)
    slow = [both.take() for _ in range(5)]
    for each in slow:
        each.put(0)
    for _ in range(5):
        both.take().put(0)
    assert both._free.qsize() == 2
