"""Why was a call not made? A value, and the exception that says the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from catalog_fallback import classify
from catalog_fallback.exceptions import (
    BudgetExhausted,
    BulkheadFull,
    CallRejected,
    CircuitOpen,
    CoolingDown,
    RateLimited,
)
from catalog_fallback.results import Outcome, Verdict

_ERRORS: Mapping[str, tuple[type[CallRejected], str]] = MappingProxyType(
    {
        "bulkhead_full": (BulkheadFull, "as many calls as MAX_CONCURRENT allows are running"),
        "circuit_open": (CircuitOpen, "its circuit breaker is open"),
        "cooling_down": (CoolingDown, "it asked to be left alone"),
        "deadline": (BudgetExhausted, "the time budget is used up"),
        "isolated": (CircuitOpen, "an operator isolated it"),
        "rate_limited": (RateLimited, "its rate limit is used up"),
    }
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A guard's no. ``retry_after``: seconds after which it could be a yes, where that is known.

    ``kind`` is set where the reason alone does not tell the outcome: a cool-down keeps the kind of what began it.
    """

    reason: str
    retry_after: float | None = None
    kind: Outcome | None = None

    @property
    def verdict(self) -> Verdict:
        """What the refusal means for the search."""
        return Verdict(self.kind or classify.of_reason(self.reason), self.reason, retry_after=self.retry_after)

    def error(self, name: object, catalog: str = "") -> CallRejected:
        """Return a new exception that says the same; one that is kept would grow with each ``raise``."""
        kind, why = _ERRORS[self.reason]
        return kind(f"{name} was not called: {why}.", retry_after=self.retry_after, catalog=catalog)
