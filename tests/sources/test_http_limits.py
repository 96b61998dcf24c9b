"""Does a call end at its limit, in bounded memory, whatever the server does?"""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from urllib3 import HTTPResponse

from catalog_fallback import clock
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Reply, Request
from catalog_fallback.sources import deadline_connection, resolver
from catalog_fallback.sources.http import HTTPTransport
from catalog_fallback.sources.pooled_adapter import PooledAdapter
from tests import loopback as wire
from tests.loopback import Loopback
from tests.sources.test_connecting import DEAD_HOSTS, dead  # noqa: F401  # a fixture

LIMIT = 0.3
OVERSHOOT = 0.05
TRIES = 5

DRIPS: dict[str, wire.Script] = {
    "silence": wire.silence,
    "head drip": wire.drip_head,
    "status line drip": lambda connection: connection.drip(b"%c" % byte for byte in b"HTTP/1.1 200 " + b"O" * 1000),
    "header drip": lambda connection: connection.drip([b"HTTP/1.1 200 OK\r\n", *[b"X-Drip: x\r\n"] * 90]),
    "body drip, length": wire.drip_body("length"),
    "body drip, chunked": wire.drip_body("chunked"),
    "body drip, close": wire.drip_body("close"),
    "trailers drip": wire.drip_trailers,
    "100-continue flood": wire.flood_of_100_continue,
    "100-continue drip": lambda connection: connection.drip([b"HTTP/1.1 100 Continue\r\n\r\n"] * 1000),
    "garbage after gzip": lambda connection: connection.drip([GZIP_HEAD, *[b"x" * 1000] * 1000]),
    "chunk size drip": lambda connection: connection.drip([CHUNKED_HEAD, *[b"0"] * 1000]),
    "silence in the body": lambda connection: (connection.send(CHUNKED_HEAD), connection.wait_until_over()),
}
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GZIP_HEAD = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0"


def ends_in_time(call: Callable[[], Any], limit: float = LIMIT) -> None:
    """The best of a few tries ends at the limit; none ends before it or without ``timeout``."""
    elapsed = []
    for _ in range(TRIES):
        started = time.monotonic()
        assert call() == NoReply("timeout")
        elapsed.append(time.monotonic() - started)
        assert elapsed[-1] >= limit - 0.005
        if elapsed[-1] <= limit + OVERSHOOT:
            return
    pytest.fail(f"the limit of {limit} s was never kept: {elapsed}")


@pytest.mark.parametrize("server", [{}, {"tls": True}, {"host": "::1"}], ids=["http", "https", "ipv6"])
@pytest.mark.parametrize("case", DRIPS)
def test_f1_httpx_1450_h48_a_dripping_server_cannot_hold_a_call(case: str, server: Any, trusted_ca: str) -> None:
    """The limit is one of the whole call, not one of each ``recv``; what was cut by it is never complete."""
    with Loopback(**server) as upstream:
        upstream.on_id("P001", DRIPS[case])
        transport = HTTPTransport(SourceConfig("primary", url=upstream.template))
        ends_in_time(lambda: transport.get(Request(upstream.url("/items/P001")), timeout=LIMIT))
        transport.close()


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("case", ["head drip", "body drip, length", "trailers drip", "silence"])
def test_the_limit_holds_on_a_connection_that_is_used_again(case: str, tls: bool, trusted_ca: str) -> None:
    """A connection of the pool takes the limit of each call, and one that hit it does not go back."""
    with Loopback(tls=tls) as upstream:
        upstream.on_id("P001", wire.reply(200, b"{}"))
        upstream.on_id("P002", DRIPS[case])
        transport = HTTPTransport(SourceConfig("primary", url=upstream.template))
        for expected in (Reply, NoReply, Reply):
            item_id = "P002" if expected is NoReply else "P001"
            started = time.monotonic()
            assert isinstance(transport.get(Request(upstream.url(f"/items/{item_id}")), timeout=LIMIT), expected)
            assert time.monotonic() - started < LIMIT + 1
        transport.close()
        assert (upstream.calls(), upstream.connections) == (3, 2)


def test_a_late_answer_is_not_given_to_the_next_call(loopback: Loopback) -> None:
    """What the server sends after the limit belongs to nobody."""
    barrier = wire.Barrier()
    loopback.on_id("P001", wire.paused(barrier, at="before the head", body={"late": True}))
    loopback.on_id("P002", wire.ok({"item": None}))
    transport = HTTPTransport(SourceConfig("primary", url=loopback.template))
    assert transport.get(Request(loopback.url("/items/P001")), timeout=0.1) == NoReply("timeout")
    barrier.release()
    reply = transport.get(Request(loopback.url("/items/P002")), timeout=5)
    transport.close()
    assert isinstance(reply, Reply)
    assert reply.body == b'{"item": null}'


