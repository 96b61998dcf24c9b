"""May one more call run at the same time? At most so many in one process; nobody waits."""

from __future__ import annotations

import os
import threading
from typing import NamedTuple

from catalog_fallback.resilience.refusal import Refusal


class Seat(NamedTuple):
    """One running call, of the process that took it."""

    pid: int


class Bulkhead:
    """Counts the running calls of this process. A child that was forked starts with none."""

    def __init__(self, max_concurrent: int) -> None:
        self.max_concurrent = max_concurrent
        self._seats: dict[int, _Seats] = {}

    @property
    def in_use(self) -> int:
        """Calls that are running now."""
        return self._seats_of(os.getpid()).taken

    def look(self) -> Refusal | None:
        """Return the refusal that a call would meet now; takes nothing."""
        return Refusal("bulkhead_full") if self.in_use >= self.max_concurrent else None

    def take(self) -> Seat | Refusal:
        """Take a seat; it has to be released once."""
        pid = os.getpid()
        seats = self._seats_of(pid)
        with seats.lock:
            if seats.taken >= self.max_concurrent:
                return Refusal("bulkhead_full")
            seats.taken += 1
        return Seat(pid)

    def release(self, seat: Seat) -> None:
        """Give the seat back; in a child one of the parent's means nothing."""
        if seat.pid == os.getpid():
            seats = self._seats_of(seat.pid)
            with seats.lock:
                seats.taken -= 1

    def _seats_of(self, pid: int) -> _Seats:
        return self._seats.get(pid) or self._seats.setdefault(pid, _Seats())


class _Seats:
    """Those of one process, with a lock that no thread of another one can have held at the fork."""

    __slots__ = ("lock", "taken")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.taken = 0
