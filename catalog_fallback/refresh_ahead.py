"""When is a hit so old that it is fetched anew behind the reader's back? REFRESH_AHEAD.

One process refreshes, in one of a few background threads, while hits go on. A refresh that fails changes nothing, and
is not tried again for some seconds. What is invalidated meanwhile is not kept, by the same token as with every fetch.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from functools import partial

from django.db import connections

from catalog_fallback import clock
from catalog_fallback.entry_form import Entry
from catalog_fallback.flights import refresh
from catalog_fallback.queries import Query
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import CacheStatus, Lookup, State

logger = logging.getLogger("catalog_fallback")

#: Background threads of one process, and refreshes that may wait for one; what comes on top is left to later hits.
THREADS = 2
WAITING = 100
#: Seconds after a refresh that brought nothing for which the item is left to its hits, and for how many items at most.
REST, MOST_RESTING = 5.0, 10_000


def is_due(fetched_at: float, expires_at: float, fraction: float) -> bool:
    """Whether an answer has used up that fraction of its life; moments are seconds since the epoch."""
    return clock.wall() >= fetched_at + fraction * (expires_at - fetched_at)


def _is_entry_due(fraction: float, entry: Entry) -> bool:
    return is_due(entry.fetched_at, entry.expires_at, fraction)


class Refresher:
    """The background threads of one process; they start when there is work for them, and end with the process."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._wake = threading.Condition()
        self._waiting: deque[Query] = deque()
        self._names: set[str] = set()
        #: Entry key → the monotonic moment until which another refresh is not worth its call.
        self._resting: dict[str, float] = {}
        self._threads: list[threading.Thread] = []
        self._is_over = False
        self._pid = os.getpid()

    def submit(self, query: Query) -> bool:
        """Have the query refreshed in the background; False when it is under way already or there is no room."""
        if self._pid != os.getpid():
            self._reset()
        with self._wake:
            if self._is_over or query.entry_key in self._names or len(self._waiting) >= WAITING:
                return False
            if self._resting and self._resting.get(query.entry_key, 0.0) > clock.monotonic():
                return False
            if not self._has_thread_locked(len(self._names) + 1):
                return False
            self._names.add(query.entry_key)
            self._waiting.append(query)
            self._wake.notify()
            return True

    def _has_thread_locked(self, wanted: int) -> bool:
        """Whether somebody works; starts another thread where ``wanted`` are not there yet."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) < min(THREADS, wanted):
            thread = threading.Thread(target=self._work, name="catalog-fallback-refresh", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the machine has no more threads, or the interpreter ends: hits go on
                return bool(self._threads)
            atexit.unregister(self.stop)
            atexit.register(self.stop)
            self._threads.append(thread)
        return True

    def stop(self, seconds: float = 5.0) -> None:
        """Drop what waits, and wait for what is under way."""
        if self._pid != os.getpid():
            return
        with self._wake:
            self._is_over = True
            self._waiting.clear()
            self._wake.notify_all()
        for thread in self._threads:
            thread.join(seconds)

    def _work(self) -> None:
        while (query := self._next()) is not None:
            is_fruitful = False
            try:
                deadline = Deadline(clock.monotonic() + query.catalog.budget)
                is_fruitful = refresh(query, deadline, partial(_is_entry_due, query.catalog.refresh_ahead))
            except Exception:
                logger.exception("Catalog %r: a refresh ahead of expiry raised.", query.catalog.alias)
            finally:
                with self._wake:
                    self._names.discard(query.entry_key)
                    if not is_fruitful:
                        self._rest_locked(query.entry_key)
                connections.close_all()

    def _rest_locked(self, name: str) -> None:
        now = clock.monotonic()
        if len(self._resting) >= MOST_RESTING:
            self._resting = {each: until for each, until in self._resting.items() if until > now}
            while len(self._resting) >= MOST_RESTING:
                del self._resting[next(iter(self._resting))]
        self._resting[name] = now + REST

    def _next(self) -> Query | None:
        with self._wake:
            while not self._waiting and not self._is_over:
                self._wake.wait()
            return self._waiting.popleft() if self._waiting else None


refresher = Refresher()


def notice(query: Query, lookup: Lookup) -> None:
    """Take notice of an answer; have it refreshed when it is a hit that has grown old."""
    fetched_at, expires_at = lookup.fetched_at, lookup.expires_at
    if lookup.cache is not CacheStatus.HIT or lookup.state is not State.FOUND or not (fetched_at and expires_at):
        return
    if is_due(fetched_at.timestamp(), expires_at.timestamp(), query.catalog.refresh_ahead):
        refresher.submit(query)
