"""Which catalog never comes to an end? One that does what the first part of the path says, a byte at a time.

``GET /head-drip/P001`` and its like end after ``LONGEST`` seconds; over TLS nothing is ever said. Started as
``python -m benchmarks.dripping_catalog``, it writes its port to standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools

#: Seconds between two pieces, and seconds after which the server gives up: it is what a call without a limit waits for.
PAUSE, LONGEST = 0.02, 3.0
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#: First part of the path → what is said at once, and what again and again.
DRIPS = {
    "head-drip": (b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x"),
    "body-drip": (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
    "trailers": (_CHUNKED + b"e\r\n" + b'{"item": null}' + b"\r\n0\r\n", b"X-Trailer: x\r\n"),
    "100-continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}
#: What comes as fast as the client takes it, so many at once.
FLOODS = {"100-continue": 100}
#: A TLS handshake begins with this byte.
_TLS = b"\x16"


async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request, for as long as the client listens."""
    try:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            async with asyncio.timeout(LONGEST):
                await _never_end(reader, writer)
    finally:
        writer.close()


async def _never_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    first = await reader.readexactly(1)
    if first == _TLS:
        await reader.read()
        return
    request = first + await reader.readuntil(b"\r\n\r\n")
    scene = request.split(b" ", 2)[1].decode().split("/")[1]
    head, piece = DRIPS[scene]
    many = FLOODS.get(scene, 1)
    writer.write(head)
    for _ in itertools.count():
        writer.write(piece * many)
        await writer.drain()
        await asyncio.sleep(PAUSE if many == 1 else 0)


async def main() -> None:
    """Listen on a free port, say which, and serve."""
    server = await asyncio.start_server(converse, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
