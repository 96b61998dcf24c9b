"""How is a lock kept from surviving a fork in the hands of nobody? By giving each process its own."""

from __future__ import annotations

import os
import threading


class ProcessLock:
    """One ``threading.Lock`` a process, for ``with lock.own:``; a forked child finds its own free.

    The lock itself is handed out. A wrapper's ``__enter__`` could be struck by an exception from outside (a signal
    handler that raises, ``PyThreadState_SetAsyncExc``) when it has taken the lock and not yet returned, and then nobody
    ever releases it; between a real lock's ``__enter__`` and the block of its ``with`` none is let in.
    """

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    @property
    def own(self) -> threading.Lock:
        """The lock of this process."""
        pid = os.getpid()
        return self._locks.get(pid) or self._locks.setdefault(pid, threading.Lock())
