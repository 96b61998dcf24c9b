"""What does one link of a circuit breaker's chain say?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from catalog_fallback.resilience.generations import Link


class BreakerState(StrEnum):
    """Where a circuit breaker stands. ``isolated`` is an operator's decision, kept elsewhere."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    ISOLATED = "isolated"


@dataclass(frozen=True, slots=True)
class Record:
    """One generation: its state, since when (seconds since the epoch), for how long it opens or opened, and why."""

    generation: str
    state: BreakerState = BreakerState.CLOSED
    since: float = 0.0
    open_for: float = 0.0
    reason: str = ""

    def as_link(self) -> Link:
        """The record as plain JSON types."""
        return {
            "g": self.generation,
            "state": str(self.state),
            "since": self.since,
            "open_for": self.open_for,
            "reason": self.reason,
        }


#: Seconds since the epoch at which what a calendar can show ends.
_YEAR_10000 = 253_402_300_800
_LONGEST_REASON = 64
_STATES = {str(state): state for state in BreakerState if state is not BreakerState.ISOLATED}


def record_of(link: Link) -> Record:
    """Return the record of a link; what it does not say, or says in another form, is as in a closed breaker's."""
    if len(link) == 1:
        return Record(link["g"])
    return Record(
        generation=link["g"],
        state=_STATES.get(str(link.get("state")), BreakerState.CLOSED),
        since=_seconds(link.get("since")),
        open_for=_seconds(link.get("open_for")),
        reason=_reason(link.get("reason")),
    )


def _seconds(value: Any) -> float:
    """A moment or a duration that people and ``datetime`` can read; anything else is none."""
    return float(value) if isinstance(value, (int, float)) and 0 <= value < _YEAR_10000 else 0.0


def _reason(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= _LONGEST_REASON and value.isidentifier() else ""
