"""Which store does a guard work with now? The one that all processes share, or one in the process that stands in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from catalog_fallback import clock
from catalog_fallback.resilience.store import ProcessStore, Store
from catalog_fallback.resilience.views import Reader, View, complete, keys_of

#: After so many decisions in a row that the shared store could not help with, it is left alone for so many seconds.
_DOUBTS, _PAUSE = 3, 5.0


class Guarded(Protocol):
    """Somebody who has state in either store."""

    def patterns(self, store: Store) -> Reader:
        """Return who reads it."""


class Stores:
    """The shared store, and the one that stands in for it while it is in trouble. One object per catalog.

    The shared store knows its own troubles (``is_paused``), except those that a cache hides behind empty answers.
    """

    def __init__(self, shared: Store, local: Store | None = None) -> None:
        self.shared = shared
        self.local = local if local is not None else ProcessStore()
        self._doubts = 0
        self._local_until = float("-inf")
        #: The keys that were read last, and what they held, where that led to no other keys.
        self._seen: tuple[Store, tuple[str, ...], Mapping[str, Any]] | None = None

    @property
    def now(self) -> Store:
        """The one to work with now."""
        is_in_trouble = self.shared.is_paused or clock.monotonic() < self._local_until
        return self.local if is_in_trouble else self.shared

    def read(self, guards: Sequence[Guarded], more: tuple[str, ...] = ()) -> View:
        """Read what all guards need to look, and the keys ``more``."""
        store, read_at = self.now, clock.monotonic()
        readers = [guard.patterns(store) for guard in guards]
        wanted = keys_of(readers, more)
        found = store.get_many(wanted)
        seen = self._seen
        if seen is not None and seen[0] is store and seen[1] == wanted and seen[2] == found:
            return View(store, seen[2], read_at)  # nothing has changed: all of it was followed, and is remembered
        view = complete(View(store, found, read_at), readers, wanted)
        if view.found is found:
            self._seen = store, wanted, found
        return view

    def readers(self, guards: Sequence[Guarded]) -> list[Reader]:
        """Return who reads the guards' state in the shared store."""
        return [guard.patterns(self.shared) for guard in guards]

    def heard(self, *, has_answered: bool) -> None:
        """The shared store was needed for a decision, and has answered or not."""
        if has_answered:
            self._doubts = 0
            return
        self._doubts += 1
        if self._doubts >= _DOUBTS:
            self._local_until = clock.monotonic() + _PAUSE
