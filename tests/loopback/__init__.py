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

from tests.loopback.certificates import (
    ca_file,
)
from tests.loopback.faults import (
    bad_gzip,
    bad_status_line,
    close_before_head,
    cut_body,
    cut_gzip,
    cut_head,
    drip_body,
    drip_head,
    drip_trailers,
    endless_body,
    flood_of_100_continue,
    gzip_bomb,
    huge_head,
    many_headers,
    packed_zeros,
    reset_before_head,
    reset_in_body,
    silence,
    two_content_lengths,
)
from tests.loopback.replies import (
    Framing,
    Headers,
    Point,
    Script,
    compressed,
    ok,
    paused,
    raw,
    redirect,
    reply,
)
from tests.loopback.server import (
    Loopback,
)
from tests.loopback.wire import (
    DRIP,
    Barrier,
    Received,
    Wire,
)

__all__ = [
    "DRIP",
    "Barrier",
    "Framing",
    "Headers",
    "Loopback",
    "Point",
    "Received",
    "Script",
    "Wire",
    "bad_gzip",
    "bad_status_line",
    "ca_file",
    "close_before_head",
    "compressed",
    "cut_body",
    "cut_gzip",
    "cut_head",
    "drip_body",
    "drip_head",
    "drip_trailers",
    "endless_body",
    "flood_of_100_continue",
    "gzip_bomb",
    "huge_head",
    "many_headers",
    "ok",
    "packed_zeros",
    "paused",
    "raw",
    "redirect",
    "reply",
    "reset_before_head",
    "reset_in_body",
    "silence",
    "two_content_lengths",
]
