"""What did one look into the store bring? One round trip for all guards, one more a step where something is new."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from catalog_fallback import clock
from catalog_fallback.resilience.store import Store

#: Steps after which a reader takes what it has; it keeps where it got to, and the next one goes on from there.
_MAX_STEPS = 64
#: Age in seconds up to which a view is good enough to take permits by.
_FRESH = 0.1


@dataclass(frozen=True, slots=True)
class View:
    """What one store held at one moment."""

    store: Store
    found: Mapping[str, Any]
    read_at: float

    @property
    def is_fresh(self) -> bool:
        """Nothing much can have happened since."""
        return clock.monotonic() - self.read_at <= _FRESH


class Reader(Protocol):
    """Somebody who wants keys read."""

    def keys(self) -> tuple[str, ...]:
        """Return the keys that are needed, if nothing has changed since the last read."""

    def more_keys(self, found: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the keys that are needed, as far as what was found tells; they may have been read."""

    def remember(self, found: Mapping[str, Any]) -> None:
        """Keep where the state was last seen, so that the next read asks for the right keys at once."""


def read(store: Store, readers: Sequence[Reader], more: tuple[str, ...] = ()) -> View:
    """Read what all ``readers`` need, and the keys ``more``; it takes no permit and writes nothing."""
    read_at = clock.monotonic()
    wanted = keys_of(readers, more)
    return complete(View(store, store.get_many(wanted), read_at), readers, wanted)


def keys_of(readers: Sequence[Reader], more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the keys ``more``, and those that ``readers`` need if nothing has changed since the last read."""
    return (*more, *chain.from_iterable(reader.keys() for reader in readers))


def complete(view: View, readers: Sequence[Reader], asked: tuple[str, ...]) -> View:
    """Return the view with all that ``readers`` need, where the keys ``asked`` were not enough."""
    found = _followed(view, readers, asked)
    for reader in readers:
        reader.remember(found)
    return View(view.store, found, view.read_at)


def are_all(readers: Sequence[Reader], found: Mapping[str, Any], keys: Collection[str]) -> bool:
    """Whether what was found leads to no other keys than these."""
    return all(key in keys for reader in readers for key in reader.more_keys(found))


def _followed(view: View, readers: Sequence[Reader], asked: tuple[str, ...]) -> Mapping[str, Any]:
    """Where something has changed since the last read, follow where it leads; else return the very same mapping."""
    found, known = view.found, set(asked)
    for _ in range(_MAX_STEPS):
        keys = chain.from_iterable(reader.more_keys(found) for reader in readers)
        wanted = tuple(dict.fromkeys(key for key in keys if key not in known))
        if not wanted:
            break
        found = {**found, **view.store.get_many(wanted)}
        known.update(wanted)
    return found
