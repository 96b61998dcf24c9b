"""May one more call run at the same time? At most so many in one process; nobody waits."""

from __future__ import annotations

import os
from dataclasses import dataclass

from catalog_fallback.resilience.process_lock import ProcessLock
from catalog_fallback.resilience.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Seat:
    """One running call, of the process that took it."""

    pid: int


class Bulkhead:
    """Counts the running calls of this process. A child that was forked starts with none."""

    def __init__(self, max_concurrent: int) -> None:
        self.max_concurrent = max_concurrent
        self._lock = ProcessLock()
        self._taken: dict[int, int] = {}

    @property
    def in_use(self) -> int:
        """Calls that are running now."""
        return self._taken.get(os.getpid(), 0)

    def look(self) -> Refusal | None:
        """Return the refusal that a call would meet now; takes nothing."""
        return Refusal("bulkhead_full") if self.in_use >= self.max_concurrent else None

    def take(self) -> Seat | Refusal:
        """Take a seat; it has to be released once."""
        pid = os.getpid()
        with self._lock:
            if self._taken.get(pid, 0) >= self.max_concurrent:
                return Refusal("bulkhead_full")
            self._taken[pid] = self._taken.get(pid, 0) + 1
        return Seat(pid)

    def release(self, seat: Seat) -> None:
        """Give the seat back; in a child one of the parent's means nothing."""
        if seat.pid == os.getpid():
            with self._lock:
                self._taken[seat.pid] -= 1
