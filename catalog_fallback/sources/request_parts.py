"""What does one request say? URL and headers, checked before anything is sent, in errors that show no value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

import requests
from requests.structures import CaseInsensitiveDict

import catalog_fallback
from catalog_fallback.configuration import HeaderValue, SourceConfig
from catalog_fallback.results import Request
from catalog_fallback.sources import url_shape

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class PlainRequest(requests.PreparedRequest):
    """A GET without a body. ``server`` and ``path_url`` are the two parts of its URL, which was looked through once."""

    path_url = ""

    def __init__(self, server: str, target: str, headers: CaseInsensitiveDict[str]) -> None:
        super().__init__()
        self.method = "GET"
        self.url = server + target
        self.headers = headers
        self.server = server
        self.path_url = target if target.startswith("/") else f"/{target}"


class _Headers(CaseInsensitiveDict[str]):
    """Those of a source's requests, which are the same for all of them unless the site computes some."""

    def copy(self) -> dict[str, str]:  # type: ignore[override]
        """What urllib3 sends is a copy of its own: a plain dict is enough for it."""
        return dict(self.items())


class RequestParts:
    """Makes the requests of one source."""

    def __init__(self, config: SourceConfig) -> None:
        self._config = config
        #: The server that was asked last, and may be.
        self._server = ""
        #: What an adapter wanted to send last, and the headers that this came to.
        self._sent: tuple[Mapping[str, HeaderValue], _Headers] | None = None

    def prepare(self, request: Request) -> PlainRequest:
        """Return what will be sent. The site's HEADERS win over those of the adapter, and they over the defaults.

        Raises ValueError for a URL that is not plain or leads to another server than the source's own URL, and for a
        header that cannot be sent. What a callable in HEADERS raises is passed on.
        """
        server, target = url_shape.split(_url(request))
        if server != self._server:
            self._check(server)
            self._server = server
        return PlainRequest(server, target, self._headers(request.headers))

    def _check(self, server: str) -> None:
        own = self._config.url
        if own is not None and url_shape.origin_of(server) != url_shape.origin_of(own):
            raise ValueError(f"source {self._config.alias!r} may be asked only at the server of its own URL")

    def _headers(self, wanted: Mapping[str, HeaderValue]) -> _Headers:
        """Return the headers, the same as last time where nobody has to be asked for one."""
        sent = self._sent
        if sent is not None and sent[0] == wanted:
            return sent[1]
        headers = _headers(wanted, self._config)
        if not any(map(callable, (*wanted.values(), *self._config.headers.values()))):
            self._sent = dict(wanted), headers
        return headers


def _url(request: Request) -> str:
    if not request.params:
        return request.url
    query = urlencode(request.params, quote_via=quote, safe="")
    return f"{request.url}{'&' if '?' in request.url else '?'}{query}"


def _headers(wanted: Mapping[str, HeaderValue], config: SourceConfig) -> _Headers:
    headers = _Headers()
    headers["User-Agent"] = user_agent(config.contact)
    headers["Accept"] = "application/json"
    headers["Accept-Encoding"] = "gzip, deflate"
    _add(headers, wanted, config.alias)
    _add(headers, config.headers, config.alias)
    return headers


def user_agent(contact: str) -> str:
    """Name this package, and whom to write to about its calls."""
    name = f"django-catalog-fallback/{catalog_fallback.__version__}"
    return f"{name} (+{contact})" if contact else name


def _add(headers: CaseInsensitiveDict[str], more: Mapping[str, HeaderValue], source: str) -> None:
    for name, given in more.items():
        value: object = given() if callable(given) else given
        if not isinstance(value, str) or _VALUE.fullmatch(value) is None or _TOKEN.fullmatch(name) is None:
            raise ValueError(
                f"header {name!r} of source {source!r} cannot be sent: "
                "its value has to be a str of Latin-1 characters without line breaks"
            )
        headers[name] = value
