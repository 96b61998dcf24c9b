"""What did the lookups of one request do? A record for developers: the toolbar's panel, the Server-Timing header.

Nobody listens to the signals unless somebody records, so that a site without such an instrument pays nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, NamedTuple, Self

from catalog_fallback import clock
from catalog_fallback.results import Attempt, Lookup
from catalog_fallback.signals import lookup_finished, source_called


class Finished(NamedTuple):
    """A lookup that has its answer. Moments are seconds of the monotonic clock."""

    lookup: Lookup
    started_at: float
    ended_at: float


class Considered(NamedTuple):
    """A source that was called, or that a guard refused. Moments are seconds of the monotonic clock."""

    catalog: str
    attempt: Attempt
    started_at: float
    ended_at: float


class Recording:
    """The lookups and calls between :meth:`open` and :meth:`close`, of this context and of those that began in it.

    A request is one context; the threads and tasks that a lookup starts have copies of it. What goes on after the end
    (a refresh in the background) is not recorded.
    """

    def __init__(self) -> None:
        self.lookups: list[Finished] = []
        self.calls: list[Considered] = []
        self.is_open = False

    def open(self) -> None:
        """Begin; an open one stays as it is."""
        if not self.is_open:
            self.is_open = True
            _recordings.set((*_recordings.get(), self))
            _ears.open()

    def close(self) -> None:
        """End; a closed one stays as it is."""
        if self.is_open:
            self.is_open = False
            _recordings.set(tuple(each for each in _recordings.get() if each is not self))
            _ears.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def seconds_of(timed: Iterable[Finished | Considered]) -> float:
    """Return for how long at least one of them was under way: what overlaps counts once."""
    total, reached = 0.0, float("-inf")
    for started_at, ended_at in sorted((each.started_at, each.ended_at) for each in timed):
        total += max(0.0, ended_at - max(started_at, reached))
        reached = max(reached, ended_at)
    return total


class _Ears:
    """Connected to the signals while at least one recording of this process is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0

    def open(self) -> None:
        with self._lock:
            self._open += 1
            if self._open == 1:
                lookup_finished.connect(_note_lookup, dispatch_uid=__name__)
                source_called.connect(_note_call, dispatch_uid=__name__)

    def close(self) -> None:
        with self._lock:
            self._open -= 1
            if not self._open:
                lookup_finished.disconnect(dispatch_uid=__name__)
                source_called.disconnect(dispatch_uid=__name__)


_ears = _Ears()
#: The open recordings of this context: a panel and a header may record the same request.
_recordings: ContextVar[tuple[Recording, ...]] = ContextVar("catalog_fallback_recordings", default=())


def _note_lookup(sender: object, *, lookup: Lookup, elapsed: float, **_: Any) -> None:
    now = clock.monotonic()
    for recording in _recordings.get():
        if recording.is_open:
            recording.lookups.append(Finished(lookup, now - elapsed, now))


def _note_call(sender: object, *, catalog: str, attempt: Attempt, **_: Any) -> None:
    now = clock.monotonic()
    for recording in _recordings.get():
        if recording.is_open:
            recording.calls.append(Considered(catalog, attempt, now - attempt.elapsed_ms / 1000, now))
