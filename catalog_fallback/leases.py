"""Which process fetches? A lease in the cache, and a record of how a flight without an entry ended.

The lease's key holds the gate's token, so that a lookup after an invalidation takes a lease of its own. It is taken
with ``add`` and always expires: a process that is killed blocks nobody for longer than one call. Django's caches have
no compare-and-delete, so a lease is deleted only while our own clock says that it cannot have expired yet; losing a
lease costs exclusiveness, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from catalog_fallback import classify, clock
from catalog_fallback.cache import EntryCache
from catalog_fallback.entry_form import Kept
from catalog_fallback.queries import Query
from catalog_fallback.redis_scripts import Precondition, Unmet
from catalog_fallback.results import Lookup, State

#: Seconds that a lease lives longer than the call that it is for.
MARGIN = 2.0
#: Seconds for which a lease has to be good still if it is to be deleted.
SAFE_TO_DELETE = 1.0
#: Seconds for which waiters can read how a flight ended.
RECORD_LIFE = 3.0


@dataclass(frozen=True, slots=True)
class Record:
    """How a flight ended that left no entry: its owner, and the answer that its waiters share.

    ``found`` says that there is an item, which was for the owner's process alone: everybody fetches for himself.
    ``may_be_stale``: a waiter may show its expired entry instead, where the site allows that.
    """

    owner: str
    state: State
    reason: str
    retry_after: float | None = None
    may_be_stale: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """What a waiter sees in one look: who holds the lease, the last record, gate and entry."""

    owner: str | None
    record: Record | None
    kept: Kept


class Lease:
    """The right to fetch one item under one gate token, for this process.

    ``kept`` is what the cache had in hand just after the lease was won: the second look that the owner owes.
    """

    __slots__ = ("_entries", "_expires_at", "_key", "_query", "kept", "owner")

    def __init__(self, entries: EntryCache, query: Query, key: str, owner: str, expires_at: float, kept: Kept) -> None:
        self._entries = entries
        self._query = query
        self._key = key
        self._expires_at = expires_at
        self.owner = owner
        self.kept = kept

    def extend(self, seconds: float) -> None:
        """Make the lease outlive another call of at most ``seconds``; one that is lost already stays so."""
        now = clock.monotonic()
        if now < self._expires_at:
            self._expires_at = now + seconds + MARGIN
            self._entries.store.touch(self._key, seconds + MARGIN)

    @property
    def key_to_delete(self) -> str | None:
        """The key, while it is surely ours; None when it has to expire by itself, or is deleted already."""
        return self._key if self._expires_at - clock.monotonic() >= SAFE_TO_DELETE else None

    def was_deleted(self) -> None:
        """It was given back together with something else."""
        self._expires_at = float("-inf")

    def end(self, lookup: Lookup | None) -> None:
        """Leave a record for those who wait where they need one, and give the lease back."""
        record = None if lookup is None else record_of(lookup, self.owner)
        if record is not None:
            value = [self._query.name, record.owner, str(record.state), *_rest(record)]
            self._entries.store.set(self._entries.record_key(self._query), value, RECORD_LIFE)
        if (key := self.key_to_delete) is not None:
            self._entries.store.delete(key)


class _Wanted:
    """A lease that is asked for, for a first call of at most ``seconds``, and what came of it."""

    __slots__ = ("_entries", "_expires_at", "_query", "lease")

    def __init__(self, entries: EntryCache, query: Query, gate: str, owner: str, seconds: float) -> None:
        life = seconds + MARGIN
        self._entries = entries
        self._query = query
        self._expires_at = clock.monotonic() + life
        #: Key, value and life.
        self.lease = entries.lease_key(query, gate), owner, life

    def won(self, gate: Any, entry: Any) -> Lease:
        """Return the lease; gate and entry are what was read after it was won."""
        key, owner, _ = self.lease
        kept = self._entries.in_hand(self._query, gate, entry)
        return Lease(self._entries, self._query, key, owner, self._expires_at, kept)

    def seen(self) -> tuple[bool | None, Any, Any]:
        """Look whose it is, where the reply may be all that was lost; return whether it is ours, gate and entry.

        None: nobody's, or it cannot be seen.
        """
        (key, owner, _), query = self.lease, self._query
        found = self._entries.store.get_many((key, query.gate_key, query.entry_key))
        is_ours = found[key] == owner if key in found else None
        return is_ours, found.get(query.gate_key), found.get(query.entry_key)


def take(entries: EntryCache, query: Query, gate: str, owner: str, seconds: float) -> Lease | bool:
    """Return the lease for a first call of at most ``seconds``; False when somebody has it, True when none is needed.

    None is needed where the cache is this process's own, or cannot tell: then the process's flights are all there is.
    """
    if entries.store.is_local:
        return True
    wanted = _Wanted(entries, query, gate, owner, seconds)
    is_ours, pair = entries.store.add_and_get_pair(*wanted.lease, query.gate_key, query.entry_key)
    if is_ours is None:
        is_seen, *seen = wanted.seen()
        return wanted.won(*seen) if is_seen else is_seen is None
    return wanted.won(*pair) if is_ours else False


def take_if_met(
    entries: EntryCache, query: Query, gate: str, owner: str, seconds: float, precondition: Precondition
) -> Lease | Unmet | Literal[False] | None:
    """Do what :func:`take` does, if a precondition is met, in one step with looking at that.

    Returns the lease, False when somebody has it, or what is there instead of what the ``precondition`` names; None
    where it has to be done step by step.
    """
    wanted = _Wanted(entries, query, gate, owner, seconds)
    taken = entries.store.take_lease(wanted.lease, query.gate_key, query.entry_key, precondition)
    if isinstance(taken, Unmet):
        return taken
    if taken is not None:
        is_ours, *pair = taken
        return wanted.won(*pair) if is_ours else False
    if not entries.store.runs_scripts:
        return None
    is_seen, *seen = wanted.seen()
    return wanted.won(*seen) if is_seen else None  # else nobody has said that it was met


def put_up_gate(
    entries: EntryCache, query: Query, gate: str, owner: str, seconds: float, precondition: Precondition | None = None
) -> Lease | str | Unmet | None:
    """Put up a gate with this token and take the lease under it, for a first call of at most ``seconds``.

    Returns the lease, the token of somebody faster, or what is there instead of what the ``precondition`` names; None
    where it has to be done step by step.
    """
    wanted = _Wanted(entries, query, gate, owner, seconds)
    new_gate = query.gate_key, gate, entries.gate_life
    put_up = entries.store.put_up(new_gate, wanted.lease, query.entry_key, precondition)
    if put_up is None and entries.store.runs_scripts:
        is_seen, *seen = wanted.seen()
        if is_seen or precondition is None:  # else nobody has said that it was met
            put_up = is_seen is True, *seen
    if put_up is None or isinstance(put_up, Unmet):
        return put_up
    is_ours, *pair = put_up
    lease = wanted.won(*pair)
    return lease if is_ours and lease.kept.gate == gate else lease.kept.gate


def look_behind(entries: EntryCache, query: Query) -> tuple[Kept, bool]:
    """Return what the cache has in hand, and whether a flight has just ended without anything to keep."""
    keys = query.gate_key, query.entry_key, entries.record_key(query)
    found = entries.store.get_many(keys)
    gate, entry, record = map(found.get, keys)
    return entries.in_hand(query, gate, entry), _record(record, query.name) is not None


def watch(entries: EntryCache, query: Query, gate: str) -> Sight:
    """Look once at lease, record, gate and entry."""
    return watch_many(entries, ((query, gate),))[0]


def watch_many(entries: EntryCache, watched: Sequence[tuple[Query, str]]) -> list[Sight]:
    """Look once at the leases under these gates, with record, gate and entry, in one round trip.

    A lease comes before what its owner leaves behind, for caches that read one key after another.
    """
    keys = [(entries.lease_key(query, gate), entries.record_key(query)) for query, gate in watched]
    found = entries.store.get_many(
        tuple(
            key
            for (query, _), (lease_key, record_key) in zip(watched, keys, strict=True)
            for key in (lease_key, record_key, query.gate_key, query.entry_key)
        )
    )
    return [
        _sight(entries, query, found, lease_key, record_key)
        for (query, _), (lease_key, record_key) in zip(watched, keys, strict=True)
    ]


def _sight(entries: EntryCache, query: Query, found: Mapping[str, Any], lease_key: str, record_key: str) -> Sight:
    owner = found.get(lease_key)
    kept = entries.in_hand(query, found.get(query.gate_key), found.get(query.entry_key))
    return Sight(owner if isinstance(owner, str) else None, _record(found.get(record_key), query.name), kept)


def record_of(lookup: Lookup, owner: str) -> Record | None:
    """Return the record that waiters need, None where they find the answer in an entry."""
    if lookup.is_stale:
        return Record(owner, State.UNAVAILABLE, "incomplete_search", lookup.retry_after, may_be_stale=True)
    if lookup.state is State.UNAVAILABLE:
        may_be_stale = classify.may_serve_stale(lookup.trace, lookup.state, lookup.reason)
        return Record(owner, lookup.state, lookup.reason, lookup.retry_after, may_be_stale)
    if lookup.expires_at is None and lookup.state in _RECORDED:
        return Record(owner, lookup.state, lookup.reason)
    return None


def _rest(record: Record) -> tuple[str, float | None, bool]:
    return record.reason, record.retry_after, record.may_be_stale


def _record(value: Any, name: str) -> Record | None:
    """Return a record that is about the very query, None for anything else."""
    if not isinstance(value, (list, tuple)) or len(value) != 6 or value[0] != name:
        return None
    _name, owner, state, reason, retry_after, may_be_stale = value
    if not (isinstance(owner, str) and isinstance(reason, str) and isinstance(state, str) and state in _RECORDED):
        return None
    wait = retry_after if isinstance(retry_after, (int, float)) else None
    return Record(owner, State(state), reason, wait, may_be_stale is True)


_RECORDED = frozenset({State.FOUND, State.NOT_FOUND, State.UNAVAILABLE})
