"""How many threads of a process read from one cache at the same moment? A few; the others wait their turn.

Two hundred threads that all read at once take several times as long, for every reply wakes one that has to wait for the
interpreter; and the one of them that goes on to fetch comes last. They would also need two hundred connections.
"""

from __future__ import annotations

import os
from contextlib import suppress
from queue import Empty, SimpleQueue

#: Seconds after which one goes without a turn. Whoever was torn away between taking a turn and holding it never puts it
#: back; whoever went without one puts one back all the same, and so makes good for it.
PATIENCE = 5.0


class Turns:
    """So many at a time. A child that was forked starts with all turns free, whoever had one in its parent."""

    __slots__ = ("_at_once", "_free", "_pid")

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._fill(at_once)

    def _fill(self, at_once: int) -> None:
        free: SimpleQueue[int] = SimpleQueue()
        for _ in range(at_once):
            free.put(at_once)
        self._free, self._pid = free, os.getpid()

    def take_free(self) -> SimpleQueue[int] | None:
        """Return where a turn has to be put back, None where one would have to be waited for."""
        if self._pid != os.getpid():
            self._fill(self._at_once)
        free = self._free
        try:
            free.get_nowait()
        except Empty:
            return None
        return free

    def take(self) -> SimpleQueue[int]:
        """Wait for a turn, but not for ever; return where one has to be put back."""
        if self._pid != os.getpid():
            self._fill(self._at_once)
        free = self._free
        try:
            free.get(timeout=PATIENCE)
        except Empty:
            return free
        if free.qsize() >= self._at_once:  # somebody who went without one need not have: there is one too many
            self._remove_one(free)
        return free

    def _remove_one(self, free: SimpleQueue[int]) -> None:
        with suppress(Empty):  # it has just been taken
            free.get_nowait()
