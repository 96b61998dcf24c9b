"""How is a lock kept from surviving a fork in the hands of nobody? By giving each process its own."""

from __future__ import annotations

import os
import threading
from types import TracebackType


class ProcessLock:
    """A ``threading.Lock`` for ``with``. A child that was forked while a thread of its parent held it finds it free."""

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    def __enter__(self) -> None:
        pid = os.getpid()
        lock = self._locks.get(pid) or self._locks.setdefault(pid, threading.Lock())
        lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._locks[os.getpid()].release()
