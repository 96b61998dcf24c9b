"""What does a call carry that a circuit breaker let through?"""

from __future__ import annotations

from dataclasses import dataclass

from catalog_fallback import clock
from catalog_fallback.resilience.probe_slots import Slot

#: Seconds after which a result says nothing any more.
LATE = 60.0


@dataclass(frozen=True, slots=True)
class BreakerPermit:
    """One call that was let through, under one generation; ``slot`` is set for a probe."""

    generation: str
    taken_at: float
    slot: Slot | None = None
    has_run: bool = False

    @property
    def is_late(self) -> bool:
        """Its result says nothing any more, or somebody else may be probing by now."""
        too_old = clock.monotonic() - self.taken_at > LATE
        return too_old or (self.slot is not None and self.slot.has_expired)
