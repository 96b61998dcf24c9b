"""May one more call run at the same time? At most so many in one process; nobody waits.

A seat is a lease. Whoever took it gives it back, on every path; but an exception from outside (a signal handler that
raises, as a worker's soft time limit does) can strike between taking a seat and holding it, and then nobody does. So a
seat counts only for so long:

=========  =============================  =======================================
seat       event                          then
=========  =============================  =======================================
free       take                           held until now + lease
held       release by its number          free
held       lease over, somebody takes     free, and taken by whom it is full for
held       lease over, somebody looks     counts as free
reclaimed  release by its number          nothing: the number is never used again
=========  =============================  =======================================
"""

from __future__ import annotations

import os
import threading
from typing import NamedTuple

from catalog_fallback import clock
from catalog_fallback.resilience.refusal import Refusal

#: A seat counts for so many times the limit of the call that it is for, and for so many seconds at least: much longer
#: than any call takes that ends within its limit, with what its guard asks a slow cache before and after it.
LEASE_LIMITS, SHORTEST_LEASE = 10, 30.0


class Seat(NamedTuple):
    """One running call, of the process that took it."""

    pid: int
    number: int


class Bulkhead:
    """Counts the running calls of this process. A child that was forked starts with none.

    ``call_limit``: the seconds that one call may take.
    """

    def __init__(self, max_concurrent: int, call_limit: float = 0.0) -> None:
        self.max_concurrent = max_concurrent
        self.lease = max(SHORTEST_LEASE, LEASE_LIMITS * call_limit)
        self._seats: dict[int, _Seats] = {}

    @property
    def in_use(self) -> int:
        """Calls that are running now."""
        now = clock.monotonic()
        return sum(until > now for until in tuple(self._own_seats().held.values()))

    def look(self) -> Refusal | None:
        """Return the refusal that a call would meet now; takes nothing."""
        if len(self._own_seats().held) < self.max_concurrent or self.in_use < self.max_concurrent:
            return None
        return Refusal("bulkhead_full")

    def take(self) -> Seat | Refusal:
        """Take a seat; it has to be released once."""
        seats, now = self._own_seats(), clock.monotonic()
        with seats.lock:
            if len(seats.held) >= self.max_concurrent and not seats.reclaim_locked(now):
                return Refusal("bulkhead_full")
            seats.last += 1
            number = seats.last
            seats.held[number] = now + self.lease
        return Seat(os.getpid(), number)

    def release(self, seat: Seat) -> None:
        """Give the seat back; in a child one of the parent's means nothing, and one that was reclaimed nowhere."""
        if seat.pid == os.getpid():
            self._own_seats().held.pop(seat.number, None)  # one step of the interpreter's: it needs no lock

    def _own_seats(self) -> _Seats:
        pid = os.getpid()
        return self._seats.get(pid) or self._seats.setdefault(pid, _Seats())


class _Seats:
    """Those of one process, with a lock that no thread of another one can have held at the fork."""

    __slots__ = ("held", "last", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        #: Number of each seat that is held → the monotonic moment at which its lease is over; never more than seats.
        self.held: dict[int, float] = {}
        self.last = 0

    def reclaim_locked(self, now: float) -> bool:
        """Free the seats whose lease is over; whether there was one."""
        over = [number for number, until in tuple(self.held.items()) if until <= now]
        for number in over:
            self.held.pop(number, None)  # given back meanwhile, perhaps
        return bool(over)
