"""How do many tasks of an event loop wait for one thing? Together: one timer and one wake-up for all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")

#: How many go on in one turn of the loop at most: whatever else the loop serves has its turn in between.
AT_ONCE = 500


class Crowd(Generic[T]):
    """Tasks of one loop that wait for the same thing, each for so long at most; for use in the loop's own thread.

    Whoever's time is over goes on with ``otherwise``.
    """

    __slots__ = ("_loop", "_timer", "_waiting", "otherwise")

    def __init__(self, loop: asyncio.AbstractEventLoop, otherwise: T) -> None:
        self._loop = loop
        self.otherwise = otherwise
        #: Moment of the loop's clock → who waits until then, in the order of coming.
        self._waiting: deque[tuple[float, asyncio.Future[T]]] = deque()
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

    def first(self) -> asyncio.Future[T] | None:
        """Take out the first one who still waits."""
        while self._waiting:
            _, future = self._waiting.popleft()
            if not future.done():
                return future
        return None

    def leave(self) -> list[asyncio.Future[T]]:
        """Take everybody out, in the order of coming."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        futures = [future for _, future in self._waiting]
        self._waiting.clear()
        return futures

    def let_all_go(self, answer: T) -> None:
        """Give everybody the same answer: a few hundred in this turn of the loop, and in each that follows."""
        in_turns(self._loop, [partial(settle, future, answer) for future in self.leave()], AT_ONCE)

    def _set_timer(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(moment, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        for until, future in self._waiting:
            if until <= now:
                settle(future, self.otherwise)
        left = [until for until, future in self._waiting if not future.done()]
        if left:
            self._set_timer(min(left))


def in_turns(loop: asyncio.AbstractEventLoop, steps: Sequence[Callable[[], object]], count: int = 1) -> None:
    """Take ``count`` of the steps in this turn of the loop, and more in each that follows.

    A thread that the first one starts need not wait for the interpreter until all others have gone on.
    """
    for step in steps[:count]:
        step()
    if len(steps) > count:
        loop.call_soon(in_turns, loop, steps[count:], min(4 * count, AT_ONCE))


def settle(future: asyncio.Future[T], answer: T) -> None:
    """Give somebody his answer, unless he has gone on without it."""
    if not future.done():
        future.set_result(answer)


def call_in(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> None:
    """From any thread: have the loop call the function, if it still runs."""
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(function, *arguments)
