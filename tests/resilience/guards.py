"""How do tests make guards, and drive them?"""

from __future__ import annotations

from typing import Any, TypeVar

from catalog_fallback import classify
from catalog_fallback.configuration import BreakerConfig, RateLimitConfig
from catalog_fallback.resilience.breaker_record import BreakerState
from catalog_fallback.resilience.guard import Guard, Stores
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.resilience.rate_limiter import RatePermit
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.results import Outcome, Verdict

T = TypeVar("T")

BREAKER = BreakerConfig(consecutive_failures=2, failure_rate=None)
GOOD, BAD = classify.verdict("ok"), classify.verdict("timeout")


def guard(stores: Stores, alias: str = "primary", **changes: Any) -> Guard:
    """A guard with all patterns."""
    options = {"breaker": BREAKER, "rate_limit": RateLimitConfig(100, 60), "max_concurrent": 8, "call_limit": 2.0}
    return Guard(Names("default", alias), stores, **{**options, **changes})


def permit_of(guarded: Guard) -> Permit:
    """A permit that must be there."""
    permit = guarded.take()
    assert isinstance(permit, Permit), permit
    return permit


def settle(guarded: Guard, *verdicts: Verdict) -> None:
    """One call after the other."""
    for verdict in verdicts:
        permit_of(guarded).settle(verdict)


def look(guarded: Guard, **options: bool) -> Refusal | None:
    """Read and look."""
    return guarded.look(guarded.stores.read((guarded,)), **options)


def state(guarded: Guard) -> BreakerState:
    """What the guard shows."""
    return guarded.status(guarded.stores.read((guarded,))).state


def exhaust(guarded: Guard, what: str) -> None:
    """Make one pattern refuse."""
    patterns = guarded.patterns(guarded.stores.shared)
    match what:
        case "cooling_down":
            patterns.cool_down.start(60, Outcome.STOP)
        case "bulkhead_full":
            while guarded.bulkhead.look() is None:
                guarded.bulkhead.take()
        case "rate_limited":
            while isinstance(made(patterns.limiter).take(), RatePermit):
                pass
        case "circuit_open":
            settle(guarded, BAD, BAD)


def made(pattern: T | None) -> T:
    """A pattern that the guard must have."""
    assert pattern is not None
    return pattern


def read_limiter(guarded: Guard) -> Any:
    """What the shared store has counted."""
    return guarded.stores.shared.get_many(made(guarded.patterns(guarded.stores.shared).limiter).keys())
