"""How do tests make circuit breakers, and drive them?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from catalog_fallback.configuration import BreakerConfig
from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.breaker_record import BreakerState
from catalog_fallback.resilience.circuit_breaker import CircuitBreaker
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.views import read
from tests.resilience.worlds import FaultyStore

NAMES = Names("default", "primary")
#: Three failures in a row, no rate.
IN_A_ROW = BreakerConfig(consecutive_failures=3, failure_rate=None)
#: Half of at least four calls.
BY_RATE = BreakerConfig(consecutive_failures=None, failure_rate=0.5, minimum_calls=4)
CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


class Process:
    """One process's breaker over the shared store, and what its listener was told."""

    def __init__(
        self, store: FaultyStore, config: BreakerConfig = IN_A_ROW, *, call_limit: float = 2.0, **changes: Any
    ) -> None:
        self.store = store
        self.told: list[tuple[str, str, str]] = []
        self.breaker = CircuitBreaker(
            replace(config, **changes), store, NAMES, call_limit=call_limit, on_change=self.on_change
        )

    def on_change(self, old: BreakerState, new: BreakerState, reason: str) -> None:
        """Remember what the listener was told."""
        self.told.append((str(old), str(new), reason))

    def found(self) -> Any:
        """What one look brings."""
        return read(self.store, (self.breaker,)).found

    def look(self) -> Refusal | None:
        """Look, and take nothing."""
        return self.breaker.look(self.found())

    def take(self) -> BreakerPermit | Refusal | None:
        """Look and take."""
        return self.breaker.take(self.found())

    def permit(self) -> BreakerPermit:
        """Take what must be there to take."""
        permit = self.take()
        assert isinstance(permit, BreakerPermit), permit
        return permit

    def calls(self, results: str) -> None:
        """Make one call after the other: F fails, S succeeds, N proves nothing."""
        for result in results:
            self.end(self.permit(), result)

    def end(self, permit: BreakerPermit, result: str) -> None:
        """End one call."""
        match result:
            case "F":
                self.breaker.fail(permit)
            case "S":
                self.breaker.succeed(permit)
            case _:
                self.breaker.cancel(permit)

    @property
    def state(self) -> BreakerState:
        """Where it stands, the time of an open one being over counted as half-open."""
        found = self.found()
        record = self.breaker.record(found)
        is_over = record.state is OPEN and not self.breaker.is_open(record, found)
        return HALF_OPEN if is_over else record.state

    @property
    def generation(self) -> str:
        """The generation of now."""
        return self.breaker.record(self.found()).generation
