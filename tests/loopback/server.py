"""Who runs the scripts? A server with a thread for each connection."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from typing import Self

from tests.loopback.certificates import tls_context
from tests.loopback.replies import Script, reply
from tests.loopback.wire import PIECE, Over, Received, Wire


class Loopback:
    """A server that does what its scripts say; a context manager. Its threads are named ``loopback…``."""

    def __init__(
        self,
        *,
        tls: bool = False,
        host: str = "127.0.0.1",
        handshake: bool = True,
        names: tuple[str, ...] = ("localhost", "127.0.0.1", "::1"),
    ) -> None:
        self.host = host
        self.requests: list[Received] = []
        self.connections = 0
        #: Sent to every new connection before anything is read (a server that speaks another protocol).
        self.greeting = b""
        self._context = tls_context(names) if tls else None
        self._handshake = handshake
        self._scripts: dict[str, list[Script]] = {}
        self._otherwise: Script = reply(404)
        self._counts: Counter[str] = Counter()
        self._open: set[socket.socket] = set()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.port = 0

    def __enter__(self) -> Self:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = socket.create_server((self.host, 0), family=family, backlog=1024)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), name="loopback-accept", daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        assert self._listener is not None
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()

    @property
    def origin(self) -> str:
        """Scheme, host and port, as a URL begins."""
        scheme = "https" if self._context else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"

    @property
    def template(self) -> str:
        """A URL for the setting URL."""
        return self.origin + "/items/{id}"

    def url(self, path: str) -> str:
        """The URL of a path."""
        return self.origin + path

    def on(self, path: str, *scripts: Script) -> None:
        """Say what happens for a path (without query, encoded): one script a call, the last for all later ones."""
        with self._lock:
            self._scripts[path] = list(scripts)

    def on_id(self, item_id: str, *scripts: Script) -> None:
        """The same for ``/items/<item_id>``."""
        self.on(f"/items/{item_id}", *scripts)

    def otherwise(self, script: Script) -> None:
        """Say what happens for every other path."""
        self._otherwise = script

    def calls(self, path: str | None = None) -> int:
        """Number of requests for a path, or for all."""
        with self._lock:
            return self._counts.total() if path is None else self._counts[path]

    def drop_connections(self) -> None:
        """Close every open connection, idle ones too."""
        with self._lock:
            still_open = list(self._open)
        for connection in still_open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                number = self.connections
            threading.Thread(target=self._serve, args=(connection,), name=f"loopback-{number}", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open.add(connection)
        wire = Wire(connection, self._stopping)
        with contextlib.suppress(Over, OSError):
            self._converse(wire)
        with self._lock:
            self._open.discard(connection)
            self._open.discard(wire.connection)
        for one in (wire.connection, connection):
            with contextlib.suppress(OSError):
                one.close()

    def _converse(self, wire: Wire) -> None:
        if self.greeting:
            wire.send(self.greeting)
        if self._context is not None:
            if not self._handshake:
                return wire.wait_until_over()
            wire.connection = self._context.wrap_socket(wire.connection, server_side=True)
            with self._lock:
                self._open.add(wire.connection)
        while not self._stopping.is_set() and not wire.is_over:
            received = self._receive(wire.connection)
            if received is None:
                return None
            wire.request = received
            self._next_script(received.path)(wire)
        return None

    def _receive(self, connection: socket.socket) -> Received | None:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(PIECE)
            if not piece:
                return None
            data += piece
        line, *headers = data.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        pairs = (header.partition(":") for header in headers)
        received = Received(line, tuple((name, value.strip()) for name, _, value in pairs))
        with self._lock:
            self.requests.append(received)
            self._counts[received.path] += 1
        return received

    def _next_script(self, path: str) -> Script:
        with self._lock:
            scripts = self._scripts.get(path)
            if not scripts:
                return self._otherwise
            return scripts.pop(0) if len(scripts) > 1 else scripts[0]
