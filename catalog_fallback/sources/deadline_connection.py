"""How does a call end at its limit? urllib3's connections, with the deadline asked before each socket operation.

The hooks used here (``_new_conn``, ``response_class``, ``_make_request``, ``ConnectionCls`` and
``pool_classes_by_scheme``) are internals of urllib3 2; the tests would notice if one of them were gone.
"""

from __future__ import annotations

import http.client
import io
import socket
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from catalog_fallback.sources import connecting, resolver
from catalog_fallback.sources.deadline import Deadline
from catalog_fallback.sources.deadline_response import DeadlineResponse
from catalog_fallback.sources.proxy_socket import ProxySocket


class _DeadlineMixin(HTTPConnection):
    """What both schemes have in common."""

    #: What the next request line asks for; urllib3 itself, and so its log, is told only the part before the query.
    target: str = "/"

    @property
    def _deadline(self) -> Deadline:
        deadline: Deadline = self.timeout.deadline  # type: ignore[union-attr]  # always one of our Seconds
        return deadline

    def _new_conn(self) -> socket.socket:
        host, port = self._dns_host.strip("[]"), self.port
        left = self._deadline.left_to_connect
        try:
            addresses = resolver.of_this_process().resolve(host, port, left)
            return connecting.connect(addresses, left, self.socket_options or ())
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            resolver.of_this_process().forget(host, port)
            raise ConnectTimeoutError(self, f"no connection to {self.host} in time") from error
        except OSError as error:
            resolver.of_this_process().forget(host, port)
            raise NewConnectionError(self, f"no connection to {self.host}: {error}") from error

    def _tunnel(self) -> None:
        try:
            super()._tunnel()
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise NewConnectionError(self, "the proxy opened no tunnel") from error
        # The TLS handshake that follows takes its limit from the socket.
        self.sock.settimeout(self._deadline.left_to_connect())

    def putrequest(self, method: str, url: str, skip_host: bool = False, skip_accept_encoding: bool = False) -> None:
        super().putrequest(method, self.target, skip_host=skip_host, skip_accept_encoding=skip_accept_encoding)

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        view = memoryview(data)
        while view:
            self.sock.settimeout(self._deadline.left())
            view = view[self.sock.send(view) :]

    def response_class(self, sock: Any, *args: Any, **kwargs: Any) -> http.client.HTTPResponse:  # type: ignore[override]
        return DeadlineResponse(_ReadingSocket(sock, self._deadline), *args, **kwargs)


class DeadlineHTTPConnection(_DeadlineMixin):
    """Plain http."""


class DeadlineHTTPSConnection(_DeadlineMixin, HTTPSConnection):
    """https. One TLS handshake has one limit in CPython, so only what comes after it needs care."""

    def connect(self) -> None:
        super().connect()
        # An end without close_notify is a cut, never the end of a body.
        self.sock.suppress_ragged_eofs = False  # type: ignore[union-attr]  # of both kinds of TLS sockets

    def _connect_tls_proxy(self, hostname: str, sock: socket.socket) -> Any:
        sock.settimeout(self._deadline.left_to_connect())
        return ProxySocket(super()._connect_tls_proxy(hostname, sock), self._deadline.left_to_connect())


class _ReadingSocket:
    """Makes the file from which a response is read; all that ``http.client`` asks of a socket."""

    def __init__(self, sock: Any, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(DeadlineReader(self._sock.makefile(mode, buffering=0), self._sock, self._deadline))


class DeadlineReader(io.RawIOBase):
    """The bytes of one response; each ``recv`` gets what is left of the deadline."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: Deadline) -> None:
        self._raw = raw
        self._sock = sock
        self._deadline = deadline
        #: The server has ended the connection.
        self.has_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._deadline.left())
        count = self._raw.readinto(buffer)
        self.has_ended = count == 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _QuietMixin(HTTPConnectionPool):
    """Gives the request's target to the connection, and to urllib3 (which logs it) only what may be seen."""

    def _make_request(self, conn: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        conn.target = url
        return super()._make_request(conn, method, url.partition("?")[0], *args, **kwargs)


class DeadlineHTTPPool(_QuietMixin):
    """Keep-alive connections to one server over plain http."""

    ConnectionCls = DeadlineHTTPConnection


class DeadlineHTTPSPool(_QuietMixin, HTTPSConnectionPool):
    """Keep-alive connections to one server over https."""

    ConnectionCls = DeadlineHTTPSConnection


POOL_CLASSES = {"http": DeadlineHTTPPool, "https": DeadlineHTTPSPool}
