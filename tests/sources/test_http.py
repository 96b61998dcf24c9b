"""Does one GET mean what it should, and is nothing sent, kept or followed that should not be?"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import responses
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import catalog_fallback
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Reply, Request
from catalog_fallback.sources.deadline import Deadline
from catalog_fallback.sources.http import HTTPTransport
from catalog_fallback.sources.pooled_adapter import PlainSession, PooledAdapter
from tests import loopback as wire
from tests.loopback import Loopback

ITEM = {"item": {"id": "P001", "name": "Tea"}}
BODY = b'{"item": {"id": "P001", "name": "Tea"}}'
SERVERS: dict[str, dict[str, Any]] = {
    "http": {},
    "https": {"tls": True},
    "http-ipv6": {"host": "::1"},
    "https-ipv6": {"tls": True, "host": "::1"},
}


@pytest.fixture(params=list(SERVERS))
def upstream(request: pytest.FixtureRequest, trusted_ca: str) -> Iterator[Loopback]:
    """A server over http and https, IPv4 and IPv6."""
    with Loopback(**SERVERS[request.param]) as server:
        yield server


Get = Callable[..., Reply | NoReply]


def transport_for(server: Loopback, **config: Any) -> HTTPTransport:
    """The transport of a source at this server."""
    return HTTPTransport(SourceConfig("primary", url=server.template, **config))


def get(server: Loopback, item_id: str = "P001", timeout: float = 5, **config: Any) -> Reply | NoReply:
    """One call to a server."""
    transport = transport_for(server, **config)
    try:
        return transport.get(Request(server.url(f"/items/{item_id}")), timeout=timeout)
    finally:
        transport.close()


# --- replies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_a_reply_is_status_headers_and_body(upstream: Loopback, framing: Any) -> None:
    """Every framing of a complete body is understood."""
    upstream.on_id("P001", wire.ok(ITEM, {"X-Own": "1"}, framing))
    reply = get(upstream)
    assert isinstance(reply, Reply)
    assert (reply.status, reply.body) == (200, BODY)
    assert reply.headers["x-own"] == "1"
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [200, 201, 204, 206, 299, 301, 302, 304, 307, 400, 404, 410, 418, 429, 503, 999])
def test_every_status_is_handed_on(loopback: Loopback, status: int) -> None:
    """What a status means is decided elsewhere."""
    loopback.on_id("P001", wire.reply(status))
    assert get(loopback) == Reply(status, {"content-length": "0"}, b"")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "x-gzip", "GZIP", "gzip, gzip", "deflate, gzip"])
def test_packed_bodies_are_unpacked(loopback: Loopback, coding: str) -> None:
    """The codings that are asked for are undone."""
    loopback.on_id("P001", wire.compressed(ITEM, coding))
    reply = get(loopback)
    assert isinstance(reply, Reply)
    assert reply.body == BODY


@pytest.mark.parametrize("coding", ["", "identity", "br", "zstd", "rot13", "gzip, br", "br, gzip"])
def test_a_coding_that_was_not_asked_for_leaves_the_body_as_it_is(loopback: Loopback, coding: str) -> None:
    """Nothing is guessed, and no decoder runs that could be made to unpack without bounds."""
    loopback.on_id("P001", wire.reply(200, BODY, {"Content-Encoding": coding}))
    reply = get(loopback)
    assert isinstance(reply, Reply)
    assert reply.body == BODY


def test_repeated_headers_are_joined(loopback: Loopback) -> None:
    """Several lines of Cache-Control say as much as one; several Retry-After crash nobody."""
    lines = [("Cache-Control", "max-age=60"), ("cache-control", "no-store"), ("Retry-After", "5"), ("Retry-After", "x")]
    loopback.on_id("P001", wire.reply(503, b"", lines))
    reply = get(loopback)
    assert isinstance(reply, Reply)
    assert reply.headers["cache-control"] == "max-age=60, no-store"
    assert reply.headers["retry-after"] == "5, x"


def test_interim_replies_come_before_the_answer(upstream: Loopback) -> None:
    """Early hints are no answer, and the next call does not get this one's."""
    hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    upstream.on_id("P001", lambda connection: connection.send(hints + answer))
    transport = transport_for(upstream)
    for _ in range(2):
        assert transport.get(Request(upstream.url("/items/P001")), timeout=5) == Reply(
            200, {"content-length": "2"}, b"{}"
        )
    transport.close()


