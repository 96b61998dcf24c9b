"""How does a test move the time? A clock that stands still until it is told to move."""

from __future__ import annotations

from types import TracebackType
from typing import Self
from unittest import mock

from catalog_fallback import clock


class FrozenClock:
    """Stands still until told to move, for everything in this app that asks for the time or waits.

    Inside ``with FrozenClock() as clock:`` lookups see this clock instead of the machine's. Waiting takes no time: it
    moves the clock and is noted in ``slept``. What others keep (the expiry of keys in the site's cache, time-outs of
    sockets and locks) stays with the machine's clock.
    """

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        """Start at ``now``, seconds since the epoch."""
        self._wall = float(now)
        self._monotonic = 1000.0
        #: The waits that were asked for, in seconds.
        self.slept: list[float] = []
        self._patches = (
            mock.patch.object(clock, "wall", self.wall),
            mock.patch.object(clock, "monotonic", self.monotonic),
            mock.patch.object(clock, "sleep", self.sleep),
        )

    def wall(self) -> float:
        """Return the seconds since the epoch."""
        return self._wall

    def monotonic(self) -> float:
        """Return the seconds that durations and deadlines are measured with."""
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        """Move the clock instead of waiting."""
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises ValueError for a negative number: durations never run backwards."""
        if seconds < 0:
            raise ValueError(f"Time passes forwards: {seconds!r}. step_wall() sets the wall clock back.")
        self._wall += seconds
        self._monotonic += seconds

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an administrator or NTP does; durations do not notice."""
        self._wall += seconds

    def __enter__(self) -> Self:
        """Stop the time."""
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give the machine's clock back."""
        for patch in reversed(self._patches):
            patch.stop()
