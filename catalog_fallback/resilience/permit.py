"""What does a call hold while it runs? What it took from each pattern, given back exactly once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from catalog_fallback import clock
from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.bulkhead import Seat
from catalog_fallback.resilience.cool_down import UNNAMED
from catalog_fallback.resilience.patterns import Patterns
from catalog_fallback.resilience.rate_limiter import RatePermit
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.stores import Stores
from catalog_fallback.resilience.weighing import Weight, weigh
from catalog_fallback.results import Outcome, Verdict


class Permit:
    """The right to make one call, now. The first of ``settle``, ``succeed``, ``fail`` and ``cancel`` counts.

    As a context manager it cancels itself on the way out, however the way out was taken, unless it was settled.
    """

    __slots__ = ("_breaker", "_has_started", "_local", "_once", "_patterns", "_rate", "_seat", "_stores", "is_unsure")

    def __init__(self, patterns: Patterns, local: Patterns, stores: Stores) -> None:
        self._patterns = patterns
        self._local = local
        self._stores = stores
        #: Taken by whoever ends the permit, and never given back.
        self._once = threading.Lock()
        self._seat: Seat | None = None
        self._rate: RatePermit | None = None
        self._breaker: BreakerPermit | None = None
        self._has_started = False
        #: The store could not tell: the decision has to be made with another one.
        self.is_unsure = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cancel()

    def settle(self, verdict: Verdict, *, timed_out: bool = False) -> None:
        """The call ended with this verdict. ``timed_out``: it ran into its own limit."""
        if self._end(weigh(verdict, timed_out=timed_out)):
            self._begin_cool_down(verdict)

    def succeed(self) -> None:
        """The call ended well, or proved that the other side works."""
        self._end(Weight.SUCCESS)

    def fail(self) -> None:
        """The call failed in a way that counts."""
        self._end(Weight.FAILURE)

    def cancel(self) -> None:
        """The call ended in a way that proves nothing. The rate limit keeps counting it: it may have started."""
        self._end(Weight.NEUTRAL)

    # ------------------------------------------------------------------------------------------ for the guard

    def fill(self, found: Mapping[str, Any]) -> Refusal | None:
        """Take what the call needs of each pattern, the scarcest last."""
        return (
            self._patterns.look(found)
            or self._take_seat()
            or self._take_rate()
            or self._take_breaker(found)
            or self._if_late()
        )

    def start(self) -> None:
        """The call is about to be made."""
        self._has_started = True
        if self._rate is not None and self._local is not self._patterns and self._local.limiter is not None:
            # Should the shared store fail, this process still knows what it has used up itself.
            self._local.limiter.note()

    def unwind(self) -> None:
        """Give everything back, unless the call was started."""
        if self._has_started:
            return
        if self._rate is not None and self._patterns.limiter is not None:
            self._patterns.limiter.give_back(self._rate)
        self._end(Weight.NEUTRAL)

    # ------------------------------------------------------------------------------------------ within

    def _take_seat(self) -> Refusal | None:
        taken = self._patterns.bulkhead.take()
        if isinstance(taken, Refusal):
            return taken
        self._seat = taken
        return None

    def _take_rate(self) -> Refusal | None:
        if self._patterns.limiter is None:
            return None
        taken = self._patterns.limiter.take()
        if isinstance(taken, RatePermit):
            self._rate = taken
            self._heard(has_answered=True)
            return None
        return taken or self._no_answer("rate_limited")

    def _take_breaker(self, found: Mapping[str, Any]) -> Refusal | None:
        if self._patterns.breaker is None:
            return None
        taken = self._patterns.breaker.take(found)
        if isinstance(taken, BreakerPermit):
            self._breaker = taken
            return None
        return taken or self._no_answer("circuit_open")

    def _no_answer(self, reason: str) -> Refusal:
        self.is_unsure = True
        self._heard(has_answered=False)
        return Refusal(reason)

    def _heard(self, *, has_answered: bool) -> None:
        if self._patterns is not self._local:
            self._stores.heard(has_answered=has_answered)

    def _if_late(self) -> Refusal | None:
        """Taking the rest took longer than a call may start after it was counted."""
        is_late = self._rate is not None and clock.monotonic() > self._rate.start_by
        return Refusal("rate_limited") if is_late else None

    def _end(self, weight: Weight) -> bool:
        """Give back and report. False when that was done before."""
        if not self._once.acquire(blocking=False):
            return False
        if self._seat is not None:
            self._patterns.bulkhead.release(self._seat)
        if self._breaker is not None and self._patterns.breaker is not None:
            self._report(self._breaker, weight)
        return True

    def _report(self, permit: BreakerPermit, weight: Weight) -> None:
        breaker, local = self._patterns.breaker, self._local.breaker
        assert breaker is not None
        assert local is not None
        if weight is Weight.SUCCESS:
            breaker.succeed(permit)
        elif weight is Weight.NEUTRAL:
            breaker.cancel(permit)
        else:
            was_taken = breaker.fail(permit)
            self._heard(has_answered=was_taken)
            if not was_taken and local is not breaker:
                local.fail(local.permit_now())

    def _begin_cool_down(self, verdict: Verdict) -> None:
        seconds = verdict.retry_after
        if seconds is None and verdict.reason == "http_429":
            seconds = UNNAMED
        if seconds is None or verdict.reason not in {"http_429", "http_503"}:
            return
        kind = Outcome.TEMPORARY if verdict.outcome is Outcome.TEMPORARY else Outcome.STOP
        for patterns in {id(each): each for each in (self._patterns, self._local)}.values():
            patterns.cool_down.start(seconds, kind, verdict.reason if patterns is self._patterns else "")
