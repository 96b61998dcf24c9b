"""How does a server answer well? Scripts of complete replies, in every framing."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from tests.loopback.wire import Barrier, Wire

Headers = Mapping[str, str] | Iterable[tuple[str, str]]
Script = Callable[[Wire], None]
Point = Literal["before the head", "in the body", "after the body"]
Framing = Literal["length", "chunked", "close"]


def head(status: int, headers: Headers, reason: str = "X") -> bytes:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    return f"HTTP/1.1 {status} {reason}\r\n{lines}\r\n".encode("latin-1")


def encoded(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def pairs_of(headers: Headers) -> list[tuple[str, str]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers)


def chunks(body: bytes, size: int) -> bytes:
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
    payload = encoded(body)
    pairs = pairs_of(headers)

    def script(wire: Wire) -> None:
        if framing == "length":
            wire.send(head(status, [*pairs, ("Content-Length", str(len(payload)))]) + payload)
        elif framing == "chunked":
            head_bytes = head(status, [*pairs, ("Transfer-Encoding", "chunked")])
            wire.send(head_bytes + chunks(payload, chunk_size) + b"0\r\n\r\n")
        else:
            wire.send(head(status, [*pairs, ("Connection", "close")]) + payload)
            wire.close()

    return script


def ok(body: Any, headers: Headers = (), framing: Framing = "length") -> Script:
    """200 with a JSON body."""
    return reply(200, body, [("Content-Type", "application/json"), *pairs_of(headers)], framing)


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
    payload = encoded(body)
    head_bytes = head(status, [*pairs_of(headers), ("Content-Length", str(len(payload)))])

    def script(wire: Wire) -> None:
        half = len(payload) // 2
        for point, piece in (("before the head", head_bytes + payload[:half]), ("in the body", payload[half:])):
            if at == point:
                barrier.hold(wire)
            wire.send(piece)
        if at == "after the body":
            barrier.hold(wire)

    return script


def compressed(body: Any, coding: str = "gzip", headers: Headers = ()) -> Script:
    """200 with a body in ``gzip`` or ``deflate``, or in several codings (``"gzip, gzip"``)."""
    payload = encoded(body)
    for one in coding.split(","):
        payload = zlib.compress(payload) if "deflate" in one else gzip.compress(payload)
    return reply(200, payload, [("Content-Encoding", coding), *pairs_of(headers)])
