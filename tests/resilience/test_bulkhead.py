"""Do seats and locks keep to one process, and to their number?"""

from __future__ import annotations

import itertools
import os
import threading

import pytest

from catalog_fallback.resilience.bulkhead import Bulkhead, Seat
from catalog_fallback.resilience.process_lock import ProcessLock
from catalog_fallback.resilience.refusal import Refusal


def test_gobreaker_91_so_many_calls_at_a_time() -> None:
    """A bulkhead admits MAX_CONCURRENT calls, refuses at once, and is free again afterwards."""
    bulkhead = Bulkhead(2)
    first, second = bulkhead.take(), bulkhead.take()
    assert isinstance(first, Seat)
    assert isinstance(second, Seat)
    assert bulkhead.look() == bulkhead.take() == Refusal("bulkhead_full")
    bulkhead.release(first)
    assert bulkhead.in_use == 1
    assert bulkhead.look() is None
    assert isinstance(bulkhead.take(), Seat)


def test_a_seat_of_another_process_frees_nothing_here() -> None:
    """What a parent had taken before the fork is the parent's to give back."""
    bulkhead = Bulkhead(1)
    bulkhead.take()
    bulkhead.release(Seat(-1))
    assert bulkhead.in_use == 1


def test_a_bulkhead_under_threads_never_admits_too_many() -> None:
    """Threads that take and release at random never hold more seats than there are."""
    bulkhead, seen = Bulkhead(3), []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(300):
            seat = bulkhead.take()
            if isinstance(seat, Seat):
                seen.append(bulkhead.in_use)
                bulkhead.release(seat)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert max(seen) <= 3
    assert bulkhead.in_use == 0


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_with_free_seats_and_locks() -> None:
    """What threads of the parent hold at the fork does not bind the child, and its seats are nobody else's."""
    bulkhead, lock = Bulkhead(1), ProcessLock()
    parents = bulkhead.take()
    assert isinstance(parents, Seat)
    with lock:
        child = os.fork()
        if child == 0:
            with lock:
                own = bulkhead.take()
            bulkhead.release(parents)
            os._exit(0 if isinstance(own, Seat) and bulkhead.in_use == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bulkhead.in_use == 1


def test_a_process_lock_excludes() -> None:
    """Only one thread is inside at a time."""
    lock, inside, most = ProcessLock(), itertools.count(), []
    counter = {"now": 0}

    def work() -> None:
        for _ in range(200):
            with lock:
                counter["now"] += 1
                most.append(counter["now"])
                next(inside)
                counter["now"] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(most) == {1}
