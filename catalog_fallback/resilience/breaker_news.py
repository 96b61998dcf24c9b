"""Who is told when a circuit breaker changes? The log and a listener, once, by the process that did it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from catalog_fallback import clock
from catalog_fallback.log_events import fields
from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.breaker_record import BreakerState, Record
from catalog_fallback.resilience.keys import Names

logger = logging.getLogger("catalog_fallback")

#: Called by the process that made a change, once: old state, new state, reason.
OnChange = Callable[[BreakerState, BreakerState, str], None]


class BreakerNews:
    """What one breaker has to tell. Nothing that a listener raises reaches the call that made the change."""

    def __init__(self, names: Names, on_change: OnChange | None) -> None:
        self._names = names
        self._on_change = on_change

    def has_changed(self, old: BreakerState, new: Record) -> None:
        """This process made a new record follow the old one."""
        if old is new.state:
            return
        level = logging.WARNING if new.state is BreakerState.OPEN else logging.INFO
        logger.log(
            level,
            "Circuit breaker %s: %s → %s (%s).",
            self._names,
            old,
            new.state,
            new.reason,
            extra=self._fields("breaker_changed", old, new.state, new.reason),
        )
        if self._on_change is None:
            return
        try:
            self._on_change(old, new.state, new.reason)
        except Exception:
            logger.exception("A listener of circuit breaker %s raised.", self._names)

    def is_lost(self, last: Record) -> None:
        """The store holds nothing any more; ``last`` is what this process saw there."""
        if last.state is BreakerState.CLOSED:
            return
        logger.warning(
            "Circuit breaker %s was %s; the store has lost it: closed.",
            self._names,
            last.state,
            extra=self._fields("breaker_lost", last.state, BreakerState.CLOSED, "lost_by_the_store"),
        )

    def is_late(self, permit: BreakerPermit) -> None:
        """A result came too late to count."""
        age = clock.monotonic() - permit.taken_at
        logger.info("Circuit breaker %s: late result dropped (%.1f s old).", self._names, age)

    def _fields(self, event: str, old: BreakerState, new: BreakerState, reason: str) -> dict[str, object]:
        return fields(event, **self._names.as_fields(), old=old, new=new, reason=reason)
