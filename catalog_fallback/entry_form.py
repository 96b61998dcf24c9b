"""What stands under the keys of an item, and when does it count? A gate's token, and entries in a form of their own.

A token begins with a mark: ``s`` when the stop list held the item as the gate was published, else ``o``. Entries are
lists of plain JSON types, so that every serializer takes them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from catalog_fallback import clock
from catalog_fallback.queries import Query
from catalog_fallback.results import CacheStatus, Item, Lookup, State, make_lookup

#: Seconds that a gate which nobody needs lives on, and that clocks of two hosts may differ.
MARGIN = 60.0
OPEN, _STOPPED = "o", "s"
TOKEN_LENGTH = 33

_REASONS = {State.FOUND: "ok", State.NOT_FOUND: "all_not_found", State.STOPPED: "stopped"}
_STATES = {str(state): state for state in _REASONS}
_HIT = CacheStatus.HIT
_FOUND = State.FOUND
_SEQUENCES = frozenset({list, tuple})

_Fields = tuple[State, float, float, float, str | None, Item | None, bool]


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


def new_token(*, is_stopped: bool = False) -> str:
    """Return a token that no gate has had before, with the mark."""
    return (_STOPPED if is_stopped else OPEN) + os.urandom(16).hex()


def is_marked(gate: object) -> bool:
    """Whether the gate says that the item was stopped when it was published."""
    return isinstance(gate, str) and gate.startswith(_STOPPED)


def hit(query: Query, entry: Entry) -> Lookup:
    """Return the answer that a kept entry gives."""
    return make_hit(query, entry.state, entry.item, entry.source, entry.fetched_at, entry.expires_at)


def make_hit(
    query: Query, state: State, item: Item | None, source: str | None, fetched_at: float, expires_at: float
) -> Lookup:
    alias, reason = query.catalog.alias, _REASONS[state]
    return make_lookup(query.item_id, alias, state, reason, item, source, _HIT, fetched_at, expires_at)


def life_of(entry: Entry) -> float:
    return max(entry.expires_at, entry.stale_until) - clock.wall()


def encode(query: Query, gate: str, entry: Entry) -> list[Any]:
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


def decode(value: Any, name: str, gate: str, now: float) -> _Fields | None:
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
