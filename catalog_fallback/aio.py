"""How is an item looked up without blocking an event loop? The same synchronous core, in threads of its own.

Django's asynchronous cache methods are not used: on Django 5.2 they are not atomic. Waiting for another lookup's
flight takes no thread, so that hundreds of tasks can wait for one call.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from django.db import connections

from catalog_fallback.cache import Query, entries_of
from catalog_fallback.flight_table import Flight
from catalog_fallback.flights import Trip
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup

T = TypeVar("T")

#: Threads of one process, for all its event loops; they start when they are needed.
THREADS = 32


class _Threads:
    """The process's executor, made when first needed; after a fork the child makes its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._pid = 0

    def executor(self) -> ThreadPoolExecutor:
        if self._pid != os.getpid():
            self._lock, self._executor, self._pid = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(THREADS, "catalog-fallback-async")
            return self._executor


_threads = _Threads()


async def in_thread(function: Callable[[], T]) -> T:
    """Run the function off the loop, in a copy of the caller's context; its thread keeps no database connection open.

    A cancelled caller does not wait for the end; the thread finishes what it is in, within its own limits.
    """
    call = partial(copy_context().run, _and_give_connections_back, function)
    return await asyncio.get_running_loop().run_in_executor(_threads.executor(), call)


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
    trip, step = await in_thread(partial(_begin, query, deadline, refresh=refresh))
    while isinstance(step, Flight) and trip is not None:
        await _landed(step, deadline.left())
        step = await in_thread(trip.advance)
    assert isinstance(step, Lookup)
    return step


def _begin(query: Query, deadline: Deadline, *, refresh: bool) -> tuple[Trip | None, Lookup | Flight]:
    entries = entries_of[query.catalog.alias]
    kept = entries.look(query) if refresh else entries.read(query)
    if isinstance(kept, Lookup):
        return None, kept
    trip = Trip(query, kept, deadline, refresh=refresh)
    return trip, trip.advance()


async def _landed(flight: Flight, seconds: float) -> None:
    """Wait for a flight without a thread, for so long at most."""
    loop = asyncio.get_running_loop()
    landed = loop.create_future()

    def tell() -> None:
        if not landed.done():
            landed.set_result(None)

    def tell_loop() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell)

    flight.when_landed(tell_loop)
    await asyncio.wait({landed}, timeout=seconds)