# --- no replies --------------------------------------------------------------------------------------------------

FAILURES: dict[str, tuple[wire.Script, str]] = {
    "close before head": (wire.close_before_head, "connection_lost"),
    "reset before head": (wire.reset_before_head, "connection_lost"),
    "cut head": (wire.cut_head(), "connection_lost"),
    "cut head after its length": (wire.cut_head(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"), "connection_lost"),
    "cut header line": (wire.cut_head(b"HTTP/1.1 200 OK\r\nContent-Le"), "connection_lost"),
    "cut status line": (wire.cut_head(b"HTTP/1.1 20"), "connection_lost"),
    "cut status": (wire.cut_head(b"HTTP/1.1"), "connection_lost"),
    "cut version": (wire.cut_head(b"HT"), "connection_lost"),
    "cut interim reply": (wire.cut_head(b"HTTP/1.1 100 Continue\r\n\r\n"), "connection_lost"),
    "cut body, length": (wire.cut_body("length"), "incomplete_body"),
    "cut body, chunked": (wire.cut_body("chunked"), "incomplete_body"),
    "cut body, nothing of it": (wire.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"), "incomplete_body"),
    "no last chunk": (
        wire.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
        "incomplete_body",
    ),
    "no end of trailers": (
        wire.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"),
        "incomplete_body",
    ),
    "bad chunk size": (
        wire.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
        "incomplete_body",
    ),
    "reset in body": (wire.reset_in_body, "incomplete_body"),
    "bad gzip": (wire.bad_gzip, "incomplete_body"),
    "cut gzip": (wire.cut_gzip, "incomplete_body"),
    "six codings": (wire.compressed(ITEM, ", ".join(["gzip"] * 6)), "incomplete_body"),
    "two lengths": (wire.two_content_lengths, "invalid_http"),
    "two lengths in one line": (wire.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\n{}"), "invalid_http"),
    "negative length": (wire.raw(b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}"), "invalid_http"),
    "length with underscore": (wire.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0_2\r\n\r\n{}"), "invalid_http"),
    "length in words": (wire.raw(b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}"), "invalid_http"),
    "unknown transfer coding": (
        wire.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
        "invalid_http",
    ),
    "bad status line": (wire.bad_status_line, "invalid_http"),
    "no status line": (wire.raw(b"{}"), "invalid_http"),
    "status in words": (wire.raw(b"HTTP/1.1 OK 200\r\n\r\n"), "invalid_http"),
    "status of two digits": (wire.raw(b"HTTP/1.1 20 OK\r\n\r\n"), "invalid_http"),
    "unknown version": (wire.raw(b"HTTP/3.0 200 OK\r\n\r\n"), "invalid_http"),
    "empty status line": (wire.raw(b"\r\n\r\n"), "invalid_http"),
    "header line without colon": (wire.raw(b"HTTP/1.1 200 OK\r\nA: b\r\nnonsense\r\nC: d\r\n\r\n{}"), "invalid_http"),
    "huge head": (wire.huge_head, "invalid_http"),
    "huge status line": (wire.raw(b"HTTP/1.1 200 " + b"O" * 70_000 + b"\r\n\r\n"), "invalid_http"),
    "more than 100 headers": (wire.many_headers, "invalid_http"),
    "switch of protocols": (wire.raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), "invalid_http"),
    "gzip bomb": (wire.gzip_bomb(), "too_large"),
    "endless body, close": (wire.endless_body("close"), "too_large"),
    "endless body, chunked": (wire.endless_body("chunked"), "too_large"),
    "one byte too many": (wire.reply(200, b"x" * 1_048_577), "too_large"),
}


@pytest.mark.parametrize("case", FAILURES)
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_h63_what_a_server_does_wrong_is_a_reason_never_an_exception(case: str, tls: bool, trusted_ca: str) -> None:
    """Each fault has the reason of the classification table, and the next call is not harmed by it."""
    script, reason = FAILURES[case]
    with Loopback(tls=tls) as server:
        server.on_id("P001", script)
        server.on_id("P002", wire.ok(ITEM))
        transport = transport_for(server)
        assert transport.get(Request(server.url("/items/P001")), timeout=20) == NoReply(reason)
        after = transport.get(Request(server.url("/items/P002")), timeout=20)
        transport.close()
    assert isinstance(after, Reply)
    assert after.body == BODY


def test_a_cut_without_length_is_seen_over_tls(trusted_ca: str) -> None:
    """Over TLS the end of a body that has no length is marked; over TCP only the JSON inside can tell."""
    with Loopback(tls=True) as server:
        server.on_id("P001", wire.cut_body("close"))
        assert get(server) == NoReply("incomplete_body")


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("fault", ["cut", "too large", "bad gzip"])
def test_busy_and_broken_count_whatever_the_body_is_like(loopback: Loopback, status: int, fault: str) -> None:
    """A 503 with half an error page is a 503, and its Retry-After counts."""
    head = f"HTTP/1.1 {status} X\r\nRetry-After: 7\r\n".encode()
    bodies = {
        "cut": b"Content-Length: 9\r\n\r\n<html",
        "too large": b"Content-Length: 50\r\n\r\n" + b"x" * 50,
        "bad gzip": b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nxxxx",
    }
    loopback.on_id("P001", wire.raw(head + bodies[fault]))
    reply = get(loopback, max_bytes=20)
    assert isinstance(reply, Reply)
    assert (reply.status, reply.headers["retry-after"], reply.body) == (status, "7", b"")


@pytest.mark.parametrize("status", [200, 302, 404])
def test_other_statuses_need_their_body(loopback: Loopback, status: int) -> None:
    """Half a 404 is no "not found": adapters look at its body."""
    loopback.on_id("P001", wire.raw(b"HTTP/1.1 %d X\r\nContent-Length: 9\r\n\r\n<html" % status))
    assert get(loopback) == NoReply("incomplete_body")


@pytest.mark.parametrize(("size", "is_allowed"), [(99, True), (100, True), (101, False)])
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_max_bytes_counts_the_unpacked_body(loopback: Loopback, size: int, is_allowed: bool, coding: str) -> None:
    """The limit itself is allowed, one more is not, packed or not."""
    script = wire.compressed(b"x" * size) if coding else wire.reply(200, b"x" * size)
    loopback.on_id("P001", script)
    assert isinstance(get(loopback, max_bytes=100), Reply if is_allowed else NoReply)


def test_nobody_listens() -> None:
    """A refused connection is connect_failed."""
    with Loopback() as server:
        pass
    assert get(server) == NoReply("connect_failed")


def test_a_name_without_address_is_dns_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name server's "no" has a reason of its own."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError("no such host")

    monkeypatch.setattr("socket.getaddrinfo", fail)
    transport = HTTPTransport(SourceConfig("primary"))
    assert transport.get(Request("http://nowhere.example/items/P001"), timeout=5) == NoReply("dns_failed")


class TestTLS:
    """What a certificate can be like."""

    def test_an_unknown_authority_is_refused(self) -> None:
        """Without the fixture ``trusted_ca`` nobody vouches for the server."""
        with Loopback(tls=True) as server:
            assert get(server) == NoReply("tls_failed")
            assert server.calls() == 0

    def test_another_name_is_refused(self, trusted_ca: str) -> None:
        """A valid certificate of another host is none."""
        with Loopback(tls=True, names=("other.example",)) as server:
            assert get(server) == NoReply("tls_failed")
            assert server.calls() == 0

    def test_plain_http_behind_https_is_refused(self, trusted_ca: str) -> None:
        """A server that speaks no TLS fails the handshake."""
        with Loopback() as server:
            server.greeting = b"HTTP/1.1 400 Bad Request\r\n\r\n"
            transport = HTTPTransport(SourceConfig("primary"))
            reply = transport.get(Request(f"https://127.0.0.1:{server.port}/items/P001"), timeout=5)
        assert reply == NoReply("tls_failed")

    def test_a_directory_of_authorities_from_the_environment(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """TRUST_ENV also takes the certificate bundle of the environment, file or directory."""
        with Loopback(tls=True) as server:
            monkeypatch.setenv("REQUESTS_CA_BUNDLE", wire.ca_file())
            assert isinstance(get(server, trust_env=True), Reply)
            monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path))
            assert get(server, trust_env=True) == NoReply("tls_failed")
            assert get(server) == NoReply("tls_failed")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"]),
    noise=st.binary(max_size=200),
)
def test_no_bytes_of_a_server_raise(loopback: Loopback, start: bytes, noise: bytes) -> None:
    """Whatever a server sends, there is a reply or a reason."""
    loopback.on_id("P001", wire.raw(start + noise))
    assert isinstance(get(loopback), Reply | NoReply)


def test_a_header_in_several_lines_is_one(loopback: Loopback) -> None:
    """As HTTP has it (RFC 9110, 5.2); names are in lower case, whatever the server wrote."""
    lines = [("X-A", "1"), ("x-a", "2"), ("Cache-Control", "max-age=5"), ("CACHE-CONTROL", "no-store")]
    loopback.on_id("P001", wire.reply(200, b"{}", lines))
    reply = get(loopback)
    assert isinstance(reply, Reply)
    assert {name: reply.headers[name] for name in ("x-a", "cache-control")} == {
        "x-a": "1, 2",
        "cache-control": "max-age=5, no-store",
    }


# --- what is sent ------------------------------------------------------------------------------------------------


def test_the_request_names_the_package_and_asks_for_json(loopback: Loopback) -> None:
    """Nothing more is sent than what is needed."""
    get(loopback)
    get(loopback, contact="https://shop.example")
    plain, with_contact = loopback.requests
    assert plain.line == "GET /items/P001 HTTP/1.1"
    assert dict(plain.headers) == {
        "Host": f"127.0.0.1:{loopback.port}",
        "User-Agent": f"django-catalog-fallback/{catalog_fallback.__version__}",
        "Accept": "application/json",
        "Accept-Encoding": "gzip, deflate",
    }
    assert (with_contact.header("user-agent") or "").endswith(" (+https://shop.example)")


def test_headers_of_the_site_win_over_those_of_the_adapter(loopback: Loopback) -> None:
    """Defaults, then the adapter's, then HEADERS; names are compared without case."""
    config = SourceConfig("primary", url=loopback.template, headers={"x-a": "site", "ACCEPT": "text/plain"})
    HTTPTransport(config).get(Request(loopback.url("/"), headers={"X-A": "adapter", "X-B": "adapter"}), timeout=5)
    (received,) = loopback.requests
    assert [received.header(name) for name in ("X-A", "X-B", "Accept")] == ["site", "adapter", "text/plain"]


def test_callable_headers_are_called_for_each_request(loopback: Loopback) -> None:
    """A token that changes is asked for anew."""
    tokens = iter(["first", "second"])
    transport = transport_for(loopback, headers={"Authorization": lambda: next(tokens)})
    for _ in range(2):
        transport.get(Request(loopback.url("/items/P001")), timeout=5)
    assert [received.header("Authorization") for received in loopback.requests] == ["first", "second"]
    transport.close()


def test_each_request_has_its_own_headers(loopback: Loopback) -> None:
    """Those of the last one are used again only if the adapter wants the very same; what it computes is asked for."""
    tokens = iter(["first", "second"])
    computed: Any = {"X-A": lambda: next(tokens)}
    transport = transport_for(loopback, headers={"X-Site": "shop"})
    for wanted in ({"X-A": "one"}, {"X-A": "two"}, {"X-A": "two"}, {}, computed, computed):
        transport.get(Request(loopback.url("/items/P001"), headers=wanted), timeout=5)
    sent = [(received.header("X-A"), received.header("X-Site")) for received in loopback.requests]
    assert sent == [(value, "shop") for value in ("one", "two", "two", None, "first", "second")]
    transport.close()


def test_what_an_adapter_changes_later_is_sent(loopback: Loopback) -> None:
    """It may keep one dict of headers, and write into it."""
    transport, wanted = transport_for(loopback), {"X-A": "one"}
    for value in ("one", "two"):
        wanted["X-A"] = value
        transport.get(Request(loopback.url("/items/P001"), headers=wanted), timeout=5)
    assert [received.header("X-A") for received in loopback.requests] == ["one", "two"]
    transport.close()


def test_what_a_callable_header_raises_is_passed_on(loopback: Loopback) -> None:
    """A bug of the site is not taken for a fault of the source."""

    def fail() -> str:
        raise KeyError("token")

    with pytest.raises(KeyError):
        get(loopback, headers={"Authorization": fail})
    assert loopback.calls() == 0


@pytest.mark.parametrize(
    "value", ["canary\r\nX-Evil: 1", "canary\n", "canary\0", "canary€", lambda: None, lambda: b"canary"]
)
def test_a_header_that_cannot_be_sent_is_refused_without_showing_it(loopback: Loopback, value: Any) -> None:
    """The message names the header and the source, never the value."""
    with pytest.raises(ValueError, match="'X-Key' of source 'primary'") as caught:
        get(loopback, headers={"X-Key": value})
    assert "canary" not in str(caught.value)
    assert loopback.calls() == 0


@pytest.mark.parametrize("name", ["", "X Key", "X-Key:", "X\nKey", "Xé"])
def test_a_header_name_that_cannot_be_sent_is_refused(loopback: Loopback, name: str) -> None:
    """Nothing can be smuggled in through a name."""
    with pytest.raises(ValueError, match="cannot be sent"):
        get(loopback, headers={name: "x"})


def test_parameters_are_added_percent_encoded(loopback: Loopback) -> None:
    """Nothing in a parameter is safe; a query that is there already stays."""
    transport = transport_for(loopback)
    params = {"q": "a b&c=d/é", "key": "k"}
    transport.get(Request(loopback.url("/items"), params=params), timeout=5)
    transport.get(Request(loopback.url("/items?x=1"), params={"y": "2"}), timeout=5)
    assert [received.target for received in loopback.requests] == [
        "/items?q=a%20b%26c%3Dd%2F%C3%A9&key=k",
        "/items?x=1&y=2",
    ]
    transport.close()


@pytest.mark.parametrize(
    "item_id",
    ["P001", "a/b", "a?x", "a#f", "%2e%2e", "%2F", "a\r\nX-Evil: 1", "a\0", "...", "a;b", "http://evil.example/"],
)
def test_h69_the_server_sees_exactly_one_segment(loopback: Loopback, item_id: str) -> None:
    """Template, requests and urllib3 together put on the wire what was meant."""
    from catalog_fallback.sources.url_template import URLTemplate  # noqa: PLC0415  # beside its only use

    url = URLTemplate(loopback.template).expand(item_id, "", {})
    transport_for(loopback).get(Request(url), timeout=5)
    (received,) = loopback.requests
    assert received.line == f"GET {url.removeprefix(loopback.origin)} HTTP/1.1"
    assert received.target.count("/") == 2
    assert received.header("X-Evil") is None


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/items/../admin",
        "http://127.0.0.1:{port}/items/%2e%2E/admin",
        "http://127.0.0.1:{port}/./items",
        "http://127.0.0.1:{port}/items/a b",
        "http://127.0.0.1:{port}/items/a\r\nX: y",
        "http://127.0.0.1:{port}/items/100%",
        "http://127.0.0.1:{port}/items\\x",
        "http://127.0.0.1:{port}/items#x",
        "http://user:canary@127.0.0.1:{port}/items",
        "http://127.0.0.1:{port}@evil.example/items",
        "http://evil.example/items",
        "http://127.0.0.1:1/items",
        "https://127.0.0.1:{port}/items",
        "http://localhost:{port}/items",
        "//127.0.0.1:{port}/items",
        "file:///etc/passwd",
        "/items/P001",
        "",
    ],
)
def test_a_url_that_leads_elsewhere_is_refused_before_any_call(loopback: Loopback, url: str) -> None:
    """A source is asked at its own server, by a URL that every parser reads alike; the message does not show it."""
    with pytest.raises(ValueError, match="source") as caught:
        transport_for(loopback).get(Request(url.format(port=loopback.port)), timeout=5)
    assert "canary" not in str(caught.value)
    assert loopback.connections == 0


def test_a_url_that_leads_elsewhere_is_refused_after_a_good_one_too(loopback: Loopback) -> None:
    """The server that was asked last is no excuse."""
    transport = transport_for(loopback)
    assert isinstance(transport.get(Request(loopback.url("/items/P001")), timeout=5), Reply)
    for _ in range(2):
        with pytest.raises(ValueError, match="only at the server"):
            transport.get(Request(f"http://127.0.0.2:{loopback.port}/items/P001"), timeout=5)
    assert loopback.calls() == 1
    transport.close()


def test_a_source_whose_own_url_names_no_server_is_asked_nowhere(loopback: Loopback) -> None:
    """What the settings' checks would have refused does not open the door to every host."""
    transport = HTTPTransport(SourceConfig("primary", url="{scheme}://anywhere/{id}"))
    with pytest.raises(ValueError, match="only at the server"):
        transport.get(Request(loopback.url("/items/P001")), timeout=5)


def test_the_same_server_may_be_written_in_other_ways(loopback: Loopback) -> None:
    """Case of scheme and host say nothing."""
    url = loopback.url("/items/P001").replace("http", "HTTP")
    assert isinstance(transport_for(loopback).get(Request(url), timeout=5), Reply)


# --- what is not done --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_h67_h68_redirects_are_never_followed(loopback: Loopback, status: int) -> None:
    """Nobody else is asked, and no key reaches another host."""
    with Loopback() as trap:
        loopback.on_id("P001", wire.redirect(trap.url("/items/P001"), status))
        reply = get(loopback, headers={"X-Api-Key": "canary"})
        assert isinstance(reply, Reply)
        assert (reply.status, reply.headers["location"]) == (status, trap.url("/items/P001"))
        assert (trap.connections, loopback.calls()) == (0, 1)


def test_the_body_of_a_redirect_is_bounded_too(loopback: Loopback) -> None:
    """requests would read all of it to find out where to go."""
    loopback.on_id("P001", wire.redirect("http://127.0.0.1:1/", body=b"x" * 200))
    assert get(loopback, max_bytes=100) == NoReply("too_large")


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_h66_requests_2414_proxies_of_the_environment_are_left_alone(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """No request reaches a proxy unless TRUST_ENV says so."""
    with Loopback() as trap:
        monkeypatch.setenv(name, trap.origin)
        assert isinstance(get(loopback), Reply)
        assert (trap.connections, loopback.calls()) == (0, 1)


def test_trust_env_uses_the_proxy(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy gets the whole URL, and the environment is read once."""
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with Loopback() as proxy:
        proxy.otherwise(wire.ok(ITEM))
        monkeypatch.setenv("http_proxy", proxy.origin)
        transport = transport_for(loopback, trust_env=True)
        reply = transport.get(Request(loopback.url("/items/P001?key=x")), timeout=5)
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        assert transport.get(Request(loopback.url("/items/P001?key=x")), timeout=5) == reply
        transport.close()
        assert isinstance(reply, Reply)
        assert proxy.requests[0].target == loopback.url("/items/P001?key=x")
        assert loopback.connections == 0


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "ftp://127.0.0.1:1", "socks9://127.0.0.1:1", "http://:x"])
def test_a_proxy_out_of_order_is_connect_failed(
    monkeypatch: pytest.MonkeyPatch, loopback: Loopback, proxy: str
) -> None:
    """Our own proxy may be down or mistyped; nothing is known about the item then."""
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", proxy)
    assert get(loopback, trust_env=True) == NoReply("connect_failed")
    assert loopback.connections == 0


def test_a_socks_proxy_keeps_its_own_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our connections know no SOCKS: with them the call would go past the proxy."""
    manager = SimpleNamespace(pool_classes_by_scheme="its own")
    monkeypatch.setattr("requests.adapters.SOCKSProxyManager", lambda *args, **kwargs: manager)
    adapter = PooledAdapter(None, 1)
    assert adapter.proxy_manager_for("socks5://127.0.0.1:1").pool_classes_by_scheme == "its own"


@pytest.mark.parametrize("trust_env", [False, True])
def test_netrc_is_never_read(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trust_env: bool
) -> None:
    """Credentials for a host by that name belong to somebody else."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login canary password canary\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "Authorization" in requests.Session().prepare_request(requests.Request("GET", loopback.origin)).headers
    get(loopback, trust_env=trust_env)
    assert loopback.requests[0].header("Authorization") is None


def test_no_cookie_is_kept(loopback: Loopback) -> None:
    """One user's session at a source must not become everybody's."""
    loopback.on_id("P001", wire.reply(200, b"{}", {"Set-Cookie": "session=canary; Path=/"}))
    transport = transport_for(loopback)
    for _ in range(2):
        transport.get(Request(loopback.url("/items/P001")), timeout=5)
    assert [received.header("Cookie") for received in loopback.requests] == [None, None]
    transport.close()


def test_the_session_keeps_and_reads_nothing_by_itself(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not even where requests would look by default: cookies do not pile up, ``.netrc`` stays closed."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login canary password canary\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    loopback.otherwise(wire.reply(200, b"{}", {"Set-Cookie": "session=canary; Path=/"}))
    with PlainSession(None, 1) as session:
        session.get(loopback.origin, timeout=Deadline(5, 5))  # type: ignore[arg-type]  # as the transport does
        assert len(session.cookies) == 0
        assert len(session.get(loopback.origin, timeout=Deadline(5, 5)).cookies) == 0  # type: ignore[arg-type]
    assert loopback.requests[0].header("Authorization") is None


def test_making_a_transport_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket, no thread, no look at the environment before the first call."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("too early")

    for name in ("socket.socket", "threading.Thread.start", "requests.Session.merge_environment_settings", "os.getpid"):
        monkeypatch.setattr(name, fail)
    HTTPTransport(SourceConfig("primary", url="http://127.0.0.1/{id}", trust_env=True))


# --- connections -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_connection_is_used_again(upstream: Loopback, framing: Any) -> None:
    """Ten calls over one connection."""
    upstream.on_id("P001", wire.ok(ITEM, framing=framing))
    transport = transport_for(upstream)
    for _ in range(10):
        assert isinstance(transport.get(Request(upstream.url("/items/P001")), timeout=5), Reply)
    transport.close()
    assert (upstream.connections, upstream.calls()) == (1, 10)


def test_a_connection_that_was_closed_while_idle_fails_nobody(upstream: Loopback) -> None:
    """That it is gone can be seen before it is used, so nothing has to be sent twice."""
    upstream.on_id("P001", wire.ok(ITEM))
    transport = transport_for(upstream)
    for _ in range(3):
        assert isinstance(transport.get(Request(upstream.url("/items/P001")), timeout=5), Reply)
        upstream.drop_connections()
    transport.close()
    assert (upstream.connections, upstream.calls()) == (3, 3)


def test_nothing_is_sent_twice(loopback: Loopback) -> None:
    """A connection that ends instead of a reply is a failure; whether to ask again is decided elsewhere."""
    loopback.on_id("P001", wire.ok(ITEM), wire.close_before_head, wire.ok(ITEM))
    transport = transport_for(loopback)
    replies = [transport.get(Request(loopback.url("/items/P001")), timeout=5) for _ in range(3)]
    assert replies[1] == NoReply("connection_lost")
    assert loopback.calls() == 3
    transport.close()


def test_a_closed_transport_starts_again(loopback: Loopback) -> None:
    """Closing gives the connections back and nothing more."""
    transport = transport_for(loopback)
    for _ in range(2):
        assert isinstance(transport.get(Request(loopback.url("/items/P001")), timeout=5), Reply)
        transport.close()
        transport.close()
    assert loopback.connections == 2


def test_threads_share_a_transport(upstream: Loopback, caplog: pytest.LogCaptureFixture) -> None:
    """As many connections as calls at a time, each thread gets its own answer, and the pool holds them all."""
    barrier = wire.Barrier()
    for number in range(16):
        upstream.on_id(f"P{number}", wire.paused(barrier, at="before the head", body={"n": number}))
    transport = transport_for(upstream, max_concurrent=16)

    def ask(number: int) -> bytes:
        reply = transport.get(Request(upstream.url(f"/items/P{number}")), timeout=20)
        assert isinstance(reply, Reply)
        return reply.body

    with ThreadPoolExecutor(16) as pool:
        first = [pool.submit(ask, number) for number in range(16)]
        barrier.wait_until_reached(16)
        barrier.release()
        assert [future.result() for future in first] == [b'{"n": %d}' % number for number in range(16)]
        assert list(pool.map(ask, range(16))) == [b'{"n": %d}' % number for number in range(16)]
    transport.close()
    assert upstream.connections == 16
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


FORK = """
import os, sys
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Request
from catalog_fallback.sources.deadline import Deadline
from catalog_fallback.sources.http import HTTPTransport
from catalog_fallback.sources.pooled_adapter import PlainSession, PooledAdapter
transport = HTTPTransport(SourceConfig("primary", url=sys.argv[1]))
def ask(): return transport.get(Request(sys.argv[1].replace("{id}", "P001")), timeout=5).body
ask()
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        os._exit(0 if ask() == ask() == b"{}" else 1)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
assert codes == [0, 0, 0], codes
assert ask() == b"{}"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_h45_a_fork_does_not_share_connections(loopback: Loopback) -> None:
    """The parent keeps its connection, each child opens its own, and no answers are mixed up."""
    loopback.on_id("P001", wire.reply(200, b"{}"))
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, loopback.template],
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(catalog_fallback.__file__).parent.parent)},
    )
    assert (loopback.connections, loopback.calls()) == (4, 8)


