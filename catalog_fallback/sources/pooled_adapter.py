"""How does requests reach a source? Its adapter over our connections, one keep-alive pool per source and process."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Iterable, Mapping
from datetime import timedelta
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
import requests.certs
from requests.adapters import HTTPAdapter
from requests.cookies import RequestsCookieJar
from urllib3 import HTTPHeaderDict
from urllib3.util.ssl_ import create_urllib3_context

from catalog_fallback.sources import url_shape
from catalog_fallback.sources.deadline_connection import POOL_CLASSES
from catalog_fallback.sources.request_parts import PlainRequest


class PooledAdapter(HTTPAdapter):
    """``HTTPAdapter`` over connections that keep a deadline.

    ``send`` is not overridden: that is where the ``responses`` library puts its mocks in the tests of a site.
    """

    def __init__(self, authorities: str | None, max_connections: int) -> None:
        self._authorities = authorities
        #: The server that was asked last, with its pool.
        self._last: tuple[str, Any] = ("", None)
        super().__init__(pool_connections=4, pool_maxsize=max_connections)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools out of our classes."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOL_CLASSES

    def proxy_manager_for(self, proxy: str, **proxy_kwargs: Any) -> Any:
        """The same for connections through a proxy; SOCKS has its own, which limit each operation only."""
        if proxy.lower().startswith("https"):
            proxy_kwargs["proxy_ssl_context"] = self._tls_context()
        manager = super().proxy_manager_for(proxy, **proxy_kwargs)
        if not proxy.lower().startswith("socks"):
            manager.pool_classes_by_scheme = POOL_CLASSES
        return manager

    def get_connection_with_tls_context(
        self, request: Any, verify: Any, proxies: Mapping[str, str] | None = None, cert: Any = None
    ) -> Any:
        """Find the pool; a source nearly always asks the server that it asked before."""
        if proxies:
            return super().get_connection_with_tls_context(request, verify, proxies, cert)
        server = request.server if isinstance(request, PlainRequest) else url_shape.split(request.url)[0]
        last, pool = self._last
        if server != last:
            pool = super().get_connection_with_tls_context(request, verify, proxies, cert)
            self._last = server, pool
        return pool

    def request_url(self, request: Any, proxies: Mapping[str, str] | None) -> str:
        """Return what the request line says; without proxies, none of them has to be looked for."""
        if proxies:
            return super().request_url(request, proxies)
        path_url: str = request.path_url
        return path_url

    def build_response(self, req: Any, resp: Any) -> requests.Response:
        """Make what we read of a response: no cookies, no guess at the encoding."""
        return _PlainResponse(req, resp)

    def close(self) -> None:
        """Close the pools, and forget which was used last."""
        self._last = ("", None)
        super().close()

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        """Give https connections a TLS context that has read its certificates once."""
        host, pool = super().build_connection_pool_key_attributes(request, verify, cert)
        if host["scheme"] == "https":
            pool = {"cert_reqs": "CERT_REQUIRED", "ssl_context": self._tls_context()}
        return host, pool

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Nothing is left to do: the TLS context verifies, and no setting turns that off."""

    def _tls_context(self) -> ssl.SSLContext:
        return _context_of(self._authorities or requests.certs.where())  # type: ignore[attr-defined]


class _PlainResponse(requests.Response):
    """A response without a cookie jar, whose headers stay as urllib3 has read them."""

    def __init__(self, request: Any, raw: Any) -> None:
        self._content = False  # type: ignore[assignment]  # as requests has it
        self._content_consumed = False
        self._next = None
        self.status_code, self.reason, self.headers = raw.status, raw.reason, raw.headers
        self.raw, self.request, self.url = raw, request, request.url
        self.encoding = None
        self.history = []
        self.elapsed = timedelta(0)

    @property
    def cookies(self) -> RequestsCookieJar:  # type: ignore[override]
        """Nothing is kept of them."""
        return RequestsCookieJar()


def merged(headers: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Return names and values of a response's headers; what was sent in several lines is one."""
    return headers.itermerged() if isinstance(headers, HTTPHeaderDict) else headers.items()


class PlainSession(requests.Session):
    """A session that follows no redirect, keeps no cookie, and reads no environment.

    ``authorities`` is a file or directory of certificates, None for the ones that requests brings along.
    """

    def __init__(self, authorities: str | None, max_connections: int) -> None:
        super().__init__()
        self.trust_env = False
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        adapter = PooledAdapter(authorities, max_connections)
        self.adapters.clear()
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def get_redirect_target(self, resp: requests.Response) -> None:
        """No reply leads anywhere else; this also keeps requests from reading the body of a redirect."""


@functools.lru_cache(maxsize=32)
def _context_of(authorities: str) -> ssl.SSLContext:
    context = create_urllib3_context()
    _load(context, authorities)
    return context


def _load(context: ssl.SSLContext, authorities: str) -> None:
    try:
        context.load_verify_locations(cafile=authorities)
    except IsADirectoryError:
        context.load_verify_locations(capath=authorities)
