"""Do seats and locks keep to one process, and to their number?"""

from __future__ import annotations

import dis
import itertools
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from catalog_fallback.process_lock import ProcessLock
from catalog_fallback.resilience.bulkhead import SHORTEST_LEASE, Bulkhead, Seat
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.testing import FrozenClock


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
    bulkhead.release(Seat(-1, 1))
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
    with lock.own:
        child = os.fork()
        if child == 0:
            with lock.own:
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
            with lock.own:
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


# ------------------------------------------------------------------------------------------------ seats that nobody has


@pytest.mark.parametrize(
    ("call_limit", "lease"), [(0.0, 30.0), (2.0, 30.0), (3.0, 30.0), (60.0, 600.0)], ids=["none", "2 s", "3 s", "60 s"]
)
def test_a_seat_lasts_much_longer_than_its_call(frozen_clock: FrozenClock, call_limit: float, lease: float) -> None:
    """Ten limits, half a minute at least; then it is free for the next one, and not a moment earlier."""
    bulkhead = Bulkhead(1, call_limit)
    bulkhead.take()
    frozen_clock.advance(lease - 1)
    assert bulkhead.look() == bulkhead.take() == Refusal("bulkhead_full")
    frozen_clock.advance(1)
    assert (bulkhead.look(), bulkhead.in_use) == (None, 0)
    assert isinstance(bulkhead.take(), Seat)
    assert bulkhead.in_use == 1


def test_who_comes_back_late_takes_nobodys_seat(frozen_clock: FrozenClock) -> None:
    """Giving back a seat that was reclaimed, once or twice, does not free the one that took its place."""
    bulkhead = Bulkhead(1)
    late = bulkhead.take()
    frozen_clock.advance(SHORTEST_LEASE)
    second = bulkhead.take()
    assert isinstance(late, Seat)
    assert isinstance(second, Seat)
    bulkhead.release(late)
    bulkhead.release(late)
    assert bulkhead.take() == Refusal("bulkhead_full")


class SoftLimit(BaseException):
    """What a worker's signal handler raises wherever the program happens to be."""


#: After these bytecodes, and no others, the interpreter looks whether a signal has come.
LOOKS_AFTER = frozenset({"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"})


def struck(at: int, work: Callable[[], object]) -> bool:
    """Do the work, and be struck by a soft limit at its ``at``-th chance in this package; False when it had no more."""
    chances = itertools.count()
    done: dict[FrameType, str] = {}

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        frame.f_trace_opcodes = "catalog_fallback" in Path(frame.f_code.co_filename).parts
        frame.f_trace_lines = False
        if event == "opcode":
            has_chance = done.get(frame) in LOOKS_AFTER
            done[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if has_chance and next(chances) == at:
                raise SoftLimit
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 traces them only if a frame has asked before
    sys.settrace(trace)
    try:
        work()
    except SoftLimit:
        return True
    finally:
        sys.settrace(before)
    return False


def test_no_interrupt_leaks_a_seat_for_longer_than_its_lease(frozen_clock: FrozenClock) -> None:
    """Whatever bytecode of taking and giving back is struck, the number of seats is right again after the lease."""
    bulkhead, leaks = Bulkhead(3), 0

    def call() -> None:
        seat = bulkhead.take()
        if isinstance(seat, Seat):
            bulkhead.release(seat)

    for at in itertools.count():
        if not struck(at, call):
            break
        assert not bulkhead._own_seats().lock.locked()
        leaks += bulkhead.in_use
        frozen_clock.advance(SHORTEST_LEASE)
        assert bulkhead.in_use == 0
        seats = [bulkhead.take() for _ in range(4)]
        assert [isinstance(each, Seat) for each in seats] == [True, True, True, False]
        for each in seats:
            if isinstance(each, Seat):
                bulkhead.release(each)
    assert leaks > 0, "no interrupt struck where it hurts: nothing was shown"


class Seats(RuleBasedStateMachine):
    """Seats taken, given back, given back late, and never given back, while time passes."""

    @initialize(limit=st.integers(1, 4))
    def begin(self, limit: int) -> None:
        """An empty bulkhead."""
        self.clock = FrozenClock()
        self.clock.__enter__()
        self.bulkhead, self.limit, self.now = Bulkhead(limit), limit, 0.0
        #: The model: seats that are not given back, and when their lease ends.
        self.held: dict[Seat, float] = {}
        self.gone: list[Seat] = []

    def teardown(self) -> None:
        """Let time go on."""
        if hasattr(self, "clock"):
            self.clock.__exit__(None, None, None)

    def live(self) -> int:
        """Seats that count."""
        return sum(until > self.now for until in self.held.values())

    @rule()
    def take(self) -> None:
        """Granted exactly when fewer than the limit count."""
        has_room = self.live() < self.limit
        assert (self.bulkhead.look() is None) is has_room
        seat = self.bulkhead.take()
        assert isinstance(seat, Seat) is has_room
        if isinstance(seat, Seat):
            self.held[seat] = self.now + self.bulkhead.lease

    @rule(place=st.integers(0, 30))
    def release(self, place: int) -> None:
        """In time or late."""
        if self.held:
            seat = list(self.held)[place % len(self.held)]
            del self.held[seat]
            self.gone.append(seat)
            self.bulkhead.release(seat)

    @rule(place=st.integers(0, 30))
    def release_again(self, place: int) -> None:
        """It means nothing."""
        if self.gone:
            self.bulkhead.release(self.gone[place % len(self.gone)])

    @rule(seconds=st.sampled_from([1.0, 10.0, SHORTEST_LEASE]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.clock.advance(seconds)
        self.now += seconds

    @invariant()
    def counts_what_is_held(self) -> None:
        """As the model does, within the limit, in bounded memory."""
        if hasattr(self, "bulkhead"):
            assert self.bulkhead.in_use == self.live() <= self.limit
            assert len(self.bulkhead._own_seats().held) <= self.limit


TestSeats = Seats.TestCase


def test_no_interrupt_leaves_a_process_lock_locked() -> None:
    """Whatever bytecode of entering and leaving is struck, the next one finds it free."""
    lock = ProcessLock()

    def work() -> None:
        with lock.own:
            _ = lock.own

    for at in itertools.count():
        if not struck(at, work):
            break
        assert lock.own.acquire(blocking=False), f"left locked by an interrupt at bytecode {at}"
        lock.own.release()
    assert at > 1  # chances that the interpreter gave; 3.13 gives fewer than 3.11
