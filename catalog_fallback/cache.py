"""How is an answer kept, and when does a kept answer count? The gate and the entry.

Each item has two kinds of keys. The *gate*, one for all its languages and variants, holds a random token. An *entry*,
one for each variant, carries the token under which it was made, and counts only while the gate holds the same token.
Whoever replaces the gate has therefore invalidated every variant, and every fetch in flight, with one write.

A token begins with a mark: ``s`` when the stop list held the item as the gate was published, else ``o``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog_fallback import clock
from catalog_fallback.conf import PerAlias, PerCatalog
from catalog_fallback.configuration import DOTS, CatalogConfig
from catalog_fallback.results import CacheStatus, Item, Lookup, State, make_lookup
from catalog_fallback.store import Store

#: Version of the keys and of the entry's form; part of every key.
FORMAT = 1
#: Seconds that a gate which nobody needs lives on, and that clocks of two hosts may differ.
MARGIN = 60.0
#: Shortest life of a gate and of a "stopped" entry, in seconds.
SHORT_LIFE = 300.0
#: Shortest life of a gate that carries the *stopped* mark, in seconds.
MARKED_LIFE = 3600.0

_OPEN, _STOPPED = "o", "s"
_TOKEN_LENGTH = 33
_SHORT = 64
_PLAIN = re.compile(rf"[A-Za-z0-9._/-]{{1,{_SHORT}}}")
_DIGEST_LENGTH = 32


class Query:
    """One question in its normal form, with the keys under which its answer is kept."""

    __slots__ = ("catalog", "entry_key", "gate_key", "item_id", "language", "name", "vary")

    def __init__(
        self,
        catalog: CatalogConfig,
        item_id: str,
        language: str,
        vary: Mapping[str, str],
        gate_key: str,
        entry_key: str,
        name: str,
    ) -> None:
        self.catalog = catalog
        self.item_id = item_id
        self.language = language
        self.vary = vary
        self.gate_key = gate_key
        self.entry_key = entry_key
        #: What the entry says of itself: nothing in it is shortened.
        self.name = name


@dataclass(frozen=True, slots=True)
class Entry:
    """A kept answer. Moments are seconds since the epoch; ``stale_until`` is ``expires_at`` where none is allowed."""

    state: State
    fetched_at: float
    expires_at: float
    stale_until: float
    source: str | None = None
    item: Item | None = None
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class Kept:
    """What the cache has in hand for a query that it could not answer by itself.

    ``gate`` is the gate's token, None without a gate. ``entry`` is an entry under that very token, fresh or not.
    """

    gate: str | None = None
    entry: Entry | None = None


class EntryCache:
    """Gates and entries of one catalog."""

    def __init__(self, config: CatalogConfig) -> None:
        self.config = config
        self.store = store_of[config.cache]
        head = f"{config.key_prefix}:{FORMAT}:{config.version}"
        self._gate_head = f"{head}:g:{{{config.alias}:"
        self._entry_head = f"{head}:e:{{{config.alias}:"
        self._lease_head = f"{head}:l:{{{config.alias}:"
        self._record_head = f"{head}:f:{{{config.alias}:"
        self._variant = _variant(config.language, {})
        self._takes_defaults = not config.required_vary and (config.language != "" or not config.needs_language)
        self._may_answer = config.stop_check == "cache"
        #: Seconds that a gate lives: one that a lookup puts up, one whose item was found, one that a publish writes.
        self.gate_life = max(SHORT_LIFE, config.negative_ttl) + MARGIN
        self._found_life = config.ttl + config.stale_if_error + config.negative_ttl + MARGIN
        self.published_life = max(self.gate_life, self._found_life, MARKED_LIFE)
        #: Lookups of this process that ended with a kept answer, and all others.
        self.hits = self.misses = 0

    def query(self, item_id: str, language: str | None = None, vary: Mapping[str, str] | None = None) -> Query:
        """Return the question in its normal form.

        Raises InvalidItemID, and ValueError when ``vary`` does not hold exactly what the sources' URLs need.
        """
        config = self.config
        item_id = config.clean_id(item_id)
        if language is None and (vary is None or vary == _NOTHING) and self._takes_defaults:
            language, vary, variant = config.language, _NOTHING, self._variant
        else:
            language = _checked_language(config, config.language if language is None else language)
            vary = _checked_vary(config, _NOTHING if vary is None else vary)
            variant = _variant(language, vary)
        if item_id.isalnum() and len(item_id) <= _SHORT and item_id.isascii():
            name = entry_key = f"{self._entry_head}{item_id}}}{variant}"
            return Query(config, item_id, language, vary, f"{self._gate_head}{item_id}}}", entry_key, name)
        name = f"{self._entry_head}{item_id}}}{variant}"
        entry_key = f"{self._entry_head}{_short(item_id)}}}{variant}"
        return Query(config, item_id, language, vary, self.gate_key(item_id), entry_key, name)

    def gate_key(self, item_id: str) -> str:
        """Return the key of the gate of an ID in its normal form."""
        return f"{self._gate_head}{_short(item_id)}}}"

    def lease_key(self, query: Query, gate: str) -> str:
        """Return the key of the lease for fetching this very query under this gate."""
        return f"{self._lease_head}{query.entry_key[len(self._entry_head) :]}:{gate[1:17]}"

    def record_key(self, query: Query) -> str:
        """Return the key of the record of how a flight for this query ended."""
        return f"{self._record_head}{query.entry_key[len(self._entry_head) :]}"

    def read(self, query: Query) -> Lookup | Kept:
        """Return the answer where the cache may give it by itself, else what it has in hand. One round trip."""
        gate, value = self.store.get_pair(query.gate_key, query.entry_key)
        return self._answer(query, gate, value, clock.wall())

    def _answer(self, query: Query, gate: Any, value: Any, now: float) -> Lookup | Kept:
        if type(gate) is not str or len(gate) != _TOKEN_LENGTH:
            return Kept()
        entry = _decode(value, query.name, gate, now)
        if entry is None:
            return Kept(gate)
        state, fetched_at, expires_at, _, source, item, is_checked = entry
        if expires_at > now and is_checked and self._may_answer and gate[0] == _OPEN:
            return _hit(query, state, item, source, fetched_at, expires_at)
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
        if type(gate) is not str or len(gate) != _TOKEN_LENGTH:
            return Kept()
        entry = _decode(value, query.name, gate, clock.wall())
        return Kept(gate, None if entry is None else Entry(*entry))

    def read_gate(self, query: Query) -> str | None:
        """Return the gate's token, None without one."""
        gate = self.store.get_many((query.gate_key,)).get(query.gate_key)
        return gate if type(gate) is str and len(gate) == _TOKEN_LENGTH else None

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
        life = _life(entry)
        if life <= 0:
            self.forget(query)
            return
        touched = query.gate_key if entry.state is State.FOUND else None
        self.store.set_and_touch(query.entry_key, _encode(query, gate, entry), life, touched, self._found_life)

    def keep_if_same(
        self, query: Query, gate: str, entry: Entry, *, is_new_gate: bool, lease_key: str | None
    ) -> tuple[bool, bool]:
        """Look at the gate again and, if it still holds the token, write the entry under it.

        Returns whether it does, and whether the lease, where its key is given, was deleted by the way.
        """
        life = _life(entry)
        if life <= 0:
            is_same = self.read_gate(query) == gate
            if is_same:
                self.forget(query)
            return is_same, False
        needs_touch = entry.state is State.FOUND and (not is_new_gate or self._found_life > self.gate_life)
        kept = query.entry_key, _encode(query, gate, entry), life
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


