"""Which catalog takes its time? One that is told in the ID: ``D50S200N1`` is answered with 200 after 50 ms.

``GET /items/<ID>`` is an answer, ``GET /calls/<ID>`` the number of calls for that item so far. Started as
``python -m benchmarks.slow_catalog``, it writes its port to standard output.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter

_ID = re.compile(r"D(?P<delay>\d+)S(?P<status>\d+)N\d+")
_calls: Counter[str] = Counter()


def item_id(delay_ms: int, status: int, number: int) -> str:
    """Return an ID that is answered with this status after so many milliseconds."""
    return f"D{delay_ms}S{status}N{number}"


async def answer(path: str) -> tuple[int, object]:
    """Return status and body for a path."""
    kind, _, asked = path.strip("/").partition("/")
    if kind == "calls":
        return 200, _calls[asked]
    _calls[asked] += 1
    found = _ID.fullmatch(asked)
    assert found is not None, path
    await asyncio.sleep(int(found["delay"]) / 1000)
    return int(found["status"]), {"item": {"id": asked, "name": "Blue ceramic mug 330 ml"}}


async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            status, body = await answer(head.split(b" ", 2)[1].decode())
            payload = json.dumps(body).encode()
            reply = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
            writer.write(reply.encode() + payload)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()


async def main() -> None:
    """Listen on a free port, say which, and serve."""
    server = await asyncio.start_server(converse, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
