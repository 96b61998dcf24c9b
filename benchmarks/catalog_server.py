"""Which catalog is asked? A small one on the loopback interface, in a process of its own, with keep-alive.

It knows every ID: ``GET /items/P001`` is answered with an item of about 300 bytes, in one ``recv`` and one ``send``.
Started as ``python -m benchmarks.catalog_server``, it writes its port to standard output.
"""

from __future__ import annotations

import json
import selectors
import socket
from email.utils import formatdate

#: Beside ID and name, what an item consists of.
FIELDS = {
    "name": "Blue ceramic mug 330 ml",
    "brand": "Acme",
    "price": "12.90",
    "currency": "EUR",
    "stock": 41,
    "tags": ["kitchen", "mug"],
    "description": "A mug for tea or coffee, glazed by hand, for the dishwasher and, when empty, the oven.",
}


def reply(item_id: str) -> bytes:
    """Return the whole HTTP reply for one item."""
    body = json.dumps({"item": {"id": item_id, **FIELDS}}).encode()
    head = (
        f"HTTP/1.1 200 OK\r\nDate: {formatdate(usegmt=True)}\r\nContent-Type: application/json\r\n"
        f"Cache-Control: max-age=86400\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def item_id_in(request: bytes) -> str:
    """Return the last part of the path that was asked for."""
    path = request.split(b" ", 2)[1]
    return path.rsplit(b"/", 1)[-1].partition(b"?")[0].decode()


def serve(listener: socket.socket) -> None:
    """Answer for ever; a request comes in one piece, because only the benchmarks call."""
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            assert isinstance(key.fileobj, socket.socket)
            if key.fileobj is listener:
                connection, _address = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ)
            elif not _answer(key.fileobj):
                selector.unregister(key.fileobj)
                key.fileobj.close()


def _answer(connection: socket.socket) -> bool:
    """Answer one request; return whether the connection goes on."""
    try:
        request = connection.recv(65_536)
        if request:
            connection.sendall(reply(item_id_in(request)))
    except OSError:
        return False
    return bool(request)


def main() -> None:
    """Listen on a free port, say which, and serve."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        print(listener.getsockname()[1], flush=True)
        serve(listener)


if __name__ == "__main__":
    main()
