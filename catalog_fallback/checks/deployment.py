"""What is fine on a developer's machine, and wrong where real people ask?"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import NoReverseMatch, reverse

from catalog_fallback.checks import times
from catalog_fallback.conf import Complaint, Place, backend_of
from catalog_fallback.configuration import CatalogConfig, SourceConfig


def deployed(catalogs: Iterable[CatalogConfig]) -> Iterator[Complaint]:
    """Complaints about sources, budgets and notices on a server."""
    catalogs = list(catalogs)
    for catalog in catalogs:
        for source in catalog.sources:
            yield from _source(source)
    if not any(catalog.notice_secrets for catalog in catalogs):
        yield from _notices(catalogs)
    yield from times.deployed(catalogs)


def _source(source: SourceConfig) -> Iterator[Complaint]:
    place = Place.of_source(source)
    if source.url is not None and is_exposed(source.url):
        yield place.at("URL").warning(
            "W016",
            "is plain http: anybody on the way can read the IDs, the headers and their secrets, and change the items.",
            "Write it with https.",
        )
    if backend_of(source).is_simulated:
        yield place.at("BACKEND").warning(
            "W018", "is simulated: it makes its items up.", "Name the real catalog's backend, or remove the source."
        )


def is_exposed(url: str) -> bool:
    """Return whether a URL is plain http to another machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "http" and not (host == "localhost" or host.endswith(".localhost") or _is_loopback(host))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _notices(catalogs: Iterable[CatalogConfig]) -> Iterator[Complaint]:
    """No catalog has a secret, so that the first one with the URL stands for all."""
    catalog = next((each for each in catalogs if _has_notice_url(each.alias)), None)
    if catalog is not None:
        yield (
            Place.of_catalog(catalog.alias)
            .at("NOTICE_SECRETS")
            .warning(
                "W019",
                "is empty, but the URL for deletion notices is there: every notice will be refused.",
                'Add a secret ("whsec_" and base64), or leave that URL out of the URLconf.',
            )
        )


def _has_notice_url(alias: str) -> bool:
    if not getattr(settings, "ROOT_URLCONF", None):
        return False
    try:
        reverse("catalog_fallback:notice", args=(alias,))
    except NoReverseMatch:
        return False
    return True
