"""Which patterns stand around one call, and in which order? Those of one guard over one store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog_fallback.resilience.bulkhead import Bulkhead
from catalog_fallback.resilience.circuit_breaker import CircuitBreaker
from catalog_fallback.resilience.cool_down import CoolDown
from catalog_fallback.resilience.rate_limiter import RateLimiter
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.store import Store


@dataclass(frozen=True, slots=True)
class Patterns:
    """Cool-down, bulkhead, rate limit, breaker: asked in this order, the scarcest permit last."""

    store: Store
    bulkhead: Bulkhead
    cool_down: CoolDown
    limiter: RateLimiter | None
    breaker: CircuitBreaker | None

    def keys(self) -> tuple[str, ...]:
        """Return the keys that a look needs, if nothing has changed since the last one."""
        return (
            *self.cool_down.keys(),
            *(self.limiter.keys() if self.limiter else ()),
            *(self.breaker.keys() if self.breaker else ()),
        )

    def more_keys(self, found: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the keys that it needs as well, where something has changed."""
        more = self.cool_down.more_keys(found)
        return (*more, *self.breaker.more_keys(found)) if self.breaker else more

    def remember(self, found: Mapping[str, Any]) -> None:
        """Keep where the state was last seen."""
        self.cool_down.remember(found)
        if self.breaker:
            self.breaker.remember(found)

    def look(self, found: Mapping[str, Any]) -> Refusal | None:
        """Return the refusal that a call would meet now; takes nothing."""
        return (
            self.cool_down.look(found)
            or self.bulkhead.look()
            or (self.limiter.look(found) if self.limiter else None)
            or (self.breaker.look(found) if self.breaker else None)
        )
