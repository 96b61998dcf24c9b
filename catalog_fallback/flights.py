"""Who fetches, and who waits? One flight an item, between reading the cache and writing it.

A flight is named by entry key *and* gate token: a lookup that starts after an invalidation finds another token, and so
never joins a flight that began before it. Within the process the others wait for an event; whoever owns the process's
flight takes the lease, or watches whoever has it in another process.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from catalog_fallback import clock, leases, stop_list
from catalog_fallback.cache import Entry, Kept, Query, entries_of, hit
from catalog_fallback.filling import Fill
from catalog_fallback.flight_table import Flight, table
from catalog_fallback.leases import Lease
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup

#: Seconds between two looks at a lease that another process has, chosen at random between these.
POLL = (0.005, 0.02)

#: Whether this context owns a flight: a lookup made by an adapter must not wait for one.
is_flying: ContextVar[bool] = ContextVar("catalog_fallback_is_flying", default=False)


@dataclass(slots=True)
class Boarding:
    """The right of one caller to fetch an item: the process's flight and the lease, where there are such.

    ``flight`` is None where nobody shares (no cache, an old view of the stop list, a lookup made by an adapter);
    ``lease`` is None where no other process can see one.
    """

    fill: Fill
    gate: str | None
    is_new_gate: bool = False
    flight: Flight | None = None
    lease: Lease | None = None
    _record: Lookup | None = None

    def share(self, lookup: Lookup, *, is_fetched: bool = True) -> None:
        """Let everybody who waits have the answer; those of other processes read it in the entry or in a record."""
        if self.flight is not None:
            self.flight.lookup = lookup
            self._record = lookup if is_fetched else None

    def end(self) -> None:
        """Give lease and flight back, on every path; twice is once."""
        lease, self.lease = self.lease, None
        flight, self.flight = self.flight, None
        try:
            if lease is not None:
                lease.end(self._record)
        finally:
            if flight is not None:
                table.land(self._name(), flight)

    def leave(self) -> None:
        """Go on without lease, flight and gate: what is fetched is for this caller alone."""
        self.end()
        self.gate = None

    def _name(self) -> tuple[str, str]:
        return self.fill.query.entry_key, self.gate or ""


def board(fill: Fill, kept: Kept) -> Boarding | Flight:
    """Return the right to fetch, or this process's flight to wait for. The lease is not taken yet."""
    gate = kept.gate or fill.entries.open_gate(fill.query)
    is_new_gate = kept.gate is None
    if gate is None or fill.is_old_view or is_flying.get():
        return Boarding(fill, gate, is_new_gate)
    flight, is_own = table.join((fill.query.entry_key, gate))
    return Boarding(fill, gate, is_new_gate, flight) if is_own else flight


def take_lease(boarding: Boarding) -> bool:
    """Take the lease where one is due; False when another process has it."""
    fill = boarding.fill
    if boarding.flight is None or boarding.gate is None:
        return True
    lease = leases.take(fill.entries, fill.query, boarding.gate, fill.first_call())
    boarding.lease = lease if isinstance(lease, Lease) else None
    return lease is not False


class Trip:
    """The way of one lookup that the cache could not answer by itself, in steps between which it may have to wait.

    ``kept`` is what the cache had in hand; with ``refresh`` an answer takes another entry than that one.
    """

    def __init__(self, query: Query, kept: Kept, deadline: Deadline, *, refresh: bool = False) -> None:
        self.deadline = deadline
        self._fill = Fill(query, entries_of[query.catalog.alias], deadline, stop_list.sees_old_state())
        self._kept = kept
        self._seen = kept.entry if refresh else None
        self._joined: Flight | None = None

    def advance(self) -> Lookup | Flight:
        """Do what needs no waiting for this process's others: return the answer, or the flight to wait for.

        The call after a flight was returned takes up what it brought, or goes on without it.
        """
        step: Lookup | Flight | None = self._take_up()
        while step is None and not self.deadline.has_passed:
            step = from_entry(self._fill, self._kept, self._seen) or self._from_sources()
            if step is None:
                self._kept = self._fill.entries.look(self._fill.query)
        if isinstance(step, Flight):
            self._joined = step
        return step or self._fill.past_deadline(self._kept)

    def _take_up(self) -> Lookup | None:
        flight, self._joined = self._joined, None
        if flight is None:
            return None
        lookup = flight.lookup
        if lookup is not None and not (self._seen is not None and lookup == hit(self._fill.query, self._seen)):
            return lookup
        if not self.deadline.has_passed:
            self._kept = self._fill.entries.look(self._fill.query)
        return None

    def _from_sources(self) -> Lookup | Flight | None:
        """Fetch, or find whoever does; None when the cache has to be read again."""
        boarding = board(self._fill, self._kept)
        if isinstance(boarding, Flight):
            return boarding
        token = is_flying.set(True)
        try:
            if boarding.flight is None:
                return self._fill.fetch(boarding.gate, self._kept.entry, is_new_gate=boarding.is_new_gate)[0]
            return _lead(boarding, self._seen)
        finally:
            is_flying.reset(token)
            boarding.end()


