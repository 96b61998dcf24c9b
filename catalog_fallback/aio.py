"""How is an item looked up without blocking an event loop? The same synchronous core, in threads of its own.

Django's asynchronous cache methods are not used: on Django 5.2 they are not atomic. Waiting for another lookup's
flight takes no thread, so that hundreds of tasks can wait for one call.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from django.db import connections

from catalog_fallback.cache import Kept, Query, entries_of
from catalog_fallback.filling import Fill
from catalog_fallback.flight_table import Flight
from catalog_fallback.flights import Trip
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup

T = TypeVar("T")


class Pool(enum.Enum):
    """Threads of one process, for all its event loops; they start when they are needed.

    Hits do not wait behind calls to slow sources: reading the cache has threads of its own.
    """

    READING = 8
    FETCHING = 32


class _Threads:
    """The process's executors, made when first needed; after a fork the child makes its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executors: dict[Pool, ThreadPoolExecutor] = {}
        self._pid = os.getpid()

    def executor(self, pool: Pool) -> ThreadPoolExecutor:
        if self._pid != os.getpid():
            self._lock, self._executors, self._pid = threading.Lock(), {}, os.getpid()
        with self._lock:
            if pool not in self._executors:
                self._executors[pool] = ThreadPoolExecutor(pool.value, f"catalog-fallback-{pool.name.lower()}")
            return self._executors[pool]


_threads = _Threads()


async def in_thread(
    function: Callable[[], T], deadline: Deadline | None = None, pool: Pool = Pool.FETCHING
) -> T | None:
    """Run the function off the loop, in a copy of the caller's context; its thread keeps no database connection.

    None when no thread was free until the deadline; the function has not run then, and never will. A cancelled caller
    does not wait for the end; the thread finishes what it is in, within its own limits.
    """
    call = partial(copy_context().run, _and_give_connections_back, function)
    future = _threads.executor(pool).submit(call)
    try:
        await _called_back(future.add_done_callback, None if deadline is None else deadline.left())
        if not future.done() and not future.cancel():
            await _called_back(future.add_done_callback)
    finally:
        future.cancel()
    return None if future.cancelled() else future.result()


def _and_give_connections_back(function: Callable[[], T]) -> T:
    try:
        return function()
    finally:
        for connection in connections.all(initialized_only=True):
            connection.close_if_unusable_or_obsolete()


async def look_up(query: Query, deadline: Deadline, *, refresh: bool = False) -> Lookup:
    """Answer a query without blocking the loop.

    Cancelling is safe at any time: a fetch that has begun ends within its limits and is kept for others.
    """
    entries = entries_of[query.catalog.alias]
    found = await in_thread(partial(entries.look if refresh else entries.read, query), deadline, Pool.READING)
    if isinstance(found, Lookup):
        return found
    kept = found or Kept()
    begun = await in_thread(partial(_begin, query, kept, deadline, refresh=refresh), deadline)
    if begun is None:
        return Fill(query, entries, deadline, is_old_view=False).past_deadline(kept)
    trip, step = begun
    while not isinstance(step, Lookup):
        if step is not None:
            await _called_back(step.when_landed, deadline.left())
        step = trip.take_up() or await in_thread(trip.advance, deadline)
    return step


def _begin(query: Query, kept: Kept, deadline: Deadline, *, refresh: bool) -> tuple[Trip, Lookup | Flight | None]:
    trip = Trip(query, kept, deadline, refresh=refresh)
    return trip, trip.advance()


async def _called_back(ask: Callable[[Callable[..., None]], Any], seconds: float | None = None) -> None:
    """Ask for a call back, from whatever thread, and wait for it without one of our own, for so long at most."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def call_back(*_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(wake)

    timer = None if seconds is None else loop.call_later(seconds, wake)
    ask(call_back)
    try:
        await waiter
    finally:
        if timer is not None:
            timer.cancel()
