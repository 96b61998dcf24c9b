"""How many lookups did the cache answer? Counted by all processes together, where they share a cache.

A hit costs an addition in the process. What was counted is written by the process's next search among the sources, at
most every few seconds: a process that only has hits writes nothing, and its hits show once it has a miss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog_fallback import clock
from catalog_fallback.cache import EntryCache
from catalog_fallback.process_lock import ProcessLock
from catalog_fallback.resilience.buckets import Buckets
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.store import Store, count
from catalog_fallback.statistics import WINDOW

_PIECES = 10
_WRITE_EVERY = 5.0
#: Two numbers in one, which takes 62 bits: hits, and all lookups.
_BITS = 31
_MASK = (1 << _BITS) - 1
_LIMIT = 1 << 2 * _BITS


@dataclass(frozen=True, slots=True)
class Answered:
    """The lookups of one catalog in the last five minutes, as far as they are known; ``hits`` had a kept answer."""

    hits: int = 0
    lookups: int = 0

    @property
    def ratio(self) -> float | None:
        """Which part of the lookups had a kept answer; None where there were no lookups."""
        return self.hits / self.lookups if self.lookups else None

    @property
    def percent(self) -> int | None:
        """The ratio as people are told it, everywhere the same."""
        return None if self.ratio is None else round(self.ratio * 100)

    def __add__(self, other: Answered) -> Answered:
        return Answered(self.hits + other.hits, self.lookups + other.lookups)


class HitCounts:
    """The hits and misses of one catalog in one store. Making one writes nothing."""

    def __init__(self, entries: EntryCache, store: Store) -> None:
        config = entries.config
        self._entries = entries
        self._store = store
        # No source has an empty alias; the hash tag is that of the catalog's guards.
        self._head = Names(config.alias, "", config.key_prefix, config.version).key("hits")
        self._buckets = Buckets(WINDOW / _PIECES, back=_PIECES, ahead=1)
        self._lock = ProcessLock()
        #: What this process has written, and when.
        self._written = Answered()
        self._written_at = clock.monotonic()

    def write_if_due(self) -> None:
        """Write what was counted, unless this process did so a few seconds ago."""
        if clock.monotonic() - self._written_at < _WRITE_EVERY:
            return
        with self._lock.own:
            new = self._pending()
            self._written, self._written_at = self._counted(), clock.monotonic()
        if new.lookups:
            number = new.lookups + (new.hits << _BITS)
            count(self._store, self._key(self._buckets.number(clock.wall())), number, 2 * WINDOW)

    def keys(self) -> tuple[str, ...]:
        """Return the keys that count now."""
        return tuple(map(self._key, self._buckets.window(self._buckets.number(clock.wall()))))

    def of(self, found: Mapping[str, Any]) -> Answered:
        """Return what was read, and what this process has not written yet."""
        return sum((_answered(found.get(key)) for key in self.keys()), start=self._pending())

    def _pending(self) -> Answered:
        """What was not written; of what has come together in more than the window, the share that one window has."""
        now, written = self._counted(), self._written
        elapsed = max(clock.monotonic() - self._written_at, WINDOW)
        hits = round((now.hits - written.hits) * WINDOW / elapsed)
        return Answered(hits, max(hits, round((now.lookups - written.lookups) * WINDOW / elapsed)))

    def _counted(self) -> Answered:
        hits = self._entries.hits
        return Answered(hits, hits + self._entries.misses)

    def _key(self, bucket: int) -> str:
        return f"{self._head}:{bucket}"


def _answered(value: Any) -> Answered:
    """Hits and lookups of one number; nothing for anything that nobody can have counted."""
    if type(value) is not int or not 0 < value < _LIMIT:
        return Answered()
    hits, lookups = value >> _BITS, value & _MASK
    return Answered(hits, lookups) if hits <= lookups else Answered()
