"""Who may fetch, and who has to wait? The right of one caller to fetch an item: this process's flight, and the lease.

A flight is named by entry key *and* gate token: a lookup that starts after an invalidation finds another token, and so
never joins a flight that began before it.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from dataclasses import dataclass

from catalog_fallback import clock, leases
from catalog_fallback.calling import Outlook
from catalog_fallback.entry_form import Kept, new_token
from catalog_fallback.fallback import chain_of
from catalog_fallback.filling import Fill
from catalog_fallback.flight_table import OVERDUE, Flight, table
from catalog_fallback.last_look import Expected
from catalog_fallback.leases import Lease
from catalog_fallback.redis_scripts import Precondition, Unmet
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup

#: Until which monotonic moment this context owns a flight: a lookup made by an adapter must not wait for one. A moment,
#: so that whoever is torn out of a flight by an exception from outside can share others later.
_flying_until: ContextVar[float] = ContextVar("catalog_fallback_flying_until", default=float("-inf"))


def is_flying() -> bool:
    """Whether this context owns a flight."""
    return _flying_until.get() > clock.monotonic()


def take_off(deadline: Deadline) -> Token[float]:
    """Note that this context owns a flight until the deadline, or until the token is given to :func:`touch_down`."""
    return _flying_until.set(deadline.at + OVERDUE)


def touch_down(token: Token[float]) -> None:
    """Note that the flight is over."""
    _flying_until.reset(token)


@dataclass(slots=True)
class Boarding:
    """The right of one caller to fetch an item: the process's flight and the lease, where there are such.

    ``flight`` is None where nobody shares (no cache, an old view of the stop list, a lookup made by an adapter);
    ``lease`` is None where no other process can see one. ``outlook`` is what the guards said before.
    """

    fill: Fill
    outlook: Outlook
    gate: str | None
    is_new_gate: bool = False
    flight: Flight | None = None
    lease: Lease | None = None
    #: Another process had the lease when it was asked for last.
    is_leased_elsewhere: bool = False
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


def join(fill: Fill, kept: Kept) -> tuple[Flight, bool] | None:
    """Join, or begin, this process's flight without asking anybody, where the gate is known; None where it is not.

    Returns the flight and whether it is the caller's own: then it has to be given to :func:`board`, or landed.
    """
    if kept.gate is None or fill.is_old_view or is_flying():
        return None
    return table.join((fill.query.entry_key, kept.gate), fill.deadline.at)


def under_way(fill: Fill, kept: Kept) -> Flight | None:
    """Return this process's flight to wait for, if there is one: sharing it needs no guard's leave."""
    if kept.gate is None or fill.is_old_view or is_flying():
        return None
    return table.find((fill.query.entry_key, kept.gate))


def land(fill: Fill, kept: Kept, flight: Flight) -> None:
    """End a flight that was begun by :func:`join` and never boarded."""
    table.land((fill.query.entry_key, kept.gate or ""), flight)


def board_unless_changed(fill: Fill, kept: Kept, own: Flight | None = None) -> Boarding | Flight | Outlook | None:
    """Board without a look of its own at the guards, if Redis finds them as they were last; else that is a look.

    ``own`` is the caller's own flight, which he needs under a gate that stands already.
    Returns what :func:`board` returns, or what was seen; None where the look and all the rest has yet to be done.
    """
    if (kept.gate is None) is not (own is None) or fill.is_old_view or is_flying():
        return None
    chain = chain_of[fill.query.catalog.alias]
    expected = chain.expect(fill.entries.store)
    if expected is None:
        return None
    if kept.gate is None or own is None:
        boarding = _board_under_new_gate(fill, expected.outlook, expected.precondition)
    else:
        boarding = _board_with_lease(fill, kept.gate, own, expected)
    return chain.saw(expected, boarding) if isinstance(boarding, Unmet) else boarding


def board(fill: Fill, kept: Kept, outlook: Outlook, own: Flight | None = None) -> Boarding | Flight:
    """Return the right to fetch, or this process's flight to wait for. The lease is not taken yet.

    ``own`` is the caller's own flight, if he has begun one already.
    """
    if own is not None:
        return Boarding(fill, outlook, kept.gate, flight=own)
    is_alone = fill.is_old_view or is_flying()
    if kept.gate is None and not is_alone and fill.entries.store.runs_scripts:
        boarding = _board_under_new_gate(fill, outlook)
        if isinstance(boarding, (Boarding, Flight)):
            return boarding
    gate = kept.gate or fill.entries.open_gate(fill.query)
    is_new_gate = kept.gate is None
    if gate is None or is_alone:
        return Boarding(fill, outlook, gate, is_new_gate)
    return _join(fill, outlook, gate, is_new_gate=is_new_gate)


def _join(fill: Fill, outlook: Outlook, gate: str, *, is_new_gate: bool) -> Boarding | Flight:
    flight, is_own = table.join((fill.query.entry_key, gate), fill.deadline.at)
    return Boarding(fill, outlook, gate, is_new_gate, flight) if is_own else flight


def _board_under_new_gate(
    fill: Fill, outlook: Outlook | None, precondition: Precondition | None = None
) -> Boarding | Flight | Unmet | None:
    """Put up a gate and take its lease at once, if the precondition is met; None where that has to be done one by one.

    ``outlook`` is what the guards said, or what they say if the precondition is met. The flight stands in the table
    before anybody can know the token: whoever reads it finds the flight.
    """
    token = new_token()
    name = fill.query.entry_key, token
    flight, _ = table.join(name, fill.deadline.at)
    lease: Lease | str | Unmet | None = None
    try:
        lease = leases.put_up_gate(fill.entries, fill.query, token, flight.name, fill.first_call(), precondition)
    finally:
        if not isinstance(lease, Lease):
            table.land(name, flight)
    if lease is None or isinstance(lease, Unmet):
        return lease
    assert outlook is not None  # what is not expected is never met
    if isinstance(lease, Lease):
        return Boarding(fill, outlook, token, True, flight, lease)
    return _join(fill, outlook, lease, is_new_gate=False)


def _board_with_lease(fill: Fill, gate: str, own: Flight, expected: Expected) -> Boarding | Unmet | None:
    """Take the lease at once if the guards are as expected; None where that has to be done one by one."""
    words = own.name, fill.first_call(), expected.precondition
    lease = leases.take_if_met(fill.entries, fill.query, gate, *words)
    if lease is None or isinstance(lease, Unmet):
        return lease
    assert expected.outlook is not None  # what is not expected is never met
    if lease is False:
        return Boarding(fill, expected.outlook, gate, flight=own, is_leased_elsewhere=True)
    return Boarding(fill, expected.outlook, gate, flight=own, lease=lease)


def take_lease(boarding: Boarding) -> bool:
    """Take the lease where one is due; False when another process has it."""
    fill = boarding.fill
    if boarding.flight is None or boarding.gate is None or boarding.lease is not None:
        return True
    if boarding.is_leased_elsewhere:  # as was just seen
        boarding.is_leased_elsewhere = False
        return False
    lease = leases.take(fill.entries, fill.query, boarding.gate, boarding.flight.name, fill.first_call())
    boarding.lease = lease if isinstance(lease, Lease) else None
    return lease is not False
