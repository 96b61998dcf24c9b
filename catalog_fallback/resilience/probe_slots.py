"""Who may probe a source that was out of order? So many slots at a time, each a lease in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog_fallback import clock
from catalog_fallback.resilience.keys import token
from catalog_fallback.resilience.store import Store

#: Seconds by which a lease outlives the limit of the call that it is for.
MARGIN = 5.0
#: A slot is deleted only while it has so many seconds to live; otherwise it may be somebody else's already.
_SURELY_OURS = 1.0


@dataclass(frozen=True, slots=True)
class Slot:
    """One probe's right to be made. ``expires_at`` is a moment of the monotonic clock."""

    key: str
    expires_at: float

    @property
    def has_expired(self) -> bool:
        """The lease is over: somebody else may be probing by now."""
        return clock.monotonic() >= self.expires_at


class ProbeSlots:
    """The slots of one breaker, named by generation."""

    def __init__(self, store: Store, head: str, limit: int, lease: float) -> None:
        self._store = store
        self._head = head
        self._limit = limit
        self._lease = lease

    def keys(self, generation: str) -> tuple[str, ...]:
        """Return the keys of all slots."""
        return tuple(f"{self._head}:slot:{generation}:{place}" for place in range(self._limit))

    def are_taken(self, generation: str, found: Mapping[str, Any]) -> bool:
        """Whether none was free when ``found`` was read."""
        return all(key in found for key in self.keys(generation))

    def take(self, generation: str, found: Mapping[str, Any]) -> Slot | bool | None:
        """Take one. False: all are taken; None: the store cannot tell."""
        for key in self.keys(generation):
            if key in found:
                continue
            expires_at = clock.monotonic() + self._lease
            is_mine = self._store.add(key, token(), self._lease)
            if is_mine is None:
                return None
            if is_mine:
                return Slot(key, expires_at)
        return False

    def give_back(self, slot: Slot) -> None:
        """Free the slot, or let it expire where it is not surely ours any more."""
        if slot.expires_at - clock.monotonic() >= _SURELY_OURS:
            self._store.delete(slot.key)
