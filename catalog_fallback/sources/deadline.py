"""How much time is left for this call? One limit, asked for anew by each socket operation."""

from __future__ import annotations

from urllib3 import Timeout

from catalog_fallback import clock


class Seconds(float):
    """Seconds for one operation that remember the deadline they come from.

    urllib3 hands a call's time limits to its connections as plain numbers; this is how the deadline gets there.
    """

    deadline: Deadline


class Deadline(Timeout):
    """The moment at which a call ends, whatever the server does; connecting may have an earlier one.

    It is a urllib3 ``Timeout`` whose values shrink while the call goes on. One object is good for one call.
    """

    def __init__(self, seconds: float, connect_seconds: float) -> None:
        super().__init__(connect=connect_seconds, read=seconds)
        now = clock.monotonic()
        self._ends_at = now + seconds
        self._connect_ends_at = now + min(seconds, connect_seconds)

    def clone(self) -> Deadline:
        """Return this very deadline: urllib3 clones what it is given, and a clone would begin anew."""
        return self

    @property
    def connect_timeout(self) -> Seconds:
        """What is left for connecting, 0 if nothing is."""
        return self._seconds(self._connect_ends_at)

    @property
    def read_timeout(self) -> Seconds:
        """What is left for the call, 0 if nothing is."""
        return self._seconds(self._ends_at)

    def left(self) -> float:
        """Return the seconds left for the call; TimeoutError if none are."""
        return _positive(self._ends_at - clock.monotonic())

    def left_to_connect(self) -> float:
        """Return the seconds left for resolving, connecting and the TLS handshake; TimeoutError if none are."""
        return _positive(self._connect_ends_at - clock.monotonic())

    def _seconds(self, ends_at: float) -> Seconds:
        seconds = Seconds(max(0.0, ends_at - clock.monotonic()))
        seconds.deadline = self
        return seconds


def _positive(seconds: float) -> float:
    if seconds <= 0:
        raise TimeoutError("the time limit of the call has passed")
    return seconds