def _life(entry: Entry) -> float:
    return max(entry.expires_at, entry.stale_until) - clock.wall()


def _encode(query: Query, gate: str, entry: Entry) -> list[Any]:
    return [
        query.name,
        gate,
        str(entry.state),
        entry.fetched_at,
        entry.expires_at,
        entry.stale_until,
        entry.source,
        None if entry.item is None else dict(entry.item),
        entry.is_checked,
    ]


def hit(query: Query, entry: Entry) -> Lookup:
    """Return the answer that a kept entry gives."""
    return _hit(query, entry.state, entry.item, entry.source, entry.fetched_at, entry.expires_at)


def _hit(
    query: Query, state: State, item: Item | None, source: str | None, fetched_at: float, expires_at: float
) -> Lookup:
    alias, reason = query.catalog.alias, _REASONS[state]
    return make_lookup(query.item_id, alias, state, reason, item, source, _HIT, fetched_at, expires_at)


def new_token(*, is_stopped: bool = False) -> str:
    """Return a token that no gate has had before, with the mark."""
    return (_STOPPED if is_stopped else _OPEN) + os.urandom(16).hex()


def is_marked(gate: object) -> bool:
    """Whether the gate says that the item was stopped when it was published."""
    return isinstance(gate, str) and gate.startswith(_STOPPED)


