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

from catalog_fallback.cache import entries_of
from catalog_fallback.crowds import Crowd, wake
from catalog_fallback.entry_form import Kept
from catalog_fallback.flight_table import Flight
from catalog_fallback.off_loop import Pool, in_thread, start, submit, surely
from catalog_fallback.queries import Query
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
            await _landing(step, deadline)
        step = trip.take_up() or await in_thread(trip.advance, deadline, if_never=trip.leave)
    return step


class _Reads:
    """Reads of the cache on behalf of tasks: what is asked for in one turn of a loop is read in one round trip.

    A read serves nobody who asked after it had begun.
    """

    def __init__(self) -> None:
        #: Loop → (catalog, whether entries are only to be looked at) → what is asked for in this turn.
        self._asked: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, bool], list[_Read]]]
        self._asked = WeakKeyDictionary()

    def read(self, query: Query, deadline: Deadline, *, refresh: bool) -> asyncio.Future[Lookup | Kept]:
        """Return what will hold what the cache has; nothing when no thread was free to read it before the deadline."""
        loop = asyncio.get_running_loop()
        groups = self._asked.get(loop)
        if groups is None:
            groups = self._asked[loop] = {}
            loop.call_soon(self._begin, loop)
        reads = groups.setdefault((query.catalog.alias, refresh), [])
        if not reads or len(reads[-1].queries) == TOGETHER:
            reads.append(_Read([], Crowd(loop, Kept())))
        reads[-1].queries.append(query)
        return reads[-1].crowd.join(deadline.left())

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        for (alias, refresh), reads in self._asked.pop(loop).items():
            entries = entries_of[alias]
            for read in reads:
                _begin(loop, read, entries.look_many if refresh else entries.read_many)


class _Read(NamedTuple):
    """One read, and the tasks that wait for it."""

    queries: list[Query]
    crowd: Crowd[Lookup | Kept]


def _begin(
    loop: asyncio.AbstractEventLoop, read: _Read, function: Callable[[Sequence[Query]], Sequence[Lookup | Kept]]
) -> None:
    def bring(future: Future[Sequence[Lookup | Kept]]) -> None:
        read.crowd.let_go(future.result() if future.exception() is None else [Kept()] * len(read.crowd))

    def tell(future: Future[Sequence[Lookup | Kept]]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(bring, future)

    submit(Pool.READING, partial(function, read.queries)).add_done_callback(tell)


async def _landing(flight: Flight, deadline: Deadline) -> None:
    """Wait until the flight has landed, or the deadline has passed."""
    if flight.has_landed:
        return
    loop = asyncio.get_running_loop()
    crowds = _waiting.setdefault(loop, WeakKeyDictionary())
    crowd = crowds.get(flight)
    if crowd is None:
        crowd = crowds[flight] = Crowd(loop, None)
        flight.when_landed(partial(wake, loop, crowd))
    await crowd.join(deadline.left())


_reads = _Reads()
#: Loop → flight → the tasks of the loop that wait for it.
_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakKeyDictionary[Flight, Crowd[None]]] = WeakKeyDictionary()
