"""How is an item looked up without blocking an event loop? The same synchronous core, in threads of its own.

Django's asynchronous cache methods are not used: on Django 5.2 they are not atomic. What tasks ask for at the same
moment is read in one round trip, and waiting for another lookup's flight takes no thread, so that hundreds of tasks
can wait for one call.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

from catalog_fallback.cache import Kept, Query, entries_of
from catalog_fallback.flight_table import Flight
from catalog_fallback.off_loop import Pool, called_back, in_thread, start, submit, surely
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup
from catalog_fallback.trips import Trip

__all__ = ["Pool", "in_thread", "look_up", "start", "surely"]

#: How many lookups one read serves at most.
TOGETHER = 100


async def look_up(query: Query, deadline: Deadline, *, refresh: bool = False) -> Lookup:
    """Answer a query without blocking the loop.

    Cancelling is safe at any time: a fetch that has begun ends within its limits and is kept for others.
    """
    found = await _reads.read(query, deadline, refresh=refresh)
    if isinstance(found, Lookup):
        return found
    trip = Trip(query, found, deadline, refresh=refresh, is_old_view=False)
    step: Lookup | Flight | None = trip.take_up() or trip.join()
    while not isinstance(step, Lookup):
        if step is not None:
            await called_back(step.when_landed, deadline.left())
        step = trip.take_up() or await in_thread(trip.advance, deadline, if_never=trip.leave)
    return step


_Brought = Sequence[tuple["asyncio.Future[Lookup | Kept]", Lookup | Kept]]


class _Asked(NamedTuple):
    """A read that a task waits for."""

    query: Query
    answer: asyncio.Future[Lookup | Kept]


class _Reads:
    """Reads of the cache on behalf of tasks: what is asked for in one turn of a loop is read in one round trip.

    A read serves nobody who asked after it had begun.
    """

    def __init__(self) -> None:
        #: Loop → (catalog, whether entries are only to be looked at) → what is asked for in this turn.
        self._asked: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, bool], list[_Asked]]]
        self._asked = WeakKeyDictionary()

    async def read(self, query: Query, deadline: Deadline, *, refresh: bool) -> Lookup | Kept:
        """Return what the cache has; nothing when no thread was free to read it before the deadline."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Lookup | Kept] = loop.create_future()
        groups = self._asked.get(loop)
        if groups is None:
            groups = self._asked[loop] = {}
            loop.call_soon(self._begin, loop)
        groups.setdefault((query.catalog.alias, refresh), []).append(_Asked(query, answer))
        timer = loop.call_later(deadline.left(), _settle, answer, Kept())
        try:
            return await answer
        finally:
            timer.cancel()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        for (alias, refresh), asked in self._asked.pop(loop).items():
            entries = entries_of[alias]
            read = entries.look_many if refresh else entries.read_many
            for first in range(0, len(asked), TOGETHER):
                _read_together(loop, read, asked[first : first + TOGETHER])


def _read_together(
    loop: asyncio.AbstractEventLoop,
    read: Callable[[Sequence[Query]], Sequence[Lookup | Kept]],
    asked: Sequence[_Asked],
) -> None:
    def bring(future: Future[Sequence[Lookup | Kept]]) -> None:
        found = future.result() if future.exception() is None else [Kept()] * len(asked)
        _deliver(loop, [(each.answer, one) for each, one in zip(asked, found, strict=True)])

    def tell(future: Future[Sequence[Lookup | Kept]]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(bring, future)

    submit(Pool.READING, partial(read, [each.query for each in asked])).add_done_callback(tell)


def _deliver(loop: asyncio.AbstractEventLoop, brought: _Brought, count: int = 1) -> None:
    """Let tasks go on, one and then more in each turn, so that the thread that the first one starts can begin."""
    for answer, found in brought[:count]:
        _settle(answer, found)
    if len(brought) > count:
        loop.call_soon(_deliver, loop, brought[count:], 4 * count)


def _settle(answer: asyncio.Future[Lookup | Kept], found: Lookup | Kept) -> None:
    if not answer.done():
        answer.set_result(found)


_reads = _Reads()
