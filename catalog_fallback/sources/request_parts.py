"""What does one request say? URL and headers, checked before anything is sent, in errors that show no value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

import requests
from requests.hooks import default_hooks
from requests.structures import CaseInsensitiveDict

import catalog_fallback
from catalog_fallback.configuration import HeaderValue, SourceConfig
from catalog_fallback.results import Request
from catalog_fallback.sources import url_shape

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def prepare(request: Request, config: SourceConfig) -> requests.PreparedRequest:
    """Return what will be sent. The site's HEADERS win over those of the adapter, and they over the defaults.

    Raises ValueError for a URL that is not plain or leads to another server than the source's own URL, and for a header
    that cannot be sent. What a callable in HEADERS raises is passed on.
    """
    prepared = requests.PreparedRequest()
    prepared.method = "GET"
    prepared.url = _url(request, config)
    prepared.headers = _headers(request, config)
    prepared.hooks = default_hooks()
    return prepared


def _url(request: Request, config: SourceConfig) -> str:
    url = request.url
    if request.params:
        query = urlencode(request.params, quote_via=quote, safe="")
        url = f"{url}{'&' if '?' in url else '?'}{query}"
    server, _ = url_shape.split(url)
    if config.url is not None and url_shape.origin_of(server) != url_shape.origin_of(config.url):
        raise ValueError(f"source {config.alias!r} may be asked only at the server of its own URL")
    return url


def _headers(request: Request, config: SourceConfig) -> CaseInsensitiveDict[str]:
    headers: CaseInsensitiveDict[str] = CaseInsensitiveDict()
    headers["User-Agent"] = user_agent(config.contact)
    headers["Accept"] = "application/json"
    headers["Accept-Encoding"] = "gzip, deflate"
    _add(headers, request.headers, config.alias)
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
