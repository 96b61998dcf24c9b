"""How far is it, how fast, and how long will it take? One line that renews itself, or plain lines in a log."""

from __future__ import annotations

from typing import Protocol

from catalog_fallback import clock

#: Seconds between two lines: on a terminal, and elsewhere.
ON_TERMINAL, ELSEWHERE = 0.2, 30.0
_CLEAR = "\r\x1b[K"


class Stream(Protocol):
    """Where it is shown: Django's wrapper around standard error."""

    def isatty(self) -> bool:
        """Whether people look at it while it is written."""

    def write(self, msg: str, style_func: None = None, ending: str | None = None) -> None:
        """Write with another end than that of a line."""

    def flush(self) -> None:
        """Let it be seen."""


class Progress:
    """Counts to show, now and then; ``total`` is None where nobody knows."""

    def __init__(self, stream: Stream, total: int | None, done: int = 0) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._every = ON_TERMINAL if self._is_terminal else ELSEWHERE
        self._total = total
        self._done_before = done
        self._began_at = self._shown_at = clock.monotonic()

    def show(self, done: int, details: str) -> None:
        """Show where it is, unless that has just been shown."""
        now = clock.monotonic()
        if now - self._shown_at < self._every:
            return
        self._shown_at = now
        line = f"{self._position(done, now - self._began_at)}; {details}"
        self._stream.write(f"{_CLEAR}{line}" if self._is_terminal else line, ending="" if self._is_terminal else "\n")
        self._stream.flush()

    def end(self) -> None:
        """Take the line away that renews itself: other lines follow."""
        if self._is_terminal:
            self._stream.write(_CLEAR, ending="")

    def _position(self, done: int, elapsed: float) -> str:
        rate = (done - self._done_before) / elapsed if elapsed > 0 else 0.0
        if self._total is None:
            return f"{done:,} lines, {rate:,.1f} a second"
        left = max(0, self._total - done)
        eta = f", {duration(left / rate)} left" if rate else ""
        return f"{done:,} of {self._total:,} lines, {rate:,.1f} a second{eta}"


def duration(seconds: float) -> str:
    """Return a length of time as people say it, in its two largest units."""
    whole = round(seconds)
    for unit, size, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"