#: The store of each alias of CACHES: all catalogs share what the process knows of its troubles.
store_of: PerAlias[Store] = PerAlias(Store)
#: The entry cache of each catalog.
entries_of: PerCatalog[EntryCache] = PerCatalog(EntryCache)

_NOTHING: Mapping[str, str] = {}
_REASONS = {State.FOUND: "ok", State.NOT_FOUND: "all_not_found", State.STOPPED: "stopped"}
_HIT = CacheStatus.HIT
_FOUND = State.FOUND
_STATES = {str(state): state for state in _REASONS}

_Fields = tuple[State, float, float, float, str | None, Item | None, bool]


def _decode(value: Any, name: str, gate: str, now: float) -> _Fields | None:
    """Return the fields of an entry that names what was asked and carries the gate's token, else None."""
    if type(value) not in _SEQUENCES or len(value) != 9:
        return None
    stored_name, token, state, fetched_at, expires_at, stale_until, source, item, is_checked = value
    if token != gate or stored_name != name:
        return None
    if not type(fetched_at) is type(expires_at) is type(stale_until) is float or fetched_at > now + MARGIN:
        return None
    state = _STATES.get(state) if type(state) is str else None
    if state is None or (state is _FOUND) is not (type(item) is dict):
        return None
    if type(is_checked) is not bool or not (type(source) is str or source is None):
        return None
    return state, fetched_at, expires_at, stale_until, source, item, is_checked


_SEQUENCES = frozenset({list, tuple})


def _digest(text: str) -> str:
    return "~" + hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def _short(text: str) -> str:
    """The text itself where it is short and legal in every cache's keys, else a digest that no plain text equals."""
    return text if _PLAIN.fullmatch(text) else _digest(text)


def _variant(language: str, vary: Mapping[str, str]) -> str:
    if not vary and (not language or _PLAIN.fullmatch(language)):
        return language
    return _digest(json.dumps([language, sorted(vary.items())]))


def _checked_language(config: CatalogConfig, language: object) -> str:
    if not language and config.needs_language:
        raise ValueError(f"A language is needed: the URLs of catalog {config.alias!r} have it (setting LANGUAGE).")
    if isinstance(language, str) and language.isascii() and len(language) <= 64 and language not in DOTS:
        return language
    raise ValueError(f"language={language!r} has to be an ASCII string of at most 64 characters, not '.' or '..'.")


def _checked_vary(config: CatalogConfig, vary: Mapping[str, str]) -> Mapping[str, str]:
    """Return ``vary`` if every name is known and needed ones are there; ValueError names what is wrong."""
    if not isinstance(vary, Mapping):
        raise ValueError(f"vary={vary!r} has to be a mapping of str to str.")
    if unknown := sorted(map(str, vary.keys() - config.vary_names)):
        known = ", ".join(sorted(config.vary_names)) or "none"
        raise ValueError(f"vary has {', '.join(unknown)}, which no source of catalog {config.alias!r} knows ({known}).")
    if missing := sorted(config.required_vary - vary.keys()):
        raise ValueError(f"vary has to give {', '.join(missing)}: the URLs of catalog {config.alias!r} need it.")
    for name, value in vary.items():
        if not isinstance(value, str) or not value or not value.isprintable() or value in DOTS:
            raise ValueError(f"vary[{name!r}]={value!r} has to be a printable string, not empty, '.' or '..'.")
    return dict(vary)
