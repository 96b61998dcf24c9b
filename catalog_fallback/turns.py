"""How many threads of a process read from one cache at the same moment? A few; the others wait their turn.

Two hundred threads that all read at once take several times as long, for every reply wakes one that has to wait for the
interpreter; and the one of them that goes on to fetch comes last. They would also need two hundred connections.
"""

from __future__ import annotations

import os
from queue import SimpleQueue

#: Enough to keep one interpreter busy with replies, even from a cache that is some milliseconds away.
AT_ONCE = 8


class Turns:
    """So many at a time. A child that was forked starts with all turns free, whoever had one in its parent."""

    __slots__ = ("_free", "_pid")

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._fill(at_once)

    def _fill(self, at_once: int) -> None:
        free: SimpleQueue[int] = SimpleQueue()
        for _ in range(at_once):
            free.put(at_once)
        self._free, self._pid = free, os.getpid()

    def take(self) -> SimpleQueue[int]:
        """Wait for a turn; return where it has to be put back."""
        if self._pid != os.getpid():
            self._fill(AT_ONCE)
        free = self._free
        free.get()
        return free
