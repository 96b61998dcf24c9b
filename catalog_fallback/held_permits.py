"""Who holds the permit of a guarded call? The call that runs, or the task that waits for it."""

from __future__ import annotations

import threading
from functools import partial
from types import TracebackType

from catalog_fallback.guards import Rules
from catalog_fallback.off_loop import Pool, in_thread, start, surely
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.time_budget import shared_deadline


class Held:
    """A permit while its call runs. As a context manager it reports how the call ended."""

    __slots__ = ("_permit", "_rules")

    def __init__(self, rules: Rules, permit: Permit) -> None:
        self._rules = rules
        self._permit = permit

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._rules.settle(self._permit, error)

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        settle = partial(self._rules.settle, self._permit, error)
        if error is None or isinstance(error, Exception):
            await surely(settle)
        else:  # cancelled, or closed: there may be nobody to wait any more
            start(settle)


class _Handover:
    """A permit on its way from the thread that took it to the task that waits; if the task has left, it goes back."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._lock = threading.Lock()
        self._has_left = False
        self._answer: Permit | Refusal | None = None

    def bring(self) -> None:
        """Called in the thread."""
        answer = self._rules.take()
        with self._lock:
            if not self._has_left:
                self._answer = answer
                return
        if isinstance(answer, Permit):
            answer.cancel()

    def receive(self) -> Permit | Refusal:
        """Called by the task; without an answer no thread was free in time."""
        with self._lock:
            answer, self._answer = self._answer, None
        return answer or Refusal("deadline")

    def leave(self) -> None:
        """Called by the task on its way out, whether it has received anything or not."""
        with self._lock:
            answer, self._answer, self._has_left = self._answer, None, True
        if isinstance(answer, Permit):
            start(answer.cancel)


async def taken(rules: Rules) -> Permit | Refusal:
    """Take a permit off the loop; whatever happens to the task, no permit is lost."""
    handover = _Handover(rules)
    try:
        await in_thread(handover.bring, shared_deadline(), Pool.READING)
        return handover.receive()
    finally:
        handover.leave()
