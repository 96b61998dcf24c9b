"""How many threads of a process read from one cache at the same moment? A few; the others wait their turn.

Two hundred threads that all read at once take several times as long, for every reply wakes one that has to wait for the
interpreter; and the one of them that goes on to fetch comes last. They would also need two hundred connections.

A turn that comes free is there for whoever runs just then: handing each one to somebody who first has to wake up would
cost more than it orders. But nobody is overtaken for longer than a moment: then the one who has waited longest is next.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from queue import Empty, SimpleQueue

from catalog_fallback import clock

#: Seconds after which one goes without a turn, and after which a turn counts no more: whoever was torn away between
#: taking one and holding it never gives it back.
PATIENCE = 5.0
#: Seconds for which somebody who waits may be overtaken.
OVERTAKEN_FOR = 0.01
#: What goes with whoever goes without a turn.
NONE = 0


class _Waiter:
    """Somebody who waits, since when, and how he is called."""

    __slots__ = ("calls", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.calls: SimpleQueue[None] = SimpleQueue()


class Turns:
    """So many at a time. A child that was forked starts with all turns free, whoever had one in its parent."""

    __slots__ = ("_at_once", "_last", "_lock", "_pid", "_taken", "_waiting")

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        #: Number of each turn that is taken → the monotonic moment since when.
        self._taken: dict[int, float] = {}
        self._last = NONE
        self._waiting: deque[_Waiter] = deque()
        self._pid = os.getpid()

    def take_free(self) -> int | None:
        """Return a turn, which has to be given back; None where one would have to be waited for."""
        if self._pid != os.getpid():
            self._begin()
        with self._lock:
            return self._take_locked(clock.monotonic())

    def take(self) -> int:
        """Wait for a turn, but not for ever; return it, or NONE. Either is given back."""
        if self._pid != os.getpid():
            self._begin()
        waiter = _Waiter(clock.monotonic())
        with self._lock:
            turn = self._take_locked(waiter.since)
            if turn is not None:
                return turn
            self._waiting.append(waiter)
        try:
            return self._wait(waiter)
        finally:
            with self._lock:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                self._call_locked()

    def give_back(self, turn: int) -> None:
        """Give a turn back; one that counts no more means nothing."""
        if turn == NONE:
            return
        with self._lock:
            if self._taken.pop(turn, None) is not None:
                self._call_locked()

    def _wait(self, waiter: _Waiter) -> int:
        """Try whenever one is called, which only the first one of those who wait is."""
        until = waiter.since + PATIENCE
        while True:
            try:
                waiter.calls.get(timeout=max(0.0, until - clock.monotonic()))
            except Empty:
                return NONE
            with self._lock:
                if self._waiting[0] is waiter and (turn := self._number_locked(clock.monotonic())) is not None:
                    self._waiting.popleft()
                    return turn

    def _take_locked(self, now: float) -> int | None:
        if self._waiting and now - self._waiting[0].since >= OVERTAKEN_FOR:
            return None
        return self._number_locked(now)

    def _number_locked(self, now: float) -> int | None:
        if len(self._taken) >= self._at_once and not self._reclaim_locked(now):
            return None
        self._last += 1
        self._taken[self._last] = now
        return self._last

    def _reclaim_locked(self, now: float) -> bool:
        """Count those no more that were taken too long ago; whether there was one."""
        lost = [turn for turn, since in self._taken.items() if now - since >= PATIENCE]
        for turn in lost:
            del self._taken[turn]
        return bool(lost)

    def _call_locked(self) -> None:
        if self._waiting and len(self._taken) < self._at_once:
            self._waiting[0].calls.put(None)
