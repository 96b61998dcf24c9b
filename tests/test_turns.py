"""Are there never more turns than there should be, do lost ones come back, and is nobody overtaken for long?"""

from __future__ import annotations

import threading
import time

import pytest

from catalog_fallback import turns
from catalog_fallback.turns import NONE, OVERTAKEN_FOR, PATIENCE, Turns
from tests.sites import MovableClock


def test_so_many_and_no_more() -> None:
    """Given back, they are there again; twice given back is once."""
    both = Turns(2)
    first, second = both.take(), both.take_free()
    assert None not in {first, second}
    assert both.take_free() is None
    both.give_back(first)
    both.give_back(first)
    assert both.take_free() is not None
    assert both.take_free() is None


def test_lost_turns_come_back(moving: MovableClock) -> None:
    """Whoever was torn away with one holds it no longer than anybody waits; what he gives back late means nothing."""
    both = Turns(2)
    lost = [both.take(), both.take()]
    moving.move(PATIENCE - 0.1)
    assert both.take_free() is None
    moving.move(0.2)
    assert NONE not in {both.take(), both.take()}
    for each in lost:
        both.give_back(each)
    assert both.take_free() is None


def test_a_cache_that_was_slow_for_long_makes_no_turns_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many have gone without one meanwhile, and give nothing back."""
    monkeypatch.setattr(turns, "PATIENCE", 0.05)
    both = Turns(2)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(both.take())) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert len(found) == 20
    for each in found:
        both.give_back(each)
    monkeypatch.undo()
    assert [both.take_free() is None for _ in range(3)] == [False, False, True]


def test_whoever_has_waited_for_a_moment_is_next() -> None:
    """However many others take and give back turns all the time."""
    one = Turns(1)
    is_over = threading.Event()

    def greedy() -> None:
        while not is_over.is_set():
            turn = one.take_free()
            if turn is not None:
                time.sleep(0.0005)
                one.give_back(turn)

    threads = [threading.Thread(target=greedy) for _ in range(3)]
    for each in threads:
        each.start()
    try:
        for _ in range(20):
            began = time.monotonic()
            turn = one.take()
            assert turn != NONE
            assert time.monotonic() - began < OVERTAKEN_FOR + 1.0
            one.give_back(turn)
    finally:
        is_over.set()
        for each in threads:
            each.join(20)


def test_nobody_who_comes_overtakes_one_who_has_waited() -> None:
    """A turn that is free is not for him then; it is for the one who was called."""
    one = Turns(1)
    held = one.take()
    got = []
    waiting = threading.Thread(target=lambda: got.append(one.take()))
    waiting.start()
    while not one._waiting:
        time.sleep(0.001)
    time.sleep(2 * OVERTAKEN_FOR)
    with one._lock:
        del one._taken[held]  # free, and nobody is called yet
    assert one.take_free() is None
    with one._lock:
        one._call_locked()
    waiting.join(20)
    assert NONE not in got
    assert not one._waiting


def test_all_who_wait_get_one() -> None:
    """One after the other, whoever gives back what."""
    both = Turns(2)
    most, now, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal most, now
        for _ in range(50):
            turn = both.take()
            with lock:
                now += 1
                most = max(most, now)
            with lock:
                now -= 1
            both.give_back(turn)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
        assert not each.is_alive()
    assert most <= 2
    assert not both._waiting
    assert not both._taken
