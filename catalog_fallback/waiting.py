"""What does whoever waits for somebody else's fetch see, and what does that tell him to do?"""

from __future__ import annotations

import enum
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from catalog_fallback import clock, leases
from catalog_fallback.entry_form import Entry, Kept, hit
from catalog_fallback.filling import Fill
from catalog_fallback.flight_table import Flight
from catalog_fallback.leases import Sight
from catalog_fallback.queries import Query
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup, State

#: Seconds between two looks at a lease that another process has, chosen at random between these.
POLL = (0.005, 0.007)
#: How often a lease may look free and yet not be taken before the fetch begins without one. It may be garbage that
#: nobody can read, or a cache that says "taken" for "busy"; a lease may cost its exclusiveness, never an answer.
FRUITLESS = 3


class Next(enum.Enum):
    """What to do when watching a lease has ended without an answer."""

    TAKE = "the lease is free: take it"
    ALONE = "what its owner found was for its own process: fetch without a lease, as all the others do"
    READ = "the gate has changed, or the time is over: read the cache again"


def judge(fill: Fill, sight: Sight, gate: str, seen: Entry | None, owner: str | None) -> Lookup | Next | None:
    """Return the answer that one look gives, or what to do next; None: go on waiting.

    ``gate`` is what the lease was taken under, ``seen`` the entry that a ``refresh`` must not be answered with,
    ``owner`` whom it is that is waited for.
    """
    answer = from_entry(fill, sight.kept, seen)
    if answer is not None:
        return answer
    if sight.kept.gate != gate:
        return Next.READ
    record = sight.record
    if record is not None and record.owner in {owner, sight.owner}:
        return Next.ALONE if record.state is State.FOUND else fill.recorded(record, sight.kept)
    return Next.TAKE if sight.owner is None else None


def from_entry(fill: Fill, kept: Kept, seen: Entry | None) -> Lookup | None:
    """Answer from the cache after all, if there is a fresh entry and the database agrees."""
    if kept.entry is None or kept.entry.expires_at <= clock.wall() or kept.entry == seen:
        return None
    return fill.confirm(kept)


def pause() -> float:
    """Return the seconds until the next look."""
    return random.uniform(*POLL)  # noqa: S311 - jitter is no secret


def brought(flight: Flight, query: Query, seen: Entry | None) -> Lookup | None:
    """Return what a flight has brought if it answers this query: not the entry that a ``refresh`` must not take."""
    lookup = flight.lookup
    return None if lookup is None or (seen is not None and lookup == hit(query, seen)) else lookup


@dataclass(slots=True)
class _Waited:
    """One item that others fetch: in a flight of this process or (``flight`` is None) under another one's lease."""

    query: Query
    kept: Kept
    gate: str | None = None
    flight: Flight | None = None
    owner: str | None = None


class Others:
    """All that others fetch of what one batch asks for; looked at together, in one round trip."""

    def __init__(self, fill_of: Callable[[Query], Fill], seen: Mapping[str, Entry | None], deadline: Deadline) -> None:
        self._fill_of = fill_of
        self._seen = seen
        self._deadline = deadline
        self._waited: list[_Waited] = []
        #: How often an item's lease looked free.
        self._free: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._waited)

    def fly(self, query: Query, kept: Kept, flight: Flight) -> None:
        """Somebody else in this process fetches the item."""
        self._waited.append(_Waited(query, kept, flight=flight))

    def have_lease(self, query: Query, kept: Kept, gate: str | None) -> None:
        """Another process fetches the item."""
        self._waited.append(_Waited(query, kept, gate))

    def is_fruitless(self, query: Query) -> bool:
        """The item's lease has looked free too often to be waited for again."""
        return self._free[query.item_id] > FRUITLESS

    def look(self) -> list[tuple[Query, Lookup | Kept]]:
        """Return the answers that others have brought, and for what they have left what the cache has in hand.

        Waits a little when there is neither; when the time is over, everything is answered without them.
        """
        if self._deadline.has_passed:
            waited, self._waited = self._waited, []
            return [(each.query, self._fill_of(each.query).past_deadline(each.kept)) for each in waited]
        judged = [*self._of_other_processes(), *self._of_this_process()]
        self._waited = [each for each, step in judged if step is None]
        if len(self._waited) == len(judged):
            self._wait_a_little()
        return [(each.query, step) for each, step in judged if step is not None]

    def _of_other_processes(self) -> Iterable[tuple[_Waited, Lookup | Kept | None]]:
        leased = [(each, each.gate) for each in self._waited if each.gate is not None]
        if not leased:
            return
        entries = self._fill_of(leased[0][0].query).entries
        sights = leases.watch_many(entries, [(each.query, gate) for each, gate in leased])
        for (each, gate), sight in zip(leased, sights, strict=True):
            item_id = each.query.item_id
            step = judge(self._fill_of(each.query), sight, gate, self._seen.get(item_id), each.owner)
            each.owner, each.kept = sight.owner, sight.kept
            self._free[item_id] += FRUITLESS + 1 if step is Next.ALONE else step is Next.TAKE
            yield each, sight.kept if isinstance(step, Next) else step

    def _of_this_process(self) -> Iterable[tuple[_Waited, Lookup | Kept | None]]:
        for each in self._waited:
            flight = each.flight
            if flight is not None:
                yield each, self._brought(each, flight) if flight.has_landed else None

    def _brought(self, waited: _Waited, flight: Flight) -> Lookup | Kept:
        """Return what a flight that has landed is worth to one who waited for it."""
        lookup = brought(flight, waited.query, self._seen.get(waited.query.item_id))
        return waited.kept if lookup is None else self._fill_of(waited.query).joined(lookup)

    def _wait_a_little(self) -> None:
        flight = next((each.flight for each in self._waited if each.flight is not None), None)
        seconds = min(pause(), self._deadline.left())
        if flight is None:
            clock.sleep(seconds)
        else:
            flight.wait(seconds)
