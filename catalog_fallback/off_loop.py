"""How does work leave an event loop, and how is its end heard of there? Threads of our own, and calls back."""

from __future__ import annotations

import asyncio
import enum
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from django.db import connections

from catalog_fallback.crowds import call_in
from catalog_fallback.resilience.time_budget import Deadline

T = TypeVar("T")


@enum.unique
class Pool(enum.Enum):
    """Threads of one process, for all its event loops; they start when they are needed.

    Hits do not wait behind calls to slow sources: reading the cache has threads of its own. So has whatever may wait
    for somebody's flight (batches): a flight that a loop began must not queue behind those who wait for it. Listeners
    keep nobody waiting but each other.
    """

    READING = 8
    FETCHING = 32
    WAITING = 16
    TELLING = 4


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


def submit(pool: Pool, function: Callable[[], T]) -> Future[T]:
    """Run the function in a thread, which keeps no database connection."""
    return _threads.executor(pool).submit(_and_give_connections_back, function)


def _and_give_connections_back(function: Callable[[], T]) -> T:
    try:
        return function()
    finally:
        for connection in connections.all(initialized_only=True):
            if connection.autocommit:
                connection.close_if_unusable_or_obsolete()
            else:  # the next lookup must not see the stop list as this one saw it
                connection.close()


def start(function: Callable[[], object]) -> None:
    """Have the function run off the loop, in a copy of the caller's context, without waiting for it."""
    submit(Pool.READING, partial(copy_context().run, function))


async def surely(function: Callable[[], T]) -> T:
    """Run the function off the loop, whatever becomes of the caller; a cancelled one does not wait for its end."""
    future = submit(Pool.READING, partial(copy_context().run, function))
    await called_back(future.add_done_callback)
    return future.result()


async def in_thread(
    function: Callable[[], T],
    deadline: Deadline | None = None,
    pool: Pool = Pool.FETCHING,
    if_never: Callable[[], None] = lambda: None,
) -> T | None:
    """Run the function off the loop, in a copy of the caller's context.

    None when no thread was free until the deadline. A cancelled caller does not wait for the end; the thread finishes
    what it is in, within its own limits. ``if_never`` is called instead of a function that will never run.
    """
    try:
        future = submit(pool, partial(copy_context().run, function))
    except RuntimeError:
        if_never()
        raise
    try:
        await called_back(future.add_done_callback, None if deadline is None else deadline.left())
        if not future.done() and not future.cancel():
            await called_back(future.add_done_callback)
    finally:
        if future.cancel():
            if_never()
    return None if future.cancelled() else future.result()


async def called_back(ask: Callable[[Callable[..., None]], Any], seconds: float | None = None) -> None:
    """Ask for a call back, from whatever thread, and wait for it without one of our own, for so long at most."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def call_back(*_: object) -> None:
        call_in(loop, wake)

    timer = None if seconds is None else loop.call_later(seconds, wake)
    ask(call_back)
    try:
        await waiter
    finally:
        if timer is not None:
            timer.cancel()
