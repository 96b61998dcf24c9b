"""What does a script of the loopback server see and do? One request, one connection, and barriers."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

DRIP = 0.05  # seconds between two pieces of a drip
PIECE = 65_536


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came over the wire."""

    line: str
    headers: tuple[tuple[str, str], ...]

    @property
    def method(self) -> str:
        return self.line.split(" ")[0]

    @property
    def target(self) -> str:
        """Path and query, exactly as sent."""
        return self.line.split(" ")[1]

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        """The value of a header, all lines joined; None without it."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else None


class Barrier:
    """A point at which the server waits until the test lets it go on."""

    def __init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self._released = threading.Event()

    def wait_until_reached(self, times: int = 1, timeout: float = 10) -> None:
        """Block until the server has come here ``times`` more times."""
        for _ in range(times):
            assert self._arrived.acquire(timeout=timeout), "the server never reached the barrier"

    def release(self) -> None:
        """Let everybody pass, now and later."""
        self._released.set()

    def hold(self, wire: Wire) -> None:
        """The server's side: arrive, and wait for the release or the end of the server."""
        self._arrived.release()
        while not self._released.wait(0.02) and not wire.is_over:
            pass


class Over(Exception):
    """The connection has ended; the script need not go on."""


@dataclass
class Wire:
    """The server's end of one connection, as a script sees it."""

    connection: socket.socket
    stopping: threading.Event
    request: Received | None = None
    is_over: bool = field(default=False)

    def send(self, data: bytes) -> None:
        if self.stopping.is_set():
            self.is_over = True
        if self.is_over:
            raise Over
        try:
            self.connection.sendall(data)
        except OSError as error:
            raise Over from error

    def drip(self, pieces: Iterable[bytes], interval: float = DRIP) -> None:
        """Send one piece at a time until they, the client or the server end."""
        for piece in pieces:
            self.send(piece)
            self.stopping.wait(interval)

    def close(self) -> None:
        """End the connection in an orderly way (over TLS with a close_notify)."""
        self.is_over = True
        with contextlib.suppress(OSError, ValueError):
            if isinstance(self.connection, ssl.SSLSocket):
                self.connection.settimeout(1)
                self.connection = self.connection.unwrap()
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)

    def drop(self) -> None:
        """End the TCP connection; over TLS without a close_notify, as a crash does."""
        self.is_over = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        self.is_over = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def wait_until_over(self) -> None:
        """Keep the connection open and silent until the client or the server ends it."""
        self.connection.settimeout(0.05)
        while not self.stopping.is_set():
            try:
                if not self.connection.recv(PIECE):
                    return
            except TimeoutError:
                continue
            except OSError:
                return
