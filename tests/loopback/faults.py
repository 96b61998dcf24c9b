"""What can a server do wrong? Scripts of cut, dripping, endless, malformed and packed replies."""

from __future__ import annotations

import functools
import gzip
import struct
import zlib
from collections.abc import Iterable

from tests.loopback.replies import Framing, Script, chunks, head, raw, reply
from tests.loopback.wire import DRIP, PIECE, Wire


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
            wire.send(head(200, {"Content-Length": str(len(body))}) + part)
            wire.close()
        elif framing == "chunked":
            wire.send(head(200, {"Transfer-Encoding": "chunked"}) + chunks(part, len(part)))
            wire.close()
        else:
            wire.send(head(200, {"Connection": "close"}) + part)
            wire.drop()

    return script


def reset_in_body(wire: Wire) -> None:
    """A reset in the middle of a body without a length."""
    wire.send(head(200, {"Connection": "close"}) + b'{"item"')
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
        wire.send(head(200, heads[framing]))
        wire.drip(_forever(b"1\r\nx\r\n" if framing == "chunked" else b"x"))

    return script


def drip_trailers(wire: Wire) -> None:
    """A complete chunked body whose trailers never end."""
    wire.send(head(200, {"Transfer-Encoding": "chunked"}) + chunks(b'{"item": null}', 5) + b"0\r\n")
    wire.drip(_forever(b"X-Trailer: x\r\n"))


def flood_of_100_continue(wire: Wire) -> None:
    """Interim replies without end, as fast as the client takes them."""
    while True:
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def endless_body(framing: Framing = "close") -> Script:
    """A body without end, as fast as the client takes it."""

    def script(wire: Wire) -> None:
        wire.send(head(200, {"Transfer-Encoding": "chunked"} if framing == "chunked" else {}))
        piece = b"x" * PIECE
        while True:
            wire.send(b"%x\r\n%b\r\n" % (PIECE, piece) if framing == "chunked" else piece)

    return script


@functools.cache
def packed_zeros(size: int) -> bytes:
    """So many zeros (whole megabytes) as a gzip file: one megabyte is packed, and repeated (RFC 1951, RFC 1952)."""
    block, count = bytes(1 << 20), size >> 20
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)  # what comes next does not refer to it
    checksum = functools.reduce(lambda so_far, _: zlib.crc32(block, so_far), range(count), 0)
    trailer = struct.pack("<II", checksum, len(block) * count)
    return b"\x1f\x8b\x08" + bytes(7) + packed * count + packer.flush() + trailer


def gzip_bomb(size: int = 300 << 20) -> Script:
    """A few hundred kilobytes that unpack to ``size`` bytes."""
    return reply(200, packed_zeros(size), {"Content-Encoding": "gzip"})


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
