"""How is an item looked up without blocking an event loop? The same synchronous core, in threads of its own.

Django's asynchronous cache methods are not used: on Django 5.2 they are not atomic. What tasks ask for at the same
moment is read in one round trip, and waiting for another lookup's flight takes no thread, so that hundreds of tasks
can wait for one call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

from catalog_fallback.cache import entries_of
from catalog_fallback.crowds import Crowd, call_in, in_turns, settle
from catalog_fallback.entry_form import Entry, Kept
from catalog_fallback.filling import has_to_ask
from catalog_fallback.flight_table import Flight
from catalog_fallback.off_loop import Pool, in_thread, start, submit, surely
from catalog_fallback.queries import Query
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup
from catalog_fallback.trips import Trip
from catalog_fallback.waiting import brought

__all__ = ["Pool", "in_thread", "look_up", "start", "surely"]

#: How many different questions one read serves at most.
TOGETHER = 100


async def look_up(query: Query, deadline: Deadline, *, refresh: bool = False) -> Lookup:
    """Answer a query without blocking the loop.

    Cancelling is safe at any time: a fetch that has begun ends within its limits and is kept for others.
    """
    found = await _reads.read(query, deadline, refresh=refresh)
    if isinstance(found, Lookup):
        return found
    trip: Trip | None = None
    try:
        trip = Trip(query, found.kept, deadline, refresh=refresh, is_old_view=False, joined=found.flight)
        step: Lookup | Flight | None = trip.take_up() or (trip.join() if found.flight is None else None)
    finally:
        if found.others is not None:
            found.others.follow(trip, found.kept)
    while not isinstance(step, Lookup):
        if step is not None:
            await _landing(step, deadline)
        step = trip.take_up() or await in_thread(trip.advance, deadline, if_never=trip.leave)
    return step


class _Next(NamedTuple):
    """What a task goes on with: what the cache has in hand, and a flight that has landed meanwhile or is to be begun.

    ``others``: those who want the same, for whom this task goes ahead.
    """

    kept: Kept = Kept()
    flight: Flight | None = None
    others: _Asked | None = None


class _Asked:
    """One query of one turn of a loop, and the tasks that wait for what it brings."""

    __slots__ = ("_loop", "crowd", "query")

    def __init__(self, loop: asyncio.AbstractEventLoop, query: Query) -> None:
        self._loop = loop
        self.query = query
        self.crowd: Crowd[Lookup | _Next] = Crowd(loop, _Next())

    def bring(self, found: Lookup | Kept) -> list[Callable[[], object]]:
        """Return the steps in which all go on: each with the answer, or one who goes ahead."""
        if isinstance(found, Lookup):
            return [partial(settle, future, found) for future in self.crowd.leave()]
        return [partial(self._send_ahead, found)]

    def _send_ahead(self, kept: Kept) -> None:
        """Chosen now and no sooner: whoever has been cancelled meanwhile would lead nobody."""
        first = self.crowd.first()
        if first is not None:
            settle(first, _Next(kept, others=self))

    def follow(self, trip: Trip | None, kept: Kept) -> None:
        """Let the others wait for the flight of the one who went ahead; without one each goes on by himself."""
        if trip is None or trip.flight is None:
            self.leave_alone(kept)
        elif len(self.crowd):
            self.crowd.otherwise = _Next(trip.kept)
            trip.flight.when_landed(partial(call_in, self._loop, self._landed, trip.flight, trip.kept, trip.seen))

    def leave_alone(self, kept: Kept) -> None:
        """Let each of the others go on by himself."""
        self.crowd.let_all_go(_Next(kept))

    def _landed(self, flight: Flight, kept: Kept, seen: Entry | None) -> None:
        lookup = brought(flight, self.query, seen)
        if lookup is None or has_to_ask(self.query, lookup):
            self.crowd.let_all_go(_Next(kept, flight))
        else:
            self.crowd.let_all_go(lookup)


class _Reads:
    """Reads of the cache on behalf of tasks: what is asked for in one turn of a loop is read in one round trip.

    A read serves nobody who asked after it had begun.
    """

    def __init__(self) -> None:
        #: Loop → (catalog, whether entries are only to be looked at) → name → what is asked for in this turn.
        self._asked: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, bool], dict[str, _Asked]]]
        self._asked = WeakKeyDictionary()

    async def read(self, query: Query, deadline: Deadline, *, refresh: bool) -> Lookup | _Next:
        """Return what the cache has; nothing when no thread was free to read it before the deadline."""
        loop = asyncio.get_running_loop()
        groups = self._asked.get(loop)
        if groups is None:
            groups = self._asked[loop] = {}
            loop.call_soon(self._begin, loop)
        group = groups.setdefault((query.catalog.alias, refresh), {})
        asked = group.get(query.name)
        if asked is None:
            asked = group[query.name] = _Asked(loop, query)
        future = asked.crowd.join(deadline.left())
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # it was to go ahead, or had its answer, at that very moment
                _give_up(future.result())
            raise

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        for (alias, refresh), group in self._asked.pop(loop).items():
            asked = list(group.values())
            for at in range(0, len(asked), TOGETHER):
                _begin(loop, asked[at : at + TOGETHER], alias, refresh=refresh)


def _give_up(found: Lookup | _Next) -> None:
    if isinstance(found, _Next) and found.others is not None:
        found.others.leave_alone(found.kept)


def _begin(loop: asyncio.AbstractEventLoop, asked: Sequence[_Asked], alias: str, *, refresh: bool) -> None:
    """Have a thread read for them; where that fails, whatever the reason, each of them finds out by himself."""

    def bring(found: Sequence[Lookup | Kept]) -> None:
        in_turns(loop, [step for each, what in zip(asked, found, strict=True) for step in each.bring(what)])

    def tell(future: Future[Sequence[Lookup | Kept]]) -> None:
        call_in(loop, bring, future.result() if future.exception() is None else nothing)

    nothing = [Kept()] * len(asked)
    try:
        submit(Pool.READING, partial(_read, alias, [each.query for each in asked], refresh=refresh)).add_done_callback(
            tell
        )
    except RuntimeError:  # the interpreter ends, and starts no threads any more
        bring(nothing)


def _read(alias: str, queries: Sequence[Query], *, refresh: bool) -> Sequence[Lookup | Kept]:
    entries = entries_of[alias]
    return entries.look_many(queries) if refresh else entries.read_many(queries)


async def _landing(flight: Flight, deadline: Deadline) -> None:
    """Wait until the flight has landed, or the deadline has passed."""
    if flight.has_landed:
        return
    loop = asyncio.get_running_loop()
    crowds = _waiting.setdefault(loop, WeakKeyDictionary())
    crowd = crowds.get(flight)
    if crowd is None:
        crowd = crowds[flight] = Crowd(loop, None)
        flight.when_landed(partial(call_in, loop, crowd.let_all_go, None))
    await crowd.join(deadline.left())


_reads = _Reads()
#: Loop → flight → the tasks of the loop that wait for it.
_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakKeyDictionary[Flight, Crowd[None]]] = WeakKeyDictionary()
