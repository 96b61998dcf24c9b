"""How much time is left? One deadline for a whole lookup, or for several that share it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta

from catalog_fallback import clock

#: Shortest budget in seconds; a smaller one is a mistake of the caller's.
MINIMUM = 0.001
#: Longest one; for ever, in practice.
LONGEST = 10_000_000_000.0

_shared: ContextVar[float | None] = ContextVar("catalog_fallback_deadline", default=None)


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock."""

    at: float

    def left(self) -> float:
        """Return the seconds that are left, 0.0 when it has passed."""
        return max(0.0, self.at - clock.monotonic())

    @property
    def has_passed(self) -> bool:
        """Nothing is left."""
        return clock.monotonic() >= self.at


def checked_budget(budget: object) -> float:
    """Return a budget in seconds.

    Raises ValueError when it is no finite number or timedelta of at least a millisecond.
    """
    seconds = budget.total_seconds() if isinstance(budget, timedelta) else budget
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise ValueError(f"budget={budget!r} has to be seconds (int, float) or a timedelta.")
    if not MINIMUM <= seconds <= LONGEST:
        raise ValueError(f"budget={budget!r:.40} has to be at least {MINIMUM} s, and at most {LONGEST:.0f} s.")
    return float(seconds)


def deadline(budget: float, started_at: float) -> Deadline:
    """Return when a lookup that began at ``started_at`` has to end: its own budget or the shared one, the earlier."""
    shared_at = _shared.get()
    own_at = started_at + budget
    return Deadline(own_at if shared_at is None else min(own_at, shared_at))


def is_used_up(now: float) -> bool:
    """Whether a shared budget is used up."""
    shared_at = _shared.get()
    return shared_at is not None and now >= shared_at


def shared_deadline() -> Deadline | None:
    """Return the deadline that is shared here; None outside of every ``time_budget``."""
    shared_at = _shared.get()
    return None if shared_at is None else Deadline(shared_at)


@contextmanager
def time_budget(seconds: float | timedelta) -> Iterator[Deadline]:
    """Let every lookup inside share one deadline, ``seconds`` from now; nested, the earlier one wins.

    Threads started with a copy of the context and asyncio tasks inherit it. Once it is used up a lookup returns
    ``unavailable``/``deadline``. Raises ValueError for a bad number.
    """
    inner = deadline(checked_budget(seconds), clock.monotonic())
    token = _shared.set(inner.at)
    try:
        yield inner
    finally:
        _shared.reset(token)
