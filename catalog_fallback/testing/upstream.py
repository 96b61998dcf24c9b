"""How does an upstream misbehave? A server on the loopback interface, on raw sockets, that answers as a script says."""

from __future__ import annotations

import contextlib
import gzip
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

#: What the server does with one connection, after it has read the request, until the event says that it closes.
Script = Callable[[socket.socket, threading.Event], None]

_PAUSE = 0.05
_MAX_HEAD = 65_536


class Upstream:
    """Listens on a free port of 127.0.0.1; the n-th connection gets the n-th script, later ones the last."""

    def __init__(self, *scripts: Script) -> None:
        """Take one script or more."""
        self._scripts = scripts
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        #: How many connections have sent a request.
        self.calls = 0

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all connections."""
        self._closing.set()
        with contextlib.suppress(OSError):
            socket.create_connection(self._listener.getsockname()).close()  # wakes the listener up
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            connection, _ = self._listener.accept()
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(5)
            head = b""
            while b"\r\n\r\n" not in head and len(head) < _MAX_HEAD:
                piece = connection.recv(_MAX_HEAD)
                if not piece:
                    return
                head += piece
            self.calls += 1
            self._scripts[min(self.calls, len(self._scripts)) - 1](connection, self._closing)


def reply(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Script:
    """A complete reply."""
    return raw(head(status, {"Content-Length": str(len(body)), **(headers or {})}) + body)


def cut(body: bytes) -> Script:
    """A 200 of which only half of the body arrives."""
    return raw(head(200, {"Content-Length": str(len(body))}) + body[: len(body) // 2])


def bomb(size: int) -> Script:
    """A 200 whose body is small on the wire, and so many blanks when it is unpacked."""
    packed = gzip.compress(b" " * size)
    return reply(200, packed, {"Content-Encoding": "gzip", "Content-Type": "application/json"})


def raw(data: bytes) -> Script:
    """Exactly these bytes, then the end of the connection."""

    def script(connection: socket.socket, closing: threading.Event) -> None:
        connection.sendall(data)

    return script


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """The head of a reply."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**headers, "Connection": "close"}.items())
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode("latin-1")


def drip(connection: socket.socket, closing: threading.Event) -> None:
    """A good head, and then a byte from time to time, for ever."""
    connection.sendall(head(200, {"Content-Length": "100000", "Content-Type": "application/json"}))
    while not closing.wait(_PAUSE):
        connection.sendall(b" ")


def stall(connection: socket.socket, closing: threading.Event) -> None:
    """No answer at all, on an open connection."""
    closing.wait()


def reset(connection: socket.socket, closing: threading.Event) -> None:
    """A TCP reset instead of an answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
