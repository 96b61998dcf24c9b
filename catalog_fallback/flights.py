"""What happens in a flight? One an item, between reading the cache and writing it.

Within the process the others wait for an event; whoever owns the process's flight takes the lease and fetches, or
watches whoever has it in another process.
"""

from __future__ import annotations

from collections.abc import Callable

from catalog_fallback import clock, leases, stop_list
from catalog_fallback.boarding import Boarding, board, take_lease, take_off, touch_down
from catalog_fallback.cache import entries_of
from catalog_fallback.entry_form import Entry
from catalog_fallback.filling import Fill
from catalog_fallback.flight_table import Flight
from catalog_fallback.queries import Query
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup
from catalog_fallback.waiting import FRUITLESS, Next, from_entry, judge, pause


def refresh(query: Query, deadline: Deadline, is_due: Callable[[Entry], bool]) -> bool:
    """Fetch an item anew in the background, unless somebody else is at it or has just done it; nobody is waited for.

    Returns False where that is not worth another try soon: the fetch brought nothing to keep, here or elsewhere.
    """
    fill = Fill(query, entries_of[query.catalog.alias], deadline, stop_list.sees_old_state())
    kept, has_failed = leases.look_behind(fill.entries, query)
    if kept.gate is None or kept.entry is None or not is_due(kept.entry):
        return True
    outlook, refused = (None, None) if has_failed else fill.ask_guards()
    if outlook is None or refused is not None:
        return False
    boarding = board(fill, kept, outlook)
    if isinstance(boarding, Flight):
        return True
    token = take_off(deadline)
    try:
        if not take_lease(boarding):
            return True
        lookup = _fly(boarding, kept.entry)
        return lookup is None or lookup.expires_at is not None
    finally:
        touch_down(token)
        boarding.end()


def fly(boarding: Boarding, old: Entry | None, seen: Entry | None) -> Lookup | None:
    """Fetch, or learn of another process's fetch, and give everything back; None when the gate has changed.

    ``old`` is the expired entry in hand, ``seen`` the entry that a ``refresh`` must not be answered with.
    """
    token = take_off(boarding.fill.deadline)
    try:
        if boarding.flight is None:
            fill, is_new_gate = boarding.fill, boarding.is_new_gate
            return fill.fetch(boarding.gate, old, boarding.outlook, is_new_gate=is_new_gate)[0]
        return _lead(boarding, seen)
    finally:
        touch_down(token)
        boarding.end()


def _lead(boarding: Boarding, seen: Entry | None) -> Lookup | None:
    """Own the process's flight: fetch under the lease, or watch whoever has it; None when the gate has changed."""
    fill, owner, fruitless = boarding.fill, None, 0
    while not fill.deadline.has_passed and boarding.gate is not None:
        if fruitless > FRUITLESS or take_lease(boarding):
            return _fly(boarding, seen)
        step, owner = _watch(fill, boarding.gate, seen, owner)
        if isinstance(step, Lookup):
            boarding.share(step, is_fetched=False)
            return step
        if step is Next.ALONE:
            return _fly(boarding, seen)
        if step is Next.READ:
            return None
        fruitless += 1
    return None


def _watch(fill: Fill, gate: str, seen: Entry | None, owner: str | None) -> tuple[Lookup | Next, str | None]:
    """Wait for the process that has the lease; return what came of it, and whom it was that was waited for."""
    while not fill.deadline.has_passed:
        sight = leases.watch(fill.entries, fill.query, gate)
        step = judge(fill, sight, gate, seen, owner)
        if step is not None:
            return step, owner
        owner = sight.owner
        clock.sleep(min(pause(), fill.deadline.left()))
    return Next.READ, owner


def _fly(boarding: Boarding, seen: Entry | None) -> Lookup | None:
    """Read again (another flight may have landed just before this one began), then fetch."""
    fill = boarding.fill
    kept = fill.entries.look(fill.query) if boarding.lease is None else boarding.lease.kept
    if kept.gate is None:  # lost again at once: nothing can be kept, and nobody may share
        boarding.leave()
        return fill.fetch(None, None, boarding.outlook)[0]
    if kept.gate != boarding.gate:
        return None
    lookup = from_entry(fill, kept, seen)
    if lookup is not None:
        boarding.share(lookup, is_fetched=False)
        return lookup
    lookup, is_for_all = fill.fetch(
        kept.gate, kept.entry, boarding.outlook, is_new_gate=boarding.is_new_gate, lease=boarding.lease
    )
    if is_for_all:
        boarding.share(lookup)
    return lookup
