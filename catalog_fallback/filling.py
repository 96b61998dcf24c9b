"""What does the one who fetches do? Ask the stop list, search, look at the gate again, keep the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from catalog_fallback import classify, clock, stop_list
from catalog_fallback.cache import EntryCache
from catalog_fallback.calling import Answer, Outlook
from catalog_fallback.entry_form import Entry, Kept, hit, is_marked
from catalog_fallback.fallback import Search, chain_of
from catalog_fallback.keeping import entry_of
from catalog_fallback.leases import Lease, Record
from catalog_fallback.queries import Query
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Attempt, CacheStatus, Lookup, State

#: What the database said of an item: stopped or not, None where it could not be asked; "ask" it otherwise.
_Said = bool | None | Literal["ask"]


@dataclass(frozen=True, slots=True)
class Fill:
    """One try to answer a query that the cache did not answer.

    ``is_old_view``: this connection may see an old stop list, so nothing that it learns is kept as checked.
    ``is_new_gate``: this caller has just put up the gate, so its life is known.
    """

    query: Query
    entries: EntryCache
    deadline: Deadline
    is_old_view: bool

    def confirm(self, kept: Kept, *, is_stopped: _Said = "ask") -> Lookup | None:
        """Answer from a fresh entry, asking the database where that is due; None when the entry does not hold.

        ``is_stopped`` is what the database said already.
        """
        entry = kept.entry
        if entry is None:
            return None
        if self.is_old_view and is_marked(kept.gate):
            return self._stopped()
        if entry.is_checked and self.query.catalog.stop_check == "cache":
            return hit(self.query, entry)
        if is_stopped == "ask":
            is_stopped = stop_list.is_stopped(self.query)
        if is_stopped is not False:
            return self._not_shown(is_stopped, kept.gate)
        if entry.state is State.STOPPED:
            return None
        if not entry.is_checked and not self.is_old_view and kept.gate is not None:
            self.entries.keep(self.query, kept.gate, replace(entry, is_checked=True))
        return hit(self.query, entry)

    def fetch(
        self,
        gate: str | None,
        old: Entry | None,
        outlook: Outlook,
        *,
        is_new_gate: bool = False,
        lease: Lease | None = None,
    ) -> tuple[Lookup, bool]:
        """Answer by asking the sources; return the lookup, and whether everybody who waits may have it.

        ``gate`` is None when there is no cache to keep anything in; ``old`` is the expired entry in hand;
        ``outlook`` is the last look at the guards; ``lease``, where there is one, is made to outlive every call.
        """
        refused = self.refused(gate)
        if refused is not None:
            return refused, not self.is_old_view
        extend = None if lease is None else lease.extend
        search = chain_of[self.query.catalog.alias].search(self.query, self.deadline, outlook, extend)
        return self.conclude(search, gate, old, is_new_gate=is_new_gate, lease=lease)

    def ask_guards(self, outlook: Outlook | None = None) -> tuple[Outlook, list[Answer] | None]:
        """Look at the guards, unless that has been done.

        Returns what was seen, and the answers of all sources if none may be called.
        """
        chain = chain_of[self.query.catalog.alias]
        outlook = outlook or chain.look()
        return outlook, chain.refused(outlook)

    def without_call(self, answers: Sequence[Answer], kept: Kept, *, is_stopped: _Said = "ask") -> Lookup:
        """Answer when every guard refuses: the stop list is asked, and nothing is written."""
        if self.is_old_view and is_marked(kept.gate):
            return self._stopped()
        refused = self.refused(None, is_stopped=is_stopped)
        if refused is not None:
            return refused
        chain = chain_of[self.query.catalog.alias]
        for answer in answers:
            chain.announce(answer)
        search = chain.conclude(answers, self.deadline)
        if kept.entry is not None and self._may_be_stale(kept.entry, search.trace, search.reason):
            return self._stale(kept.entry, search.trace)
        return self._answer(search)

    def first_call(self) -> float:
        """Return how long the first source may take, in seconds."""
        return chain_of[self.query.catalog.alias].longest_wait(0, self.deadline)

    def refused(self, gate: str | None, *, is_stopped: _Said = "ask") -> Lookup | None:
        """Return the answer where the stop list forbids a search, None where it may begin.

        ``is_stopped`` is what the database said already (None: it could not be asked).
        """
        if self.is_old_view and is_marked(gate):
            return self._stopped()
        if is_stopped == "ask":
            is_stopped = stop_list.is_stopped(self.query)
        return None if is_stopped is False else self._not_shown(is_stopped, gate)

    def conclude(
        self, search: Search, gate: str | None, old: Entry | None, *, is_new_gate: bool, lease: Lease | None = None
    ) -> tuple[Lookup, bool]:
        """Look at the gate again and keep what was found; return what :meth:`fetch` returns."""
        if search.state is State.UNAVAILABLE and not self._may_be_stale(old, search.trace, search.reason):
            return self._answer(search), search.reason != "deadline"
        if gate is not None:
            lookup = self._settle(search, gate, old, is_new_gate=is_new_gate, lease=lease)
            if lookup is not None:
                return lookup, search.reason != "deadline"
        is_stopped = stop_list.is_stopped(self.query)
        return self._answer(search) if is_stopped is False else self._not_shown(is_stopped, None), False

    def recorded(self, record: Record, kept: Kept) -> Lookup:
        """Answer with how another process's flight ended, or with the expired entry where that one may be shown."""
        query, old = self.query, kept.entry
        if record.may_be_stale and old is not None and self._may_be_stale(old, (), record.reason):
            return self.joined(self._stale(old, ()))
        return Lookup(query.item_id, query.catalog.alias, record.state, record.reason, retry_after=record.retry_after)

    def joined(self, lookup: Lookup) -> Lookup:
        """Take over what somebody else's flight brought.

        Where the gate alone does not tell of a stop (STOP_CHECK="database"), this lookup may have begun after one that
        the flight has not seen.
        """
        if not has_to_ask(self.query, lookup):
            return lookup
        is_stopped = stop_list.is_stopped(self.query)
        return lookup if is_stopped is False else self._not_shown(is_stopped, None)

    def past_deadline(self, kept: Kept) -> Lookup:
        """Answer when the time is over: a stale entry where the site allows it, else unavailable."""
        entry = kept.entry
        needs_database = self.query.catalog.stop_check == "database" or (self.is_old_view and is_marked(kept.gate))
        if entry is not None and entry.is_checked and not needs_database and self._may_be_stale(entry, (), "deadline"):
            return self._stale(entry, ())
        return self._lookup(State.UNAVAILABLE, "deadline")

    def _settle(
        self, search: Search, gate: str, old: Entry | None, *, is_new_gate: bool, lease: Lease | None
    ) -> Lookup | None:
        """Keep what was found, or fall back on what was kept; None when the gate has changed."""
        entry = entry_of(search, self.query.catalog, is_checked=not self.is_old_view)
        if entry is None:
            return self._unkept(search, gate, old)
        lease_key = None if lease is None else lease.key_to_delete
        is_same, was_deleted = self.entries.keep_if_same(
            self.query, gate, entry, is_new_gate=is_new_gate, lease_key=lease_key
        )
        if was_deleted and lease is not None:
            lease.was_deleted()
        return self._answer(search, entry.expires_at) if is_same else None

    def _unkept(self, search: Search, gate: str, old: Entry | None) -> Lookup | None:
        if self.entries.read_gate(self.query) != gate:
            return None
        if old is None:
            return self._answer(search)
        if search.state is State.UNAVAILABLE:
            return self._stale(old, search.trace)
        self.entries.forget(self.query)
        return self._answer(search)

    def _may_be_stale(self, old: Entry | None, trace: tuple[Attempt, ...], reason: str) -> bool:
        extra = self.query.catalog.stale_if_error
        if old is None or old.state is not State.FOUND or not extra:
            return False
        until = min(old.stale_until, old.expires_at + extra)
        return clock.wall() < until and classify.may_serve_stale(trace, State.UNAVAILABLE, reason)

    def _not_shown(self, is_stopped: bool | None, gate: str | None) -> Lookup:
        """The database says stopped, which is kept, or could not be asked, which is not."""
        if not is_stopped:
            return self._lookup(State.UNAVAILABLE, "stop_list_unavailable")
        if gate is not None and not self.is_old_view:
            self.entries.keep_stopped(self.query, gate)
        return self._stopped()

    def _stopped(self) -> Lookup:
        return self._lookup(State.STOPPED, "stopped")

    def _lookup(self, state: State, reason: str) -> Lookup:
        return Lookup(self.query.item_id, self.query.catalog.alias, state, reason)

    def _stale(self, entry: Entry, trace: tuple[Attempt, ...]) -> Lookup:
        fresh = hit(self.query, entry)
        return Lookup(
            fresh.item_id,
            fresh.catalog,
            fresh.state,
            fresh.reason,
            fresh.item,
            fresh.source,
            CacheStatus.STALE,
            entry.fetched_at,
            entry.expires_at,
            trace,
        )

    def _answer(self, search: Search, expires_at: float | None = None) -> Lookup:
        return Lookup(
            self.query.item_id,
            self.query.catalog.alias,
            search.state,
            search.reason,
            search.item,
            search.source,
            CacheStatus.MISS,
            None if search.state is State.UNAVAILABLE else search.fetched_at,
            expires_at,
            search.trace,
            retry_after=search.retry_after,
        )


def has_to_ask(query: Query, lookup: Lookup) -> bool:
    """Whether the database has to agree before what somebody else's flight brought may be shown."""
    return lookup.item is not None and query.catalog.stop_check == "database"