@pytest.mark.parametrize(("connect_timeout", "timeout"), [(LIMIT, 30), (30, LIMIT)], ids=["connect", "call"])
def test_a_stalled_handshake_ends_at_the_earlier_limit(connect_timeout: float, timeout: float) -> None:
    """A server that accepts and never speaks TLS."""
    with Loopback(tls=True, handshake=False) as upstream:
        transport = HTTPTransport(SourceConfig("primary", url=upstream.template, connect_timeout=connect_timeout))
        ends_in_time(lambda: transport.get(Request(upstream.url("/items/P001")), timeout=timeout))


def test_a_dripped_handshake_ends_too() -> None:
    """TLS bytes one at a time: the handshake has one limit."""

    def drip(listener: socket.socket, over: threading.Event) -> None:
        record = iter(b"\x16\x03\x03\x40\x00\x02" + bytes(20_000))
        with contextlib.suppress(OSError), listener.accept()[0] as connection:
            while not over.wait(0.02):
                connection.sendall(b"%c" % next(record))

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads = [threading.Thread(target=drip, args=(listener, over), name="loopback") for _ in range(TRIES)]
        for thread in threads:
            thread.start()
        transport = HTTPTransport(SourceConfig("primary", connect_timeout=LIMIT))
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/items/P001"
        try:
            ends_in_time(lambda: transport.get(Request(url), timeout=30))
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


@pytest.fixture
def stalled_dns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A name server that never answers, and a resolver without memory."""
    go_on = threading.Event()
    monkeypatch.setattr(resolver, "_resolvers", {})
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: go_on.wait(30) and [])
    yield
    go_on.set()
    for thread in threading.enumerate():
        if thread.name.startswith("catalog-fallback-resolve"):
            thread.join(10)


@pytest.mark.parametrize(("connect_timeout", "timeout"), [(LIMIT, 30), (30, LIMIT)], ids=["connect", "call"])
def test_a_stalled_name_server_cannot_hold_a_call(stalled_dns: None, connect_timeout: float, timeout: float) -> None:
    """``getaddrinfo`` goes on in its slot; the call does not wait for it, and other hosts are not in its way."""
    transport = HTTPTransport(SourceConfig("primary", connect_timeout=connect_timeout))
    ends_in_time(lambda: transport.get(Request("http://stalled.example/items/P001"), timeout=timeout))
    assert sum(resolver.of_this_process().busy_slots().values()) <= resolver.SLOTS_PER_HOST
    with Loopback() as upstream:
        upstream.on_id("P001", wire.reply(200, b"{}"))
        assert isinstance(transport.get(Request(upstream.url("/items/P001")), timeout=5), Reply)
    transport.close()


def test_with_all_resolver_slots_stuck_a_call_is_refused_at_once(
    stalled_dns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for a name server that is known to be stuck."""
    monkeypatch.setattr(resolver, "JOIN_FOR", 0)
    transport = HTTPTransport(SourceConfig("primary", connect_timeout=0.01))
    for _ in range(resolver.SLOTS_PER_HOST):
        assert transport.get(Request("http://stalled.example/items/P001"), timeout=30) == NoReply("timeout")
    started = time.monotonic()
    assert transport.get(Request("http://stalled.example/items/P001"), timeout=30) == NoReply("dns_failed")
    assert time.monotonic() - started < 1
    assert resolver.of_this_process().busy_slots() == {"stalled.example": resolver.SLOTS_PER_HOST}


def _names(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[str, int]) -> None:
    """Make every host name have these addresses."""
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
    monkeypatch.setattr(resolver, "_resolvers", {})
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: answer)


