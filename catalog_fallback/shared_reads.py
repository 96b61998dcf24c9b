"""Who reads the cache when many threads of a process want the same item at the same moment? One, for all who wait.

A read serves nobody who asked after it had begun: what was invalidated before somebody asked is never shown to him.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from catalog_fallback import turns
from catalog_fallback.turns import Turns

Keys = tuple[str, ...]
#: What the server holds under the keys, not decoded yet; None where it could not be asked.
Values = list[bytes | None] | None

#: Keys are spread over so many lots, each with turns of its own.
LOTS = 4
#: Reads under way at once in each lot, and so at most of the same keys. In all lots together enough to keep one
#: interpreter busy with replies, even from a cache that is some milliseconds away.
AT_ONCE = 2


class SharedReads:
    """The reads of one cache. A child that was forked begins with none under way, whatever its parent was in."""

    __slots__ = ("_groups", "_lock", "_lots", "_pid")

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lots = tuple(Turns(AT_ONCE) for _ in range(LOTS))
        self._lock = threading.Lock()
        #: Who waits for a turn to read these keys.
        self._groups: dict[Keys, _Group] = {}
        self._pid = os.getpid()

    def read(self, keys: Keys, ask: Callable[[Keys], Values]) -> Values:
        """Return what ``ask`` returns, called here or by somebody who waits for the same keys; it must not raise."""
        lot = self._lots[hash(keys) % LOTS]
        turn = lot.take_free()
        if turn is None:
            return self._with_others(keys, ask)
        try:
            return ask(keys)
        finally:
            lot.give_back(turn)

    def _with_others(self, keys: Keys, ask: Callable[[Keys], Values]) -> Values:
        if self._pid != os.getpid():
            self._begin()
        with self._lock:
            group = self._groups.get(keys)
            if is_first := group is None:
                group = self._groups[keys] = _Group()
        return self._lead(group, keys, ask) if is_first else self._follow(group, keys, ask)

    def _lead(self, group: _Group, keys: Keys, ask: Callable[[Keys], Values]) -> Values:
        """Wait for a turn, and read for all who have come until then."""
        try:
            lot = self._lots[hash(keys) % LOTS]
            turn = lot.take()
            try:
                self._close(group, keys)
                group.values = ask(keys)
                group.is_read = True
            finally:
                lot.give_back(turn)
        finally:
            self._close(group, keys)
            group.over.put(0)
        return group.values

    def _follow(self, group: _Group, keys: Keys, ask: Callable[[Keys], Values]) -> Values:
        """Wait for the one who reads; whoever waits in vain, because that one was torn away, reads for himself."""
        try:
            group.over.get(timeout=turns.PATIENCE)
        except Empty:
            self._close(group, keys)
            return ask(keys)
        group.over.put(0)
        return group.values if group.is_read else ask(keys)

    def _close(self, group: _Group, keys: Keys) -> None:
        """Nobody joins any more."""
        with self._lock:
            if self._groups.get(keys) is group:
                del self._groups[keys]


class _Group:
    """Who waits for one read. They go on one after the other: all at once they would stand in the first one's way."""

    __slots__ = ("is_read", "over", "values")

    def __init__(self) -> None:
        self.over: SimpleQueue[int] = SimpleQueue()
        self.values: Values = None
        self.is_read = False
