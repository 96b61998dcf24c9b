"""Which of a host's addresses answers? They are tried one after the other, without giving up on the earlier ones.

Waiting for each address in turn would multiply the limit by their number; here all of them share one limit, and a dead
address delays the next one by a fraction of a second (as in RFC 8305, "Happy Eyeballs").
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from catalog_fallback.sources.resolver import Address

#: Seconds after which the next address is tried beside the earlier ones.
STAGGER = 0.1
_STARTED = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR})
Options = Iterable[tuple[int, int, Any]]


def connect(addresses: Sequence[Address], left: Callable[[], float], options: Options = ()) -> socket.socket:
    """Return a connected socket. ``left`` tells how many seconds are left, or raises TimeoutError.

    Raises TimeoutError when the time is over, OSError (the last one) when no address can be reached.
    """
    with _Race(list(addresses), tuple(options)) as race:
        while (winner := race.advance(left())) is None:
            pass
    winner.settimeout(left())
    return winner


class _Race:
    """Connections that are being opened; those that do not win are closed at the end."""

    def __init__(self, waiting: list[Address], options: tuple[tuple[int, int, Any], ...]) -> None:
        self._waiting = waiting[::-1]
        self._options = options
        self._selector = selectors.DefaultSelector()
        self._error: OSError = OSError("the host has no address")

    def __enter__(self) -> _Race:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for key in list(self._selector.get_map().values()):
            _socket_of(key).close()
        self._selector.close()

    def advance(self, left: float) -> socket.socket | None:
        """Start the next address, or wait for those that are on their way; the first that is there wins."""
        if self._waiting:
            self._start(self._waiting.pop())
        elif not self._selector.get_map():
            raise self._error
        if not self._selector.get_map():
            return None
        return self._wait(min(left, STAGGER) if self._waiting else left)

    def _start(self, address: Address) -> None:
        family, target = address
        try:
            attempt = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            self._error = error
            return
        try:
            for option in self._options:
                attempt.setsockopt(*option)
            attempt.setblocking(False)
            code = attempt.connect_ex(target)
        except OSError as error:
            self._error = error
            attempt.close()
            return
        if code in _STARTED:
            self._selector.register(attempt, selectors.EVENT_WRITE)
        else:
            self._lost(attempt, code)

    def _wait(self, seconds: float) -> socket.socket | None:
        for key, _ in self._selector.select(seconds):
            attempt = _socket_of(key)
            self._selector.unregister(attempt)
            code = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code == 0:
                return attempt
            self._lost(attempt, code)
        return None

    def _lost(self, attempt: socket.socket, code: int) -> None:
        self._error = OSError(code, os.strerror(code))
        attempt.close()


def _socket_of(key: selectors.SelectorKey) -> socket.socket:
    assert isinstance(key.fileobj, socket.socket)
    return key.fileobj