def test_f3_h50_four_dead_addresses_share_the_connect_limit(
    dead: list[resolver.Address],  # noqa: F811  # the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not four times the limit."""
    _names(monkeypatch, *(address for _, address in dead))
    transport = HTTPTransport(SourceConfig("primary", connect_timeout=LIMIT))
    ends_in_time(lambda: transport.get(Request("http://dead.example/items/P001"), timeout=30))


def test_h50_the_live_address_behind_four_dead_ones_answers(
    dead: list[resolver.Address],  # noqa: F811  # the fixture
    loopback: Loopback,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lookup is not lost because the first addresses are."""
    _names(monkeypatch, *(address for _, address in dead), ("127.0.0.1", loopback.port))
    transport = HTTPTransport(SourceConfig("primary", connect_timeout=5))
    assert len(dead) == len(DEAD_HOSTS)
    assert isinstance(transport.get(Request("http://dead.example/items/P001"), timeout=5), Reply)
    transport.close()


def test_addresses_that_do_not_answer_are_forgotten(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has moved is found at the next call, not half a minute later."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = listener.getsockname()
    _names(monkeypatch, gone)
    transport = HTTPTransport(SourceConfig("primary"))
    assert transport.get(Request("http://moved.example/"), timeout=5) == NoReply("connect_failed")
    keep = resolver.of_this_process()
    _names(monkeypatch, ("127.0.0.1", loopback.port))
    monkeypatch.setattr(resolver, "of_this_process", lambda: keep)
    assert isinstance(transport.get(Request("http://moved.example/"), timeout=5), Reply)
    transport.close()


@pytest.mark.parametrize("timeout", [0, -1, -0.001])
def test_without_time_there_is_no_call(loopback: Loopback, timeout: float) -> None:
    """What is left of a budget may be nothing."""
    transport = HTTPTransport(SourceConfig("primary", url=loopback.template))
    assert transport.get(Request(loopback.url("/items/P001")), timeout=timeout) == NoReply("timeout")
    assert loopback.connections == 0


def test_a_slow_header_callable_counts(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time in which a site makes its token is time of the call."""
    now = [clock.monotonic()]
    monkeypatch.setattr(clock, "monotonic", lambda: now[0])

    def slow() -> str:
        now[0] += 10
        return "token"

    transport = HTTPTransport(SourceConfig("primary", url=loopback.template, headers={"Authorization": slow}))
    assert transport.get(Request(loopback.url("/items/P001")), timeout=5) == NoReply("timeout")
    assert loopback.calls() == 0


@pytest.mark.parametrize("status", [200, 302, 503])
@pytest.mark.parametrize("coding", ["gzip", "gzip, gzip"])
def test_h56_a_bomb_costs_no_memory(loopback: Loopback, status: int, coding: str) -> None:
    """300 MB in 300 kB: the call stops at MAX_BYTES, for any status."""
    packed = wire.packed_zeros(300 << 20)
    body = gzip.compress(packed) if "," in coding else packed
    loopback.on_id("P001", wire.reply(status, body, {"Content-Encoding": coding, "Location": "http://127.0.0.1:1/"}))
    transport = HTTPTransport(SourceConfig("primary", url=loopback.template))
    tracemalloc.start()
    try:
        reply = transport.get(Request(loopback.url("/items/P001")), timeout=20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reply == (NoReply("too_large") if status < 500 else Reply(503, reply.headers))  # type: ignore[union-attr]
    assert peak < 10 << 20


def test_unpacking_counts(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline is asked between pieces that need no ``recv``."""
    loopback.on_id("P001", wire.compressed(b"x" * 1_000_000))
    now = [clock.monotonic()]
    monkeypatch.setattr(clock, "monotonic", lambda: now[0])
    unpack = HTTPResponse.read1

    def unpack_slowly(self: HTTPResponse, *args: Any, **kwargs: Any) -> bytes:
        piece = unpack(self, *args, **kwargs)
        now[0] += 1
        return piece

    monkeypatch.setattr(HTTPResponse, "read1", unpack_slowly)
    transport = HTTPTransport(SourceConfig("primary", url=loopback.template))
    assert isinstance(transport.get(Request(loopback.url("/items/P001")), timeout=30), Reply)
    assert transport.get(Request(loopback.url("/items/P001")), timeout=10) == NoReply("timeout")
    transport.close()


def test_a_body_that_is_not_read_to_its_end_closes_its_connection(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, not when somebody collects the garbage."""
    loopback.on_id("P001", wire.endless_body())
    kept = []
    build = PooledAdapter.build_response

    def keep(self: PooledAdapter, *args: Any) -> Any:
        kept.append(build(self, *args))
        return kept[-1]

    monkeypatch.setattr(PooledAdapter, "build_response", keep)
    transport = HTTPTransport(SourceConfig("primary", url=loopback.template))
    assert transport.get(Request(loopback.url("/items/P001")), timeout=20) == NoReply("too_large")
    assert kept[0].raw.isclosed()
    transport.close()


@contextlib.contextmanager
def tunnelling(proxy: Loopback, script: wire.Script, monkeypatch: pytest.MonkeyPatch) -> Iterator[HTTPTransport]:
    """A transport whose https calls go through this proxy."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", proxy.origin)
    proxy.otherwise(script)
    transport = HTTPTransport(SourceConfig("primary", trust_env=True))
    yield transport
    transport.close()


def relay(connection: wire.Wire, piece: int = 65_536, interval: float = 0) -> None:
    """Answer CONNECT, and pass everything on in both directions (back to the client in pieces)."""
    assert connection.request is not None
    host, _, port = connection.request.target.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as server:
        connection.send(b"HTTP/1.1 200 Connected\r\n\r\n")

        def back() -> None:
            with contextlib.suppress(OSError):
                while data := server.recv(piece):
                    connection.connection.sendall(data)
                    connection.stopping.wait(interval)

        thread = threading.Thread(target=back, name="loopback-relay")
        thread.start()
        with contextlib.suppress(OSError):
            while data := connection.connection.recv(65_536):
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        thread.join()
    connection.is_over = True


@pytest.fixture
def trusted_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loopback authority in the environment, where TRUST_ENV looks first."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", wire.ca_file())


@pytest.mark.parametrize("tls", [False, True], ids=["http proxy", "https proxy"])
def test_https_through_a_proxy_is_a_tunnel(monkeypatch: pytest.MonkeyPatch, trusted_bundle: None, tls: bool) -> None:
    """The proxy sees the server's name and nothing else; the limit holds inside the tunnel."""
    with (
        Loopback(tls=tls) as proxy,
        Loopback(tls=True) as upstream,
        tunnelling(proxy, relay, monkeypatch) as transport,
    ):
        upstream.on_id("P001", wire.reply(200, b"{}"))
        upstream.on_id("P002", wire.drip_body())
        upstream.on_id("P003", wire.reply(200, b"{}", framing="close"))
        for item_id in ("P001", "P001", "P003"):
            reply = transport.get(Request(upstream.url(f"/items/{item_id}?key=canary")), timeout=5)
            assert isinstance(reply, Reply)
            assert reply.body == b"{}"
        assert proxy.requests[0].line.startswith(f"CONNECT 127.0.0.1:{upstream.port} ")
        assert len(proxy.requests) == 1
        ends_in_time(lambda: transport.get(Request(upstream.url("/items/P002")), timeout=LIMIT))


@pytest.mark.parametrize("case", ["head drip", "body drip, length"])
def test_a_proxy_that_drips_the_bytes_of_the_inner_tls_cannot_hold_a_call(
    monkeypatch: pytest.MonkeyPatch, trusted_bundle: None, case: str
) -> None:
    """One ``recv`` inside TLS inside TLS is many reads from the proxy."""
    with (
        Loopback(tls=True) as proxy,
        Loopback(tls=True) as upstream,
        tunnelling(proxy, partial(relay, piece=1, interval=0.02), monkeypatch) as transport,
    ):
        upstream.on_id("P001", DRIPS[case])
        ends_in_time(lambda: transport.get(Request(upstream.url("/items/P001")), timeout=LIMIT))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (wire.reply(407), "connect_failed"),
        (wire.reply(502), "connect_failed"),
        (wire.close_before_head, "connect_failed"),
        (wire.bad_status_line, "connect_failed"),
    ],
    ids=["407", "502", "closes", "speaks no HTTP"],
)
def test_a_proxy_that_opens_no_tunnel_is_connect_failed(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, trusted_bundle: None, script: wire.Script, reason: str
) -> None:
    """Whatever our proxy says, it is not the source that says it."""
    with Loopback(tls=True) as upstream, tunnelling(loopback, script, monkeypatch) as transport:
        assert transport.get(Request(upstream.url("/items/P001")), timeout=5) == NoReply(reason)
        assert upstream.connections == 0


def test_the_handshake_inside_a_tunnel_gets_what_is_left(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, trusted_bundle: None
) -> None:
    """A proxy that takes most of the limit, and a server that then never speaks TLS."""

    def late(connection: wire.Wire) -> None:
        connection.stopping.wait(LIMIT * 2 / 3)
        connection.send(b"HTTP/1.1 200 Connected\r\n\r\n")
        connection.wait_until_over()

    with Loopback(tls=True) as upstream, tunnelling(loopback, late, monkeypatch) as transport:
        ends_in_time(lambda: transport.get(Request(upstream.url("/items/P001")), timeout=LIMIT))


@pytest.mark.parametrize("case", ["silence", "head drip", "header drip"])
def test_a_dripping_proxy_cannot_hold_a_call(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, trusted_bundle: None, case: str
) -> None:
    """The answer to CONNECT has the limit of the call too."""
    with Loopback(tls=True) as upstream, tunnelling(loopback, DRIPS[case], monkeypatch) as transport:
        ends_in_time(lambda: transport.get(Request(upstream.url("/items/P001")), timeout=LIMIT))


def test_the_hooks_into_urllib3_are_still_there() -> None:
    """Every method that is overridden exists where it is expected, in each version that is allowed."""
    http, https = deadline_connection.DeadlineHTTPPool, deadline_connection.DeadlineHTTPSPool
    for pool in (http, https):
        parents = pool.__mro__[2:]
        assert any("_make_request" in vars(parent) for parent in parents)
        assert any("ConnectionCls" in vars(parent) for parent in parents)
        connections = [one for one in pool.ConnectionCls.__mro__ if not one.__module__.startswith("catalog_fallback")]
        for name in ("_new_conn", "_tunnel", "putrequest", "send", "response_class"):
            assert any(name in vars(parent) for parent in connections), name
