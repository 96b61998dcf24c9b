"""Do keys stay where they belong: in the request, and nowhere else?"""

from __future__ import annotations

import logging
import traceback
from typing import Any

import pytest

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Reply, Request
from catalog_fallback.sources.http import HTTPTransport
from tests import loopback as wire
from tests.loopback import Loopback

CANARY = "canary-7f3a"
CONTRADICTION = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
SCRIPTS: dict[str, wire.Script] = {
    "ok": wire.ok({"item": None}),
    "echo in the body": wire.ok({"echo": CANARY}),
    "redirect": wire.redirect(f"http://127.0.0.1:1/?key={CANARY}"),
    "header line without colon": wire.raw(f"HTTP/1.1 200 OK\r\nA: b\r\n{CANARY}\r\nC: d\r\n\r\n{{}}".encode()),
    "bad status line": wire.raw(f"{CANARY}\r\n\r\n".encode()),
    "two lengths": wire.two_content_lengths,
    "length and chunks": wire.raw(CONTRADICTION),
    "closed": wire.close_before_head,
    "cut body": wire.cut_body(),
    "bad gzip": wire.bad_gzip,
    "too many connections": wire.ok({"item": None}),
    "time-out": wire.drip_head,
    "cookie": wire.reply(200, b"{}", {"Set-Cookie": f"session={CANARY}"}),
}


def _source(server: Loopback, headers: Any = None) -> tuple[HTTPTransport, Request, SourceConfig]:
    url = f"{server.template}?key={CANARY}"
    config = SourceConfig("primary", url=url, headers=headers or {"X-Api-Key": CANARY}, options={"key": CANARY})
    request = Request(url.replace("{id}", "P001"), headers={"X-Other": CANARY}, params={"token": CANARY})
    return HTTPTransport(config), request, config


@pytest.mark.parametrize("case", SCRIPTS)
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_no_log_record_holds_a_key(case: str, tls: bool, trusted_ca: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither ours nor those of requests and urllib3, at any level, with traceback and arguments."""
    caplog.set_level(logging.DEBUG)
    with Loopback(tls=tls) as upstream:
        upstream.on_id("P001", SCRIPTS[case])
        transport, request, _ = _source(upstream)
        for _ in range(2):
            transport.get(request, timeout=0.2)
        transport.close()
        assert upstream.requests[0].header("X-Api-Key") == CANARY
        assert upstream.requests[0].target == f"/items/P001?key={CANARY}&token={CANARY}"
    assert caplog.records, "urllib3 logs its connections at this level"
    for record in caplog.records:
        shown = [record.getMessage(), repr(record.args), record.exc_text or ""]
        if record.exc_info and record.exc_info[1]:
            shown += traceback.format_exception(record.exc_info[1])
        assert CANARY not in "".join(shown)


def test_no_repr_holds_a_key(loopback: Loopback) -> None:
    """What an error tracker shows of local variables."""
    loopback.on_id("P001", SCRIPTS["echo in the body"])
    transport, request, config = _source(loopback)
    reply = transport.get(request, timeout=5)
    transport.close()
    assert isinstance(reply, Reply)
    assert CANARY.encode() in reply.body
    assert CANARY not in repr((transport, request, config, reply))


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://127.0.0.1:1/items/P001?key={canary}", {}),
        ("http://{canary}@127.0.0.1:1/items/P001", {}),
        ("{canary}", {}),
        (None, {"X-Api-Key": CANARY + "\n"}),
        (None, {"X-Api-Key": CANARY + "€"}),
    ],
)
def test_no_error_text_holds_a_key(loopback: Loopback, url: str | None, headers: dict[str, str]) -> None:
    """A request that cannot be sent is described without its values."""
    transport, request, _ = _source(loopback, headers)
    refused = request if url is None else Request(url.format(canary=CANARY))
    with pytest.raises(ValueError, match="source") as caught:
        transport.get(refused, timeout=5)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert loopback.connections == 0
