"""What do the guards keep their state in? A cache-like object, and one inside the process that stands in for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from catalog_fallback import clock
from catalog_fallback.process_lock import ProcessLock


class Store(Protocol):
    """What the guards need of a cache. Nothing here raises; values are plain JSON types; every key has a life.

    None from ``add`` means that the store cannot tell, None from ``incr`` that, or a missing key.
    """

    @property
    def is_paused(self) -> bool:
        """The store is in trouble, and left alone for a while."""

    def get_many(self, keys: tuple[str, ...]) -> Mapping[str, Any]:
        """Return what there is."""

    def add(self, key: str, value: Any, ttl: float) -> bool | None:
        """Write unless the key exists; atomic."""

    def set(self, key: str, value: Any, ttl: float) -> None:
        """Write, if the store takes it."""

    def incr(self, key: str, delta: int, ttl: float) -> int | None:
        """Add to a number that exists; atomic. ``ttl`` is for backends where this changes the life of the key."""

    def touch(self, key: str, ttl: float) -> None:
        """Give the key a new life, if it is there."""

    def delete(self, key: str) -> None:
        """Delete, if the store takes it."""


def count(store: Store, key: str, delta: int, ttl: float) -> int | None:
    """Add to a number that may not exist yet; None when the store cannot tell.

    The key's name holds its window, and ``ttl`` outlives the window's use: nobody adds to a key as it expires, which
    on some backends would leave it without an expiry.
    """
    value = store.incr(key, delta, ttl)
    if value is not None:
        return value
    is_new = store.add(key, delta, ttl)
    if is_new is None:
        return None
    return delta if is_new else store.incr(key, delta, ttl)


def number(value: object) -> int:
    """Return a counter as it was read; anything else is as good as missing."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


class ProcessStore:
    """A store inside the process, with the semantics of a shared cache and a bounded number of keys."""

    is_paused = False

    def __init__(self, max_entries: int = 50_000) -> None:
        self.max_entries = max_entries
        self._lock = ProcessLock()
        #: Key → (value, monotonic moment at which it expires).
        self._entries: dict[str, tuple[Any, float]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get_many(self, keys: Iterable[str]) -> Mapping[str, Any]:
        """Return what there is."""
        with self._lock.own:
            found = ((key, self._live_locked(key)) for key in keys)
            return {key: entry[0] for key, entry in found if entry is not None}

    def add(self, key: str, value: Any, ttl: float) -> bool | None:
        """Write unless the key exists."""
        with self._lock.own:
            if self._live_locked(key) is not None:
                return False
            self._write_locked(key, value, ttl)
            return True

    def set(self, key: str, value: Any, ttl: float) -> None:
        """Write."""
        with self._lock.own:
            self._write_locked(key, value, ttl)

    def incr(self, key: str, delta: int, ttl: float) -> int | None:  # the life of the key stays
        """Add to a number that exists; None where there is none."""
        with self._lock.own:
            entry = self._live_locked(key)
            if entry is None or not isinstance(entry[0], int):
                return None
            value: int = entry[0] + delta
            self._entries[key] = (value, entry[1])
            return value

    def touch(self, key: str, ttl: float) -> None:
        """Give the key a new life, if it is there."""
        with self._lock.own:
            entry = self._live_locked(key)
            if entry is not None:
                self._entries[key] = (entry[0], _expiry(ttl))

    def delete(self, key: str) -> None:
        """Delete."""
        with self._lock.own:
            self._entries.pop(key, None)

    def _live_locked(self, key: str) -> tuple[Any, float] | None:
        entry = self._entries.get(key)
        if entry is not None and entry[1] <= clock.monotonic():
            del self._entries[key]
            return None
        return entry

    def _write_locked(self, key: str, value: Any, ttl: float) -> None:
        if key not in self._entries and len(self._entries) >= self.max_entries:
            self._make_room_locked()
        self._entries[key] = (value, _expiry(ttl))

    def _make_room_locked(self) -> None:
        """Drop what has expired, and where that is not enough the tenth that would expire first."""
        now = clock.monotonic()
        by_expiry = sorted(self._entries, key=lambda key: self._entries[key][1])
        tenth = max(1, self.max_entries // 10)
        for place, key in enumerate(by_expiry):
            if place >= tenth and self._entries[key][1] > now:
                return
            del self._entries[key]


def _expiry(ttl: float) -> float:
    """Whole seconds, as shared caches count: fractions are rounded up, and nothing lives shorter than one."""
    return clock.monotonic() + max(1, math.ceil(ttl))
