"""Which fixtures do the tests of the example have? The simulated catalogs in a thread, and a site that asks them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from django.conf import settings as site_settings
from django.core.cache import cache
from django.test import Client, override_settings

from catalogs.server import CatalogServer, Switchboard
from portal.environment import notice_secret


@pytest.fixture
def catalogs() -> Iterator[CatalogServer]:
    """The running server of the simulated catalogs, all healthy."""
    with CatalogServer(("127.0.0.1", 0), Switchboard()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def catalogs_url(catalogs: CatalogServer) -> str:
    """Its address."""
    return f"http://127.0.0.1:{catalogs.server_address[1]}"


@pytest.fixture
def site(catalogs_url: str) -> Iterator[Client]:
    """A browser on the example site as it is demonstrated (DEBUG); its catalogs are the simulated ones."""
    sources = {
        name: {"URL": f"{catalogs_url}/{name}/items/{{id}}", "TIMEOUT": 1.0} for name in ("primary", "secondary")
    }
    shop = {name: {**source, "RATE_LIMIT": {"CALLS": 5, "PER": 60}} for name, source in sources.items()}
    with override_settings(
        DEBUG=True,
        INSTALLED_APPS=[*site_settings.INSTALLED_APPS, "catalogs", "portal"],
        MIDDLEWARE=["portal.middleware.content_security_policy", *site_settings.MIDDLEWARE],
        ROOT_URLCONF="portal.urls",
        CATALOG_SERVER=catalogs_url,
        CATALOG_FALLBACK={
            "default": {"SOURCES": sources, "KEY_PREFIX": "portal", "NOTICE_SECRETS": [notice_secret("test")]},
            "shop": {
                "SOURCES": shop,
                "KEY_PREFIX": "portal",
                "FALLBACK": "portal.own_data.own_words",
                "GUARDS": {"payments": {"RATE_LIMIT": {"CALLS": 100, "PER": 60}}},
            },
        },
    ):
        yield Client()
    cache.clear()
