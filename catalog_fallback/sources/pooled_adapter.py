"""How does requests reach a source? Its adapter over our connections, one keep-alive pool per source and process."""

from __future__ import annotations

import functools
import ssl
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
import requests.certs
from requests.adapters import HTTPAdapter
from urllib3.util.ssl_ import create_urllib3_context

from catalog_fallback.sources.deadline_connection import POOL_CLASSES


class PooledAdapter(HTTPAdapter):
    """``HTTPAdapter`` over connections that keep a deadline.

    ``send`` is not overridden: that is where the ``responses`` library puts its mocks in the tests of a site.
    """

    def __init__(self, authorities: str | None, max_connections: int) -> None:
        self._authorities = authorities
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
