"""Is a body that is too large refused before it is read? Over real sockets, under WSGI and under ASGI."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import pytest
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

from catalog_fallback import notices, services
from catalog_fallback.notices import MAX_BYTES
from catalog_fallback.results import CacheStatus
from tests import servers
from tests.posting import SECRET, URL, payload, signed
from tests.sites import SIMULATED


class Quiet(WSGIRequestHandler):
    """Logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def under_wsgi() -> Iterator[int]:
    """The port of Python's own WSGI server."""
    server = WSGIServer(("127.0.0.1", 0), Quiet)
    server.set_app(get_wsgi_application())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def under_asgi() -> Iterator[int]:
    """The port of uvicorn."""
    try:
        import uvicorn  # noqa: PLC0415  # may be missing
    except ImportError:
        servers.skip_for_want_of("uvicorn", "pip install uvicorn")
    config = uvicorn.Config(
        get_asgi_application(), log_config=None, lifespan="off", ws="none", http="h11", loop="asyncio"
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture(params=[under_wsgi, under_asgi], ids=["wsgi", "asgi"])
def send(request: pytest.FixtureRequest, settings: Any, transactional_db: None) -> Iterator[Callable[..., bytes]]:
    """Send a request's head and body to a real server; what it answers first."""
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": uuid.uuid4().hex}
    }
    settings.CATALOG_FALLBACK = {
        "default": {
            "SOURCES": {"only": {"BACKEND": SIMULATED, "OPTIONS": {"items": {"P001": "Tea"}}}},
            "STOP_CHECK": "cache",
            "NOTICE_SECRETS": [SECRET],
        }
    }
    with request.param() as port:

        def call(headers: dict[str, str], body: bytes = b"") -> bytes:
            lines = [f"POST {URL} HTTP/1.1", "Host: localhost", "Connection: close", "Content-Type: application/json"]
            head = "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "", ""])
            with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as line:
                line.sendall(head.encode() + body)
                return line.recv(65_536)

        yield call


def chunked(body: bytes) -> bytes:
    """A body whose length is not told beforehand."""
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:10], body[10:]) if part) + b"0\r\n\r\n"


def test_a_notice_over_the_line(send: Callable[..., bytes]) -> None:
    """A real request, with its raw bytes."""
    services.find_item("P001")
    body = payload()
    assert send({**signed(body), "Content-Length": str(len(body))}, body).split()[1] == b"200"
    assert services.find_item("P001").cache is CacheStatus.MISS


def test_a_body_of_unknown_length(send: Callable[..., bytes], request: pytest.FixtureRequest) -> None:
    """Under ASGI it is read up to the limit; a WSGI server hands nothing over, and that is said."""
    body = payload()
    reply = send({**signed(body), "Transfer-Encoding": "chunked"}, chunked(body))
    is_wsgi = request.node.callspec.params["send"] is under_wsgi
    assert reply.split()[1] == (b"400" if is_wsgi else b"200")


def test_a_long_body_of_unknown_length(
    send: Callable[..., bytes], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read no further than to the limit."""
    monkeypatch.setattr("catalog_fallback.views.MAX_BYTES", 20)
    body = payload()
    reply = send({**signed(body), "Transfer-Encoding": "chunked"}, chunked(body))
    is_wsgi = request.node.callspec.params["send"] is under_wsgi
    assert reply.split()[1] == (b"400" if is_wsgi else b"413")


@pytest.mark.parametrize("length", [MAX_BYTES + 1, 10**30], ids=["one-too-many", "absurd"])
def test_a_long_body_is_refused_before_it_comes(
    settings: Any, transactional_db: None, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the head is sent, and the answer is there."""
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"only": {"BACKEND": SIMULATED}}, "NOTICE_SECRETS": [SECRET]}}
    monkeypatch.setattr(notices, "take", None)
    with under_wsgi() as port, closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as line:
        lines = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {length}", "", ""]
        line.sendall("\r\n".join([f"POST {URL} HTTP/1.1", *lines]).encode())
        assert line.recv(65_536).split()[1] == b"413"


@pytest.mark.parametrize("length", ["-1", "x", "1e3", "+5"])
def test_a_length_that_is_none(send: Callable[..., bytes], length: str) -> None:
    """It is not believed; whatever comes of it is no error of ours."""
    body = payload()
    assert send({**signed(body), "Content-Length": length}, body).split()[1] in {b"200", b"400", b"403", b"413"}


def test_leading_zeros_are_no_length(settings: Any, client: Any, transactional_db: None) -> None:
    """What counts is the number."""
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"only": {"BACKEND": SIMULATED}}, "NOTICE_SECRETS": [SECRET]}}
    body = payload()
    reply = client.post(
        URL, body, content_type="application/json", headers=signed(body), CONTENT_LENGTH="0" * 40 + str(len(body))
    )
    assert reply.status_code == 200


def test_a_client_that_hangs_up(settings: Any, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 into the void."""
    from django.http import HttpRequest, UnreadablePostError  # noqa: PLC0415  # only here

    def hang_up(self: HttpRequest, *args: Any) -> bytes:
        raise UnreadablePostError("gone")

    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"only": {"BACKEND": SIMULATED}}, "NOTICE_SECRETS": [SECRET]}}
    monkeypatch.setattr(HttpRequest, "read", hang_up)
    assert client.post(URL, b"x", content_type="application/json").status_code == 400