def look_up(query: Query, kept: Kept, deadline: Deadline, *, refresh: bool = False) -> Lookup:
    """Answer a query that the cache could not answer by itself.

    Ends within the deadline plus the cache and database operation that it is in.
    """
    trip = Trip(query, kept, deadline, refresh=refresh)
    step = trip.advance()
    while isinstance(step, Flight):
        step.wait(deadline.left())
        step = trip.advance()
    return step


def refresh(query: Query, deadline: Deadline, is_due: Callable[[Entry], bool]) -> None:
    """Fetch an item anew in the background, unless somebody else is at it or has just done it; nobody is waited for."""
    fill = Fill(query, entries_of[query.catalog.alias], deadline, stop_list.sees_old_state())
    kept = fill.entries.look(query)
    if kept.gate is None or kept.entry is None or not is_due(kept.entry):
        return
    boarding = board(fill, kept)
    if isinstance(boarding, Flight):
        return
    token = is_flying.set(True)
    try:
        if take_lease(boarding):
            _fly(boarding, kept.entry)
    finally:
        is_flying.reset(token)
        boarding.end()


def from_entry(fill: Fill, kept: Kept, seen: Entry | None) -> Lookup | None:
    """Answer from the cache after all, if there is a fresh entry and the database agrees."""
    if kept.entry is None or kept.entry.expires_at <= clock.wall() or kept.entry == seen:
        return None
    return fill.confirm(kept)


class _Again(enum.Enum):
    """Why watching another process's lease ended without an answer."""

    TAKE = "the lease is free: take it"
    READ = "the gate has changed, or the time is over: read the cache again"


def _lead(boarding: Boarding, seen: Entry | None) -> Lookup | None:
    """Own the process's flight: fetch under the lease, or watch whoever has it; None when the gate has changed."""
    fill, owner = boarding.fill, None
    while not fill.deadline.has_passed and boarding.gate is not None:
        if take_lease(boarding):
            return _fly(boarding, seen)
        step, owner = _watch(fill, boarding.gate, seen, owner)
        if isinstance(step, Lookup):
            boarding.share(step, is_fetched=False)
            return step
        if step is _Again.READ:
            return None
    return None


def _watch(fill: Fill, gate: str, seen: Entry | None, owner: str | None) -> tuple[Lookup | _Again, str | None]:
    """Wait for the process that has the lease; return what came of it, and whom it was that was waited for."""
    while not fill.deadline.has_passed:
        sight = leases.watch(fill.entries, fill.query, gate)
        answer = from_entry(fill, sight.kept, seen)
        if answer is not None:
            return answer, owner
        if sight.kept.gate != gate:
            return _Again.READ, owner
        if sight.record is not None and sight.record.owner in (owner, sight.owner):
            return fill.recorded(sight.record, sight.kept), owner
        if sight.owner is None:
            return _Again.TAKE, owner
        owner = sight.owner
        clock.sleep(min(random.uniform(*POLL), fill.deadline.left()))  # noqa: S311 - jitter is no secret
    return _Again.READ, owner


def _fly(boarding: Boarding, seen: Entry | None) -> Lookup | None:
    """Read again (another flight may have landed just before this one began), then fetch."""
    fill = boarding.fill
    kept = fill.entries.look(fill.query) if boarding.lease is None else boarding.lease.kept
    if kept.gate is None:  # lost again at once: nothing can be kept, and nobody may share
        boarding.leave()
        return fill.fetch(None, None, is_new_gate=False)[0]
    if kept.gate != boarding.gate:
        return None
    lookup = from_entry(fill, kept, seen)
    if lookup is not None:
        boarding.share(lookup, is_fetched=False)
        return lookup
    extend = None if boarding.lease is None else boarding.lease.extend
    lookup, is_for_all = fill.fetch(kept.gate, kept.entry, is_new_gate=boarding.is_new_gate, before_call=extend)
    if is_for_all:
        boarding.share(lookup)
    return lookup
