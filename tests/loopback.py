"""What does a catalog do on the wire? A scripted HTTP server on the loopback interface, on raw sockets.

Say what the server does for a path, then look at what it received::

    with Loopback() as upstream:                       # Loopback(tls=True), Loopback(host="::1")
        upstream.on("/items/P001", ok({"item": {"id": "P001", "name": "Tea"}}))
        upstream.on("/items/P002", reply(503, headers={"Retry-After": "5"}), ok(…))   # first call, then all later ones
        upstream.otherwise(reply(404))                 # every other path; this is the default
        …                                              # SOURCES: {"URL": upstream.template}  (…/items/{id})
    upstream.calls("/items/P001"), upstream.calls(), upstream.requests[0].line, .header("User-Agent")

A test that needs "now the server has the request and has not answered" uses a :class:`Barrier`, never a sleep::

    barrier = Barrier()
    upstream.on("/items/P001", paused(barrier, at="before the head", body={"item": None}))
    …                                                  # start the call in a thread
    barrier.wait_until_reached()
    …                                                  # do what has to happen meanwhile
    barrier.release()

Scripts: ``ok``, ``reply``, ``compressed``, ``redirect``, ``raw``, ``paused``, ``silence``, ``close_before_head``,
``reset_before_head``, ``cut_head``, ``cut_body``, ``cut_gzip``, ``reset_in_body``, ``drip_head``, ``drip_body``,
``drip_trailers``, ``flood_of_100_continue``, ``endless_body``, ``gzip_bomb``, ``bad_gzip``, ``two_content_lengths``,
``bad_status_line``, ``huge_head``, ``many_headers``; and any callable that takes a :class:`Wire`.
``Loopback(tls=True, handshake=False)`` accepts connections and then never speaks TLS.

For https the client has to trust ``ca_file()``: the fixture ``trusted_ca`` does that for ``requests``.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import socket
import ssl
import struct
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import trustme

DRIP = 0.05  # seconds between two pieces of a drip
PIECE = 65_536

Headers = Mapping[str, str] | Iterable[tuple[str, str]]
Script = Callable[["Wire"], None]
Point = Literal["before the head", "in the body", "after the body"]
Framing = Literal["length", "chunked", "close"]


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


class _Over(Exception):
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
            raise _Over
        try:
            self.connection.sendall(data)
        except OSError as error:
            raise _Over from error

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


# --- scripts: complete replies -----------------------------------------------------------------------------------


def _head(status: int, headers: Headers, reason: str = "X") -> bytes:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    return f"HTTP/1.1 {status} {reason}\r\n{lines}\r\n".encode("latin-1")


def _body(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers)


def _chunks(body: bytes, size: int) -> bytes:
    parts = (body[at : at + size] for at in range(0, len(body), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def reply(
    status: int = 200,
    body: Any = b"",
    headers: Headers = (),
    framing: Framing = "length",
    chunk_size: int = 7,
) -> Script:
    """A complete reply; ``body`` is bytes or something for ``json.dumps``. ``headers`` may repeat a name (pairs)."""
    payload = _body(body)
    pairs = _pairs(headers)

    def script(wire: Wire) -> None:
        if framing == "length":
            wire.send(_head(status, [*pairs, ("Content-Length", str(len(payload)))]) + payload)
        elif framing == "chunked":
            head = _head(status, [*pairs, ("Transfer-Encoding", "chunked")])
            wire.send(head + _chunks(payload, chunk_size) + b"0\r\n\r\n")
        else:
            wire.send(_head(status, [*pairs, ("Connection", "close")]) + payload)
            wire.close()

    return script


def ok(body: Any, headers: Headers = (), framing: Framing = "length") -> Script:
    """200 with a JSON body."""
    return reply(200, body, [("Content-Type", "application/json"), *_pairs(headers)], framing)


def redirect(to: str, status: int = 302, body: bytes = b"") -> Script:
    """A redirect."""
    return reply(status, body, {"Location": to})


def raw(data: bytes, *, close: bool = True) -> Script:
    """Exactly these bytes, then the end of the connection (or silence)."""

    def script(wire: Wire) -> None:
        wire.send(data)
        if close:
            wire.close()
        else:
            wire.wait_until_over()

    return script


def paused(barrier: Barrier, *, at: Point, body: Any = b"{}", status: int = 200, headers: Headers = ()) -> Script:
    """A complete reply that waits at the barrier: ``"before the head"``, ``"in the body"`` or ``"after the body"``.

    After the body means: the client has everything, and the server has not said that the connection is free.
    """
    payload = _body(body)
    head = _head(status, [*_pairs(headers), ("Content-Length", str(len(payload)))])

    def script(wire: Wire) -> None:
        half = len(payload) // 2
        for point, piece in (("before the head", head + payload[:half]), ("in the body", payload[half:])):
            if at == point:
                barrier.hold(wire)
            wire.send(piece)
        if at == "after the body":
            barrier.hold(wire)

    return script


def compressed(body: Any, coding: str = "gzip", headers: Headers = ()) -> Script:
    """200 with a body in ``gzip`` or ``deflate``, or in several codings (``"gzip, gzip"``)."""
    payload = _body(body)
    for one in coding.split(","):
        payload = zlib.compress(payload) if "deflate" in one else gzip.compress(payload)
    return reply(200, payload, [("Content-Encoding", coding), *_pairs(headers)])


# --- scripts: what goes wrong ------------------------------------------------------------------------------------


def close_before_head(wire: Wire) -> None:
    """The connection ends where a reply should begin."""
    wire.close()


def reset_before_head(wire: Wire) -> None:
    """The connection is reset where a reply should begin."""
    wire.reset()


def silence(wire: Wire) -> None:
    """No reply at all, and the connection stays open."""
    wire.wait_until_over()


def cut_head(data: bytes = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n") -> Script:
    """A head that ends before its blank line."""
    return raw(data)


def cut_body(framing: Framing = "length", body: bytes = b'{"item": null}') -> Script:
    """A body of which half arrives. Close-delimited: an orderly end over TCP, one without close_notify over TLS."""
    part = body[: len(body) // 2]

    def script(wire: Wire) -> None:
        if framing == "length":
            wire.send(_head(200, {"Content-Length": str(len(body))}) + part)
            wire.close()
        elif framing == "chunked":
            wire.send(_head(200, {"Transfer-Encoding": "chunked"}) + _chunks(part, len(part)))
            wire.close()
        else:
            wire.send(_head(200, {"Connection": "close"}) + part)
            wire.drop()

    return script


def reset_in_body(wire: Wire) -> None:
    """A reset in the middle of a body without a length."""
    wire.send(_head(200, {"Connection": "close"}) + b'{"item"')
    wire.drip([b":"], DRIP)
    wire.reset()


def _forever(piece: bytes) -> Iterable[bytes]:
    while True:
        yield piece


def drip_head(wire: Wire) -> None:
    """A head that never ends, a byte at a time."""
    wire.send(b"HTTP/1.1 200 OK\r\nX-Drip: ")
    wire.drip(_forever(b"x"))


def drip_body(framing: Framing = "length") -> Script:
    """A body that never ends, a byte at a time."""
    heads = {"length": {"Content-Length": "100000"}, "chunked": {"Transfer-Encoding": "chunked"}, "close": {}}

    def script(wire: Wire) -> None:
        wire.send(_head(200, heads[framing]))
        wire.drip(_forever(b"1\r\nx\r\n" if framing == "chunked" else b"x"))

    return script


def drip_trailers(wire: Wire) -> None:
    """A complete chunked body whose trailers never end."""
    wire.send(_head(200, {"Transfer-Encoding": "chunked"}) + _chunks(b'{"item": null}', 5) + b"0\r\n")
    wire.drip(_forever(b"X-Trailer: x\r\n"))


def flood_of_100_continue(wire: Wire) -> None:
    """Interim replies without end, as fast as the client takes them."""
    while True:
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def endless_body(framing: Framing = "close") -> Script:
    """A body without end, as fast as the client takes it."""

    def script(wire: Wire) -> None:
        wire.send(_head(200, {"Transfer-Encoding": "chunked"} if framing == "chunked" else {}))
        piece = b"x" * PIECE
        while True:
            wire.send(b"%x\r\n%b\r\n" % (PIECE, piece) if framing == "chunked" else piece)

    return script


@functools.cache
def _zeros(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    block = bytes(1 << 20)
    return b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()


def gzip_bomb(size: int = 300 << 20) -> Script:
    """A few hundred kilobytes that unpack to ``size`` bytes."""
    return reply(200, _zeros(size), {"Content-Encoding": "gzip"})


def bad_gzip(wire: Wire) -> None:
    """A body that is not what its Content-Encoding says."""
    reply(200, b"this is no gzip", {"Content-Encoding": "gzip"})(wire)


def cut_gzip(wire: Wire) -> None:
    """A gzip body that ends early inside an intact HTTP frame."""
    reply(200, gzip.compress(b'{"item": null}' * 40)[:-8], {"Content-Encoding": "gzip"})(wire)


two_content_lengths = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\nContent-Length: 2\r\n\r\n" + b'{"item": null}')
bad_status_line = raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
huge_head = raw(b"HTTP/1.1 200 OK\r\nX-Huge: " + b"x" * 70_000 + b"\r\nContent-Length: 2\r\n\r\n{}")
many_headers = raw(b"HTTP/1.1 200 OK\r\n" + b"X-Many: x\r\n" * 150 + b"Content-Length: 2\r\n\r\n{}")


# --- certificates ------------------------------------------------------------------------------------------------


@functools.cache
def _authority() -> trustme.CA:
    return trustme.CA()


@functools.cache
def ca_file() -> str:
    """A PEM file with the certificate authority of every loopback server of this process."""
    with tempfile.NamedTemporaryFile(suffix=".pem", delete=False) as file:
        file.write(_authority().cert_pem.bytes())
    return str(Path(file.name))


@functools.cache
def _tls_context(names: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _authority().issue_cert(*names).configure_cert(context)
    return context


# --- the server --------------------------------------------------------------------------------------------------


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
        self._context = _tls_context(names) if tls else None
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
        with contextlib.suppress(_Over, OSError):
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
