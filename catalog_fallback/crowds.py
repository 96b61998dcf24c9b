"""How do many tasks of an event loop wait for one thing? Together: one timer and one wake-up for all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

#: How many go on in one turn of the loop at most: whatever else the loop serves has its turn in between.
AT_ONCE = 500


class Crowd(Generic[T]):
    """Tasks of one loop that wait for the same thing, each for so long at most; for use in the loop's own thread.

    Whoever's time is over goes on with ``otherwise``.
    """

    __slots__ = ("_loop", "_otherwise", "_timer", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, otherwise: T) -> None:
        self._loop = loop
        self._otherwise = otherwise
        #: Moment of the loop's clock → who waits until then, in the order of coming.
        self._waiting: list[tuple[float, asyncio.Future[T]]] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, seconds: float) -> asyncio.Future[T]:
        """Return what one task has to wait for; cancelling it disturbs nobody else."""
        future: asyncio.Future[T] = self._loop.create_future()
        until = self._loop.time() + seconds
        self._waiting.append((until, future))
        if self._timer is None or until < self._timer.when():
            self._set_timer(until)
        return future

    def let_go(self, answers: Sequence[T]) -> None:
        """Give everybody his answer, in the order of coming.

        The first goes on in this turn of the loop and more in each that follows, so that a thread which the first one
        starts need not wait for the interpreter until all others have gone on.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._deliver([(future, answer) for (_, future), answer in zip(self._waiting, answers, strict=True)], 1)
        self._waiting = []

    def let_all_go(self, answer: T) -> None:
        """Give everybody the same answer: a few hundred in this turn of the loop, and in each that follows."""
        if self._timer is not None:
            self._timer.cancel()
        self._deliver([(future, answer) for _, future in self._waiting], AT_ONCE)
        self._waiting = []

    def _deliver(self, pairs: Sequence[tuple[asyncio.Future[T], T]], count: int) -> None:
        for future, answer in pairs[:count]:
            _settle(future, answer)
        if len(pairs) > count:
            self._loop.call_soon(self._deliver, pairs[count:], min(4 * count, AT_ONCE))

    def _set_timer(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(moment, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        for until, future in self._waiting:
            if until <= now:
                _settle(future, self._otherwise)
        left = [until for until, future in self._waiting if not future.done()]
        if left:
            self._set_timer(min(left))


def _settle(future: asyncio.Future[T], answer: T) -> None:
    if not future.done():
        future.set_result(answer)


def wake(loop: asyncio.AbstractEventLoop, crowd: Crowd[None]) -> None:
    """From any thread: let everybody of a crowd go on, if the loop still runs."""
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(crowd.let_all_go, None)
