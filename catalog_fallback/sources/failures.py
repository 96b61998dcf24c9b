"""Why did a call end without a complete reply? One table from exceptions to the reasons of the classification."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator

import requests.exceptions as requests
import urllib3.exceptions as urllib3

#: What the network, the server and the libraries between raise; anything else is a bug and is not caught.
NETWORK_ERRORS = (requests.RequestException, urllib3.HTTPError, http.client.HTTPException, OSError, ValueError)

_TIMEOUTS = (TimeoutError, urllib3.ReadTimeoutError, requests.Timeout)
#: Also a proxy of the environment that refuses us, is malformed or of an unknown kind: our own URL has been checked.
_NO_CONNECTION = (
    urllib3.NewConnectionError,
    urllib3.ProxyError,
    urllib3.ClosedPoolError,
    urllib3.LocationValueError,
    requests.InvalidURL,
    requests.InvalidSchema,
    requests.ProxyError,
)
_CUT_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
_CUT = (http.client.RemoteDisconnected, http.client.IncompleteRead, ConnectionError, *_CUT_TLS)

#: The first row that fits any exception of the chain decides.
_BEFORE_THE_BODY: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    (_TIMEOUTS, "timeout"),
    ((urllib3.NameResolutionError,), "dns_failed"),
    (_NO_CONNECTION, "connect_failed"),
    (_CUT, "connection_lost"),
    ((ssl.SSLError, urllib3.SSLError, requests.SSLError), "tls_failed"),
    # Here only from mocks: we read the body ourselves.
    ((requests.ChunkedEncodingError, requests.ContentDecodingError), "incomplete_body"),
    ((http.client.HTTPException, urllib3.InvalidHeader, requests.InvalidHeader, ValueError), "invalid_http"),
)


class TooLarge(OSError):
    """The body is over MAX_BYTES."""


class CutBody(OSError):
    """The packed data inside the body ended early."""


def before_the_body(error: BaseException) -> str:
    """Return the reason of a call that ended before there was a complete head."""
    chain = tuple(_chain(error))
    for types, reason in _BEFORE_THE_BODY:
        if any(isinstance(one, types) for one in chain):
            return reason
    return "connection_lost"


def in_the_body(error: BaseException) -> str:
    """Return the reason of a call that ended after a complete head."""
    if isinstance(error, TooLarge):
        return "too_large"
    return "timeout" if any(isinstance(one, _TIMEOUTS) for one in _chain(error)) else "incomplete_body"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and what it wraps: cause, arguments (requests, urllib3) and ``reason`` (MaxRetryError).

    Not ``__context__``: that may be an exception which the caller was handling already.
    """
    seen: list[BaseException] = []
    todo: list[object] = [error]
    while todo and len(seen) < 20:
        one = todo.pop(0)
        if isinstance(one, BaseException) and one not in seen:
            seen.append(one)
            todo += [*one.args, getattr(one, "reason", None), one.__cause__]
            yield one
