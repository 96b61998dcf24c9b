"""Who fetches, and who waits? One flight an item, between reading the cache and writing it.

A flight is named by entry key *and* gate token: a lookup that starts after an invalidation finds another token, and so
never joins a flight that began before it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from catalog_fallback import clock, stop_list
from catalog_fallback.cache import Entry, Kept, Query, entries_of, hit
from catalog_fallback.filling import Fill
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup


class Flight:
    """One fetch that others wait for. ``lookup`` is None where its result is not for sharing."""

    __slots__ = ("landed", "lookup")

    def __init__(self) -> None:
        self.landed = threading.Event()
        self.lookup: Lookup | None = None


_Name = tuple[str, str]


class FlightTable:
    """The flights of this process, by name. After a fork the child starts with an empty one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[_Name, Flight] = {}
        self._pid = os.getpid()

    def __len__(self) -> int:
        return len(self._flights)

    def join(self, name: _Name) -> tuple[Flight, bool]:
        """Return the flight of that name, and whether it is the caller's own and new."""
        if self._pid != os.getpid():
            self._lock, self._flights, self._pid = threading.Lock(), {}, os.getpid()
        with self._lock:
            flight = self._flights.get(name)
            if flight is not None:
                return flight, False
            flight = self._flights[name] = Flight()
            return flight, True

    def land(self, name: _Name, flight: Flight) -> None:
        """End the flight: whoever comes now starts another, whoever waits goes on."""
        with self._lock:
            self._flights.pop(name, None)
        flight.landed.set()


_table = FlightTable()
#: Whether this context owns a flight: a lookup made by an adapter must not wait for one.
_is_flying: ContextVar[bool] = ContextVar("catalog_fallback_is_flying", default=False)


def look_up(query: Query, kept: Kept, deadline: Deadline, *, refresh: bool = False) -> Lookup:
    """Answer a query that the cache could not answer by itself.

    ``kept`` is what the cache had in hand; with ``refresh`` an answer takes another entry than that one. Ends within
    the deadline plus the cache and database operation that it is in.
    """
    entries = entries_of[query.catalog.alias]
    fill = Fill(query, entries, deadline, stop_list.sees_old_state())
    seen = kept.entry if refresh else None
    while not deadline.has_passed:
        lookup = _from_entry(fill, kept, seen) or _from_sources(fill, kept, seen)
        if lookup is not None:
            return lookup
        kept = entries.look(query)
    return fill.past_deadline(kept)


def _from_entry(fill: Fill, kept: Kept, seen: Entry | None) -> Lookup | None:
    """Answer from the cache after all, if there is a fresh entry and the database agrees."""
    if kept.entry is None or kept.entry.expires_at <= clock.wall() or kept.entry == seen:
        return None
    return fill.confirm(kept)


def _from_sources(fill: Fill, kept: Kept, seen: Entry | None) -> Lookup | None:
    """Fetch, or wait for whoever does; None when the cache has to be read again."""
    gate = kept.gate or fill.entries.open_gate(fill.query)
    is_new_gate = kept.gate is None
    if gate is None or fill.is_old_view or _is_flying.get():
        return fill.fetch(gate, kept.entry, is_new_gate=is_new_gate)[0]
    name = (fill.query.entry_key, gate)
    flight, is_own = _table.join(name)
    if not is_own:
        flight.landed.wait(fill.deadline.left())
        return None if _is_what_was_seen(fill.query, flight.lookup, seen) else flight.lookup
    with _flying(name, flight):
        return _lead(fill, flight, gate, seen, is_new_gate=is_new_gate)


def _lead(fill: Fill, flight: Flight, gate: str, seen: Entry | None, *, is_new_gate: bool) -> Lookup | None:
    """The owner reads again (another flight may have landed just before this one began), then fetches."""
    kept = fill.entries.look(fill.query)
    if kept.gate is None:  # lost again at once: nothing can be kept, and nobody may share
        return fill.fetch(None, None, is_new_gate=False)[0]
    if kept.gate != gate:
        return None
    flight.lookup = lookup = _from_entry(fill, kept, seen)
    if lookup is not None:
        return lookup
    lookup, is_for_all = fill.fetch(gate, kept.entry, is_new_gate=is_new_gate)
    flight.lookup = lookup if is_for_all else None
    return lookup


def _is_what_was_seen(query: Query, lookup: Lookup | None, seen: Entry | None) -> bool:
    """Whether a flight brought only the entry that a refresh is not content with."""
    return seen is not None and lookup is not None and lookup == hit(query, seen)


@contextmanager
def _flying(name: _Name, flight: Flight) -> Iterator[None]:
    """However the owner ends, its flight lands."""
    token = _is_flying.set(True)
    try:
        yield
    finally:
        _is_flying.reset(token)
        _table.land(name, flight)
