"""May a lookup go on before it has looked at the guards? Where Redis finds them as this process saw them last.

Nothing may be written while nobody may be called, so a miss looks at the guards before it puts up a gate. Where both
are in the same Redis, one script puts up the gate only if a look would find nothing new, and else says what there is:
then that was the look. One round trip instead of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from catalog_fallback.calling import Outlook
from catalog_fallback.redis_scripts import Precondition, Unmet


class Expected(NamedTuple):
    """What a look at the guards would find if nothing has changed since the last one.

    ``outlook`` is what follows from that; None where nothing can be expected, and whatever there is has to be read.
    ``asked_at``: since when (monotonic) the precondition is looked at.
    """

    precondition: Precondition
    outlook: Outlook | None
    asked_at: float


class Seen(NamedTuple):
    """What the guards held: as a precondition and decoded; ``isolated`` are the sources that were taken out."""

    precondition: Precondition
    found: Mapping[str, Any]
    isolated: frozenset[str]


class LastLook:
    """What the guards of one catalog held when they were looked at by a script. One object for all threads."""

    def __init__(self) -> None:
        self._seen: Seen | None = None

    def found(self, keys: tuple[str, ...]) -> Seen | None:
        """Return what these keys held; None where others were looked at."""
        seen = self._seen
        return seen if seen is not None and seen.precondition.keys == keys else None

    def remember(self, keys: tuple[str, ...], unmet: Unmet, isolated: frozenset[str]) -> None:
        """Keep what the keys hold; they have to be all that a look needs."""
        self._seen = Seen(Precondition(keys, unmet.values), unmet.found, isolated)
