"""How is an answer kept, and when does a kept answer count? The gate and the entry.

Each item has two kinds of keys. The *gate*, one for all its languages and variants, holds a random token. An *entry*,
one for each variant, carries the token under which it was made, and counts only while the gate holds the same token.
Whoever replaces the gate has therefore invalidated every variant, and every fetch in flight, with one write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catalog_fallback import clock
from catalog_fallback.conf import PerAlias, PerCatalog
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.entry_form import (
    MARGIN,
    OPEN,
    TOKEN_LENGTH,
    Entry,
    Kept,
    decode,
    encode,
    life_of,
    make_hit,
    new_token,
)
from catalog_fallback.item_store import ItemStore
from catalog_fallback.queries import Keys, Query
from catalog_fallback.results import CacheStatus, Lookup, State

#: Shortest life of a gate and of a "stopped" entry, in seconds.
SHORT_LIFE = 300.0
#: Shortest life of a gate that carries the *stopped* mark, in seconds.
MARKED_LIFE = 3600.0


class EntryCache(Keys):
    """Gates and entries of one catalog."""

    def __init__(self, config: CatalogConfig) -> None:
        super().__init__(config)
        self.store = store_of[config.cache]
        self._may_answer = config.stop_check == "cache"
        #: Seconds that a gate lives: one that a lookup puts up, one whose item was found, one that a publish writes.
        self.gate_life = max(SHORT_LIFE, config.negative_ttl) + MARGIN
        self._found_life = config.ttl + config.stale_if_error + config.negative_ttl + MARGIN
        self.published_life = max(self.gate_life, self._found_life, MARKED_LIFE)
        #: Lookups of this process that ended with a kept answer, and all others.
        self.hits = self.misses = 0

    def read(self, query: Query) -> Lookup | Kept:
        """Return the answer where the cache may give it by itself, else what it has in hand. One round trip."""
        gate, value = self.store.get_pair(query.gate_key, query.entry_key)
        return self._answer(query, gate, value, clock.wall())

    def _answer(self, query: Query, gate: Any, value: Any, now: float) -> Lookup | Kept:
        if type(gate) is not str or len(gate) != TOKEN_LENGTH:
            return Kept()
        entry = decode(value, query.name, gate, now)
        if entry is None:
            return Kept(gate)
        state, fetched_at, expires_at, _, source, item, is_checked = entry
        if expires_at > now and is_checked and self._may_answer and gate[0] == OPEN:
            return make_hit(query, state, item, source, fetched_at, expires_at)
        return Kept(gate, Entry(*entry))

    def look(self, query: Query) -> Kept:
        """Return what the cache has in hand, whether it could answer or not. One round trip."""
        return self.in_hand(query, *self.store.get_pair(query.gate_key, query.entry_key))

    def look_many(self, queries: Sequence[Query]) -> list[Kept]:
        """Return what the cache has in hand for each query, in one round trip."""
        found = self._find_many(queries)
        return [self.in_hand(query, found.get(query.gate_key), found.get(query.entry_key)) for query in queries]

    def read_many(self, queries: Sequence[Query]) -> list[Lookup | Kept]:
        """Return for each query what :meth:`read` returns, in one round trip for all."""
        found = self._find_many(queries)
        now = clock.wall()
        return [self._answer(query, found.get(query.gate_key), found.get(query.entry_key), now) for query in queries]

    def _find_many(self, queries: Sequence[Query]) -> Mapping[str, Any]:
        if not queries:
            return {}
        keys = [key for query in queries for key in (query.gate_key, query.entry_key)]
        return self.store.get_many(tuple(dict.fromkeys(keys)))

    def in_hand(self, query: Query, gate: Any, value: Any) -> Kept:
        """Return what a gate and an entry, as they came from the cache, are worth together."""
        if type(gate) is not str or len(gate) != TOKEN_LENGTH:
            return Kept()
        entry = decode(value, query.name, gate, clock.wall())
        return Kept(gate, None if entry is None else Entry(*entry))

    def read_gate(self, query: Query) -> str | None:
        """Return the gate's token, None without one."""
        gate = self.store.get_many((query.gate_key,)).get(query.gate_key)
        return gate if type(gate) is str and len(gate) == TOKEN_LENGTH else None

    def open_gate(self, query: Query) -> str | None:
        """Return the token of a gate that this caller, or somebody faster, has just put up; None without a cache."""
        token = new_token()
        is_new = self.store.add(query.gate_key, token, self.gate_life)
        if is_new:
            return token
        theirs = self.read_gate(query)
        if theirs is None and is_new is False:
            self.store.delete(query.gate_key)  # what stands there cannot be read
            return token if self.store.add(query.gate_key, token, self.gate_life) else None
        return theirs

    def keep(self, query: Query, gate: str, entry: Entry) -> None:
        """Write the entry under the gate's token; one that is over already removes what was there."""
        life = life_of(entry)
        if life <= 0:
            self.forget(query)
            return
        touched = query.gate_key if entry.state is State.FOUND else None
        self.store.set_and_touch(query.entry_key, encode(query, gate, entry), life, touched, self._found_life)

    def keep_if_same(
        self, query: Query, gate: str, entry: Entry, *, is_new_gate: bool, lease_key: str | None
    ) -> tuple[bool, bool]:
        """Look at the gate again and, if it still holds the token, write the entry under it.

        Returns whether it does, and whether the lease, where its key is given, was deleted by the way.
        """
        life = life_of(entry)
        if life <= 0:
            is_same = self.read_gate(query) == gate
            if is_same:
                self.forget(query)
            return is_same, False
        needs_touch = entry.state is State.FOUND and (not is_new_gate or self._found_life > self.gate_life)
        kept = query.entry_key, encode(query, gate, entry), life
        return self.store.keep_under(query.gate_key, gate, kept, self._found_life if needs_touch else None, lease_key)

    def note(self, lookup: Lookup) -> None:
        """Count a lookup that has ended. Without a lock: threads may lose one now and then, and no hit waits."""
        if lookup.cache is _HIT:
            self.hits += 1
        else:
            self.misses += 1

    def keep_stopped(self, query: Query, gate: str) -> None:
        """Write "stopped" under the gate's token."""
        now = clock.wall()
        until = now + max(SHORT_LIFE, self.config.negative_ttl)
        self.keep(query, gate, Entry(State.STOPPED, now, until, until))

    def forget(self, query: Query) -> None:
        """Remove this variant's entry."""
        self.store.delete(query.entry_key)


#: The store of each alias of CACHES: all catalogs share what the process knows of its troubles.
store_of: PerAlias[ItemStore] = PerAlias(ItemStore)
#: The entry cache of each catalog.
entries_of: PerCatalog[EntryCache] = PerCatalog(EntryCache)

_HIT = CacheStatus.HIT
