"""What does Ctrl-C do to a long command? The first one lets it finish what it is in, the second one ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interruption:
    """``with Interruption() as interruption:`` takes SIGINT over; ``is_asked()`` says whether it has come."""

    def __init__(self) -> None:
        self._is_asked = False
        self._is_waiting = False
        self._before: Any = None

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def is_asked(self) -> bool:
        """Whether to end."""
        return self._is_asked

    @contextmanager
    def while_waiting(self) -> Iterator[None]:
        """Within it nothing is under way that would have to be finished: SIGINT is a KeyboardInterrupt at once."""
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False

    def _take(self, signum: int, frame: FrameType | None) -> None:
        is_second, self._is_asked = self._is_asked, True
        if is_second or self._is_waiting:
            raise KeyboardInterrupt
