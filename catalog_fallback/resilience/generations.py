"""What is the state now? A chain of links in the shared store, each the successor of the one before.

Each link has a random generation. Following generation ``t`` *is* ``add("next:" + t, new link)``: of all processes
exactly one succeeds, and whoever did not hear the store's reply finds out by reading who did. The state is the end of
the chain. The plain key holds a link to begin with, and is only a hint: a late write of it costs a step, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from catalog_fallback.resilience.store import Store

Link = Mapping[str, Any]

#: The generation before the first, and its link.
FIRST = "0"
ROOT: Link = MappingProxyType({"g": FIRST})
_MAX_STEPS = 64


class Successor(NamedTuple):
    """Who follows a generation, and whether that is the caller's own link."""

    link: Link
    is_mine: bool


class Generations:
    """One chain. ``life``: seconds that a link lives, longer than anybody works by the one before it.

    ``keys_that_count`` returns the keys that hang on a link; they are the same for the same generation.
    """

    def __init__(
        self, store: Store, head: str, life: float, keys_that_count: Callable[[Link], tuple[str, ...]]
    ) -> None:
        self._store = store
        self._head = head
        self._life = life
        self._keys_that_count = keys_that_count
        self._hint, self._after_first = f"{head}:hint", f"{head}:next:{FIRST}"
        #: What was followed last, how much it held, and where it led: one look at the guards asks several times.
        self._followed: tuple[Mapping[str, Any], int, Link] = ({}, 0, ROOT)
        #: The end of the chain when it was last read: decides which keys are asked for first, and nothing else.
        self.last: Link = ROOT
        #: The generation that was asked for last, and the keys that this takes.
        self._asked: tuple[str, tuple[str, ...]] = "", ()

    def keys(self) -> tuple[str, ...]:
        """Return the keys that a look needs, if nothing has changed since the last one."""
        return self._keys_of(self.last)

    def more_keys(self, found: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the keys that it needs at the link to which ``found`` leads.

        Not compared with what this object saw last: another thread may have seen more since the keys were chosen.
        """
        return self._keys_of(self.end(found))

    def end(self, found: Mapping[str, Any]) -> Link:
        """Return the last link, as far as ``found`` leads; what it holds may grow, but does not change."""
        followed, size, link = self._followed
        if followed is not found or size != len(found):
            link = self._follow_in(found)
            self._followed = found, len(found), link
        return link

    def _follow_in(self, found: Mapping[str, Any]) -> Link:
        link = _link(found.get(self._hint)) or ROOT
        for _ in range(_MAX_STEPS):
            following = _link(found.get(self._next(link["g"])))
            if following is None:
                break
            link = following
        return link

    def _keys_of(self, link: Link) -> tuple[str, ...]:
        """What leads on from a link comes before what hangs on it, for stores that read one by one."""
        generation, keys = self._asked
        if generation != link["g"]:
            keys = self._hint, self._next(link["g"]), *self._keys_that_count(link)
            self._asked = link["g"], keys
        return keys

    def remember(self, found: Mapping[str, Any]) -> None:
        """Keep the end of the chain."""
        end = self.end(found)
        if end["g"] != self.last["g"]:
            self.last = end

    def follow(self, generation: str, new: Link) -> Successor | None:
        """Make ``new`` the successor of a generation. Returns who that is now; None when the store cannot tell."""
        key = self._next(generation)
        winner = self._first(key, new)
        if winner is None:
            return None
        self._store.set(self._hint, winner, self._life)
        self.last = winner
        return Successor(winner, winner["g"] == new["g"])

    def _first(self, key: str, new: Link) -> Link | None:
        """Return the link under the key, the new one if there was none. Garbage is removed, and tried once more."""
        for _ in range(2):
            if self._store.add(key, new, self._life):
                return new
            found = self._store.get_many((key,))
            if key not in found:
                return None
            if link := _link(found[key]):
                return link
            self._store.delete(key)
        return None

    def _next(self, generation: str) -> str:
        return self._after_first if generation == FIRST else f"{self._head}:next:{generation}"


def _link(value: object) -> Link | None:
    """A link as it was read; anything else is as good as missing."""
    if isinstance(value, dict) and isinstance(value.get("g"), str):
        return value
    return None
