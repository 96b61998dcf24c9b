"""May this call be made now? All patterns around one source, or around any call, in the order of their cost.

First :meth:`Guard.look`, which takes nothing, at all guards with one read of the store; then, where a call is to be
made, :meth:`Guard.take`, whose permit has to be settled exactly once. While the shared store is in trouble the guard
works with one inside the process.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog_fallback.configuration import BreakerConfig, GuardConfig, RateLimitConfig, SourceConfig
from catalog_fallback.resilience.breaker_news import OnChange
from catalog_fallback.resilience.breaker_permit import LATE
from catalog_fallback.resilience.breaker_record import BreakerState, Record
from catalog_fallback.resilience.bulkhead import Bulkhead
from catalog_fallback.resilience.circuit_breaker import CircuitBreaker
from catalog_fallback.resilience.cool_down import CoolDown
from catalog_fallback.resilience.generations import FIRST
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.patterns import Patterns
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.resilience.rate_limiter import RateLimiter
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.store import Store
from catalog_fallback.resilience.stores import Stores
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.resilience.views import View, read

__all__ = ["Guard", "GuardStatus", "Stores"]


@dataclass(frozen=True, slots=True)
class GuardStatus:
    """What a guard does now, for people. Moments are seconds since the epoch.

    ``refusal`` is what a call would meet; ``cool_down`` is there also where something else refuses first.
    ``calls_left`` is what the rate limit has left in its window, None without one. ``probe_in``: seconds after which an
    open or half-open breaker may let a call through, 0 for at once, None for a closed one. ``in_use`` and
    ``late_results`` are of this process.
    """

    state: BreakerState
    reason: str
    since: float | None
    refusal: Refusal | None
    in_use: int
    late_results: int
    cool_down: Refusal | None = None
    calls_left: int | None = None
    probe_in: float | None = None


class Guard:
    """The patterns around one source. One object per source and process, used by all threads."""

    def __init__(
        self,
        names: Names,
        stores: Stores,
        *,
        breaker: BreakerConfig | None = None,
        rate_limit: RateLimitConfig | None = None,
        max_concurrent: int = 16,
        call_limit: float = LATE,
        on_change: OnChange | None = None,
    ) -> None:
        self.names = names
        self.stores = stores
        self.bulkhead = Bulkhead(max_concurrent, call_limit)

        def over(store: Store) -> Patterns:
            return Patterns(
                store,
                self.bulkhead,
                CoolDown(store, names),
                RateLimiter(rate_limit, store, names) if rate_limit else None,
                CircuitBreaker(breaker, store, names, call_limit=call_limit, on_change=on_change) if breaker else None,
            )

        self._shared, self._local = over(stores.shared), over(stores.local)

    @classmethod
    def of(
        cls,
        config: SourceConfig | GuardConfig,
        names: Names,
        stores: Stores,
        *,
        on_change: OnChange | None = None,
    ) -> Guard:
        """Return the guard that a configuration asks for."""
        return cls(
            names,
            stores,
            breaker=config.breaker,
            rate_limit=config.rate_limit,
            max_concurrent=config.max_concurrent,
            call_limit=config.timeout if isinstance(config, SourceConfig) else LATE,
            on_change=on_change,
        )

    def patterns(self, store: Store) -> Patterns:
        """Return the patterns whose state is in that store."""
        return self._local if store is self.stores.local else self._shared

    def look(self, view: View, *, is_isolated: bool = False) -> Refusal | None:
        """Return the refusal that a call would meet now; takes nothing, writes nothing."""
        return Refusal("isolated") if is_isolated else self.patterns(view.store).look(view.found)

    def take(
        self, view: View | None = None, *, deadline: Deadline | None = None, is_isolated: bool = False
    ) -> Permit | Refusal:
        """Return a permit for a call that starts at once, or why it must not be made.

        A ``view`` that is no longer fresh is read again.
        """
        answer: Permit | Refusal | None = _refused_anyway(deadline, is_isolated)
        if answer is not None:
            return answer
        if view is None or not view.is_fresh:
            view = self.stores.read((self,))
        answer = self._take(view, deadline)
        if answer is None:
            answer = self._take(read(self.stores.local, (self._local,)), deadline)
        return answer or Refusal("circuit_open")

    def _take(self, view: View, deadline: Deadline | None) -> Permit | Refusal | None:
        """Take from the patterns of one store; None when it cannot tell."""
        permit = Permit(self.patterns(view.store), self._local, self.stores)
        try:
            refusal = permit.fill(view.found) or _refused_anyway(deadline)
            if refusal is None:
                permit.start()
        finally:
            permit.unwind()
        if permit.is_unsure:
            return None
        return permit if refusal is None else refusal

    def status(self, view: View, *, is_isolated: bool = False) -> GuardStatus:
        """Return what the guard does now; takes nothing, writes nothing."""
        patterns = self.patterns(view.store)
        breaker, limiter = patterns.breaker, patterns.limiter
        record = breaker.record(view.found) if breaker else Record(FIRST)
        state = record.state
        if breaker and state is BreakerState.OPEN and not breaker.is_open(record, view.found):
            state = BreakerState.HALF_OPEN
        return GuardStatus(
            state=BreakerState.ISOLATED if is_isolated else state,
            reason=record.reason,
            since=record.since or None,
            refusal=self.look(view, is_isolated=is_isolated),
            in_use=self.bulkhead.in_use,
            late_results=breaker.late_results if breaker else 0,
            cool_down=patterns.cool_down.look(view.found),
            calls_left=limiter.left(view.found) if limiter else None,
            probe_in=_probe_in(breaker, state, view) if breaker else None,
        )

    def reset(self) -> bool:
        """Close the breaker and start counting anew, here and in all processes. False when the store cannot tell."""
        both = [each.breaker.reset() for each in (self._local, self._shared) if each.breaker is not None]
        return all(both)


def _probe_in(breaker: CircuitBreaker, state: BreakerState, view: View) -> float | None:
    if state is BreakerState.CLOSED:
        return None
    refusal = breaker.look(view.found)
    return 0.0 if refusal is None else refusal.retry_after


def _refused_anyway(deadline: Deadline | None, is_isolated: bool = False) -> Refusal | None:
    if is_isolated:
        return Refusal("isolated")
    return Refusal("deadline") if deadline is not None and deadline.has_passed else None