def test_calls_leave_no_thread_behind(loopback: Loopback) -> None:
    """Neither a good call nor one that hits its limit costs a thread."""
    loopback.on_id("P001", wire.ok(ITEM), wire.drip_body(), wire.drip_head)

    def ours() -> set[str]:
        return {thread.name for thread in threading.enumerate() if not thread.name.startswith("loopback")}

    before = ours()
    for _ in range(3):
        get(loopback, timeout=0.1)
    assert ours() == before


# --- for the tests of a site -------------------------------------------------------------------------------------


@responses.activate
def test_the_responses_library_works() -> None:
    """A site that mocks requests in its tests mocks our calls too."""
    url = "https://primary.example.com/items/P001"
    responses.get(url, json=ITEM, headers={"Cache-Control": "max-age=5"})
    responses.get(url, body=requests.ConnectTimeout())
    responses.get(url, body=requests.ConnectionError())
    responses.get(url, status=404)
    transport = HTTPTransport(SourceConfig("primary"))
    replies = [transport.get(Request(url), timeout=1) for _ in range(4)]
    assert isinstance(replies[0], Reply)
    assert (replies[0].status, replies[0].body, replies[0].headers["cache-control"]) == (200, BODY, "max-age=5")
    assert replies[1:3] == [NoReply("timeout"), NoReply("connection_lost")]
    assert isinstance(replies[3], Reply)
    assert replies[3].status == 404


