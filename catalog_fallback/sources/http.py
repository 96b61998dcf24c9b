"""How is one GET made? One call with one hard limit; nothing that an upstream does raises."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

import requests

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Reply, Request
from catalog_fallback.sources import failures
from catalog_fallback.sources.deadline import Deadline
from catalog_fallback.sources.pooled_adapter import PlainSession, merged
from catalog_fallback.sources.request_parts import RequestParts

_CHUNK = 65_536
#: The content codings that are undone, because they are asked for; a body in any other is taken as it is.
_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})


class HTTPTransport:
    """Makes the calls of one source. Threads may share it; after a fork it starts with a pool of its own.

    Making one opens no socket, starts no thread and reads no environment.
    """

    def __init__(self, config: SourceConfig) -> None:
        self._config = config
        self._requests = RequestParts(config)
        #: By process ID, because connections must not be shared over a fork.
        self._sessions: dict[int, PlainSession] = {}

    def get(self, request: Request, *, timeout: float) -> Reply | NoReply:
        """Make one call that ends within ``timeout`` seconds.

        CONNECT_TIMEOUT limits resolving, connecting and the TLS handshake together. Raises ValueError for a request
        that must not be sent, and what a callable in HEADERS raises; nothing else.
        """
        if timeout <= 0:
            return NoReply("timeout")
        deadline = Deadline(timeout, self._config.connect_timeout)
        prepared = self._requests.prepare(request)
        session = self._session(request.url)
        try:
            # What the session itself would add (redirects, cookies, hooks) is not wanted here.
            response = session.get_adapter(request.url).send(
                prepared, stream=True, timeout=cast("Any", deadline), proxies=session.proxies, verify=True, cert=None
            )
        except failures.NETWORK_ERRORS as error:
            return NoReply(failures.before_the_body(error))
        return self._complete(response, deadline)

    def close(self) -> None:
        """Close the connections of this process; the next call opens new ones."""
        session = self._sessions.pop(os.getpid(), None)
        if session is not None:
            session.close()

    def _session(self, url: str) -> PlainSession:
        pid = os.getpid()
        return self._sessions.get(pid) or self._sessions.setdefault(pid, self._new_session(url))

    def _new_session(self, url: str) -> PlainSession:
        """Read proxies and the certificate bundle of the environment, if asked to; ``.netrc`` is not among it."""
        if not self._config.trust_env:
            return PlainSession(None, self._config.max_concurrent)
        environment = requests.Session().merge_environment_settings(url, {}, True, None, None)
        authorities = environment["verify"]
        session = PlainSession(authorities if isinstance(authorities, str) else None, self._config.max_concurrent)
        session.proxies = dict(environment["proxies"])
        return session

    def _complete(self, response: requests.Response, deadline: Deadline) -> Reply | NoReply:
        status, headers = response.status_code, {name.lower(): value for name, value in merged(response.headers)}
        try:
            pieces = _pieces(response.raw, headers.get("content-encoding", ""))
            body = b"".join(_limited(pieces, self._config.max_bytes, deadline))
        except failures.NETWORK_ERRORS as error:
            reason = failures.in_the_body(error)
            return Reply(status, headers) if _says_enough(status) and reason != "timeout" else NoReply(reason)
        finally:
            # Harmless after a complete body; otherwise this keeps the connection out of the pool.
            response.close()
        return Reply(status, headers, body)


def _says_enough(status: int) -> bool:
    """Busy or broken: that holds whatever the body is like, and ``Retry-After`` counts."""
    return status == 429 or status >= 500


def _limited(pieces: Iterator[bytes], max_bytes: int, deadline: Deadline) -> Iterator[bytes]:
    """Pass the pieces on while they are few enough and there is time: unpacking takes time without any ``recv``."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > max_bytes:
            raise failures.TooLarge
        deadline.left()
        yield piece


def _pieces(raw: Any, codings: str) -> Iterator[bytes]:
    """Yield the body, unpacked, in bounded pieces; raise when it ends early."""
    is_coded = {coding.strip().lower() for coding in codings.split(",")} <= _CODINGS
    while piece := raw.read1(_CHUNK, decode_content=is_coded):
        yield piece
        if not codings and raw.length_remaining == 0:
            return
    if is_coded and not _is_unpacked(raw):
        raise failures.CutBody


def _is_unpacked(raw: Any) -> bool:
    """Tell whether packed data ended with their own end mark; what is not visible counts as complete."""
    decoder = getattr(raw, "_decoder", None)
    return not raw.tell() or all(
        getattr(getattr(one, "_obj", None), "eof", True) for one in getattr(decoder, "_decoders", [decoder])
    )
