"""Which way does one lookup go that the cache could not answer? In steps, between which it may have to wait."""

from __future__ import annotations

from catalog_fallback import clock, flights, stop_list
from catalog_fallback.boarding import Boarding, board, board_unless_changed, join, land, under_way
from catalog_fallback.cache import entries_of
from catalog_fallback.entry_form import Kept
from catalog_fallback.filling import Fill, has_to_ask
from catalog_fallback.flight_table import Flight
from catalog_fallback.queries import Query
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup
from catalog_fallback.waiting import brought, from_entry


class Trip:
    """The way of one lookup.

    ``kept`` is what the cache had in hand; with ``refresh`` an answer takes another entry than that one.
    ``is_old_view``: the caller's connection may see an old stop list; None asks it. ``joined`` is a flight that was
    begun under what ``kept`` has as the gate, and that was waited for.
    """

    def __init__(
        self,
        query: Query,
        kept: Kept,
        deadline: Deadline,
        *,
        refresh: bool = False,
        is_old_view: bool | None = None,
        joined: Flight | None = None,
    ) -> None:
        self.deadline = deadline
        is_old_view = stop_list.sees_old_state() if is_old_view is None else is_old_view
        self._fill = Fill(query, entries_of[query.catalog.alias], deadline, is_old_view)
        self.kept = kept
        self.seen = kept.entry if refresh else None
        #: Somebody else's flight that was waited for last.
        self._joined = joined
        #: A flight of our own that was begun by :meth:`join`, and not boarded yet.
        self._own: Flight | None = None

    def join(self) -> Flight | None:
        """Return the flight to wait for, if this process has one; begin it otherwise, where that asks nobody.

        What was begun is flown by :meth:`advance`, or given up by :meth:`leave`.
        """
        entry = self.kept.entry
        if entry is not None and entry != self.seen and entry.expires_at > clock.wall():
            return None  # that is for the database to confirm
        joined = join(self._fill, self.kept)
        if joined is None:
            return None
        flight, is_own = joined
        if is_own:
            self._own = flight
            return None
        self._joined = flight
        return flight

    @property
    def flight(self) -> Flight | None:
        """The flight that :meth:`join` has found or begun."""
        return self._joined or self._own

    def leave(self) -> None:
        """Give up what was begun by :meth:`join`, unless it is flown: others need not wait for it."""
        own, self._own = self._own, None
        if own is not None:
            land(self._fill, self.kept, own)

    def advance(self) -> Lookup | Flight:
        """Do what needs no waiting for this process's others: return the answer, or the flight to wait for.

        The call after a flight was returned takes up what it brought, or goes on without it.
        """
        try:
            return self._advance()
        finally:
            self.leave()

    def _advance(self) -> Lookup | Flight:
        step: Lookup | Flight | None = self.take_up()
        if step is not None:
            return step
        answer = self._brought()
        if answer is not None:
            return self._fill.joined(answer)
        if self._joined is not None:
            self._joined, self.kept = None, self._fill.entries.look(self._fill.query)
        while step is None and not self.deadline.has_passed:
            step = from_entry(self._fill, self.kept, self.seen) or self._from_sources()
            if step is None:
                self.kept = self._fill.entries.look(self._fill.query)
        if isinstance(step, Flight):
            self._joined = step
        return step or self._fill.past_deadline(self.kept)

    def take_up(self) -> Lookup | None:
        """Return the answer that the joined flight has brought, or the one that is due when the time is over.

        Asks nobody, so it may run where nothing may block; None: :meth:`advance` has to go on.
        """
        answer = self._brought()
        if answer is not None:
            return None if has_to_ask(self._fill.query, answer) else answer
        if not self.deadline.has_passed:
            return None
        self.leave()  # nobody need call advance() any more
        return self._fill.past_deadline(self.kept)

    def _brought(self) -> Lookup | None:
        return None if self._joined is None else brought(self._joined, self._fill.query, self.seen)

    def _from_sources(self) -> Lookup | Flight | None:
        """Fetch, or find whoever does; None when the cache has to be read again."""
        fill, kept = self._fill, self.kept
        others = under_way(fill, kept) if self._own is None else None
        step = others or board_unless_changed(fill, kept, self._own)
        if isinstance(step, Flight):
            return step
        if isinstance(step, Boarding):
            self._own = None
            return flights.fly(step, kept.entry, self.seen)
        outlook, refused = fill.ask_guards(step)
        if refused is not None:
            return self._refused(fill.without_call(refused, kept))
        own, self._own = self._own, None
        boarding = board(fill, kept, outlook, own)
        if isinstance(boarding, Flight):
            return boarding
        return flights.fly(boarding, kept.entry, self.seen)

    def _refused(self, lookup: Lookup) -> Lookup:
        """Nobody may be called, so nobody who waits would fare better."""
        if self._own is not None and lookup.reason != "deadline":
            self._own.lookup = lookup
        return lookup


def look_up(query: Query, kept: Kept, deadline: Deadline, *, refresh: bool = False) -> Lookup:
    """Answer a query that the cache could not answer by itself.

    Ends within the deadline plus the cache and database operation that it is in.
    """
    trip = Trip(query, kept, deadline, refresh=refresh)
    try:
        step = trip.join() or trip.advance()
    finally:
        trip.leave()
    while isinstance(step, Flight):
        step.wait(deadline.left())
        step = trip.advance()
    return step