def test_the_caller_may_be_handling_another_failure(loopback: Loopback) -> None:
    """A lookup inside ``except TimeoutError`` does not take that time-out for its own."""
    loopback.on_id("P001", wire.close_before_head)
    try:
        raise TimeoutError
    except TimeoutError:
        assert get(loopback) == NoReply("connection_lost")


def test_a_bug_of_ours_is_not_taken_for_a_fault_of_the_source(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what networks and servers do becomes a reason."""

    def fail(self: http.client.HTTPResponse) -> None:
        raise AttributeError("a typo")

    monkeypatch.setattr(http.client.HTTPResponse, "begin", fail)
    with pytest.raises(AttributeError):
        get(loopback)


@pytest.mark.parametrize(
    ("head", "body", "reason"),
    [
        (b"Content-Length: " + b"9" * 5000, b'{"item": null}', "invalid_http"),
        (b"Content-Length: 14\r\nTransfer-Encoding: chunked", b'e\r\n{"item": null}\r\n0\r\n\r\n', "invalid_http"),
        (b"Transfer-Encoding: chunked", b'e\r\n{"item": null}XX0\r\n\r\n', "incomplete_body"),
        (b"Transfer-Encoding: chunked", b'+e\r\n{"item": null}\r\n0\r\n\r\n', "incomplete_body"),
        (b"Transfer-Encoding: chunked", b'0xe\r\n{"item": null}\r\n0\r\n\r\n', "incomplete_body"),
    ],
    ids=["a length of 5000 digits", "length and chunks", "no end of a chunk", "a size with a sign", "a size with 0x"],
)
def test_framing_that_two_readers_would_understand_in_two_ways(
    loopback: Loopback, head: bytes, body: bytes, reason: str
) -> None:
    """A body is complete only where its framing says so, by the rules and not by what ``int()`` takes."""
    loopback.on_id("P001", wire.raw(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body))
    assert get(loopback, "P001") == NoReply(reason)
