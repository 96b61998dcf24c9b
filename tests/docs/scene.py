"""In which site do the examples of the documentation run? One whose catalogs all have what the pages ask for.

No page needs the network: every catalog has a simulated source, and tasks are enqueued nowhere. Packages that a page is
about and that are not installed here are replaced by stand-ins, so that its code runs as far as it is ours.
"""

from __future__ import annotations

import importlib.util
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest import mock

from django.dispatch import Signal
from django.test import override_settings

from catalog_fallback import signals
from catalog_fallback.testing import fake_source
from tests.posting import SECRET

ITEMS = {f"P{number:03}": f"Item {number}" for number in range(1, 10)}
BOOKS = {"9784063879179": "Amaama to Inazuma 1", "9783161484100": "A book"}
#: Alias → source and ID form of each catalog that the pages speak of.
CATALOGS: dict[str, dict[str, Any]] = {
    "default": {
        "SOURCES": {"primary": fake_source(ITEMS), "secondary": fake_source(ITEMS)},
        "NOTICE_SECRETS": [SECRET],
    },
    "books": {
        "SOURCES": {"openbd": fake_source(BOOKS), "open_library": fake_source(BOOKS)},
        "NORMALIZE_ID": "catalog_fallback.sources.identifiers.isbn13",
    },
    "products": {
        "SOURCES": {"open_food_facts": fake_source({"04006381333931": "Tea"})},
        "NORMALIZE_ID": "catalog_fallback.sources.identifiers.gtin14",
    },
}
#: Packages of the sites that the pages speak of.
SITES = ("shop", "your_site")
#: What consumers and integrations are written for, beside what the tests have.
STAND_INS = (
    *("boto3", "celery", "confluent_kafka", "google", "google.cloud", "health_check", "health_check.views"),
    *("debug_toolbar", "debug_toolbar.settings", "opentelemetry", "opentelemetry.trace", "pika"),
    *("prometheus_client", "prometheus_client.core", "prometheus_client.multiprocess"),
)


def _is_missing(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is None
    except ImportError:
        return True


def _stand_in(name: str) -> ModuleType:
    """A module in which every name is there; a decorator leaves its function as it is."""
    stand_in = mock.MagicMock(name=name)
    stand_in.__name__, stand_in.__path__, stand_in.__spec__ = name, [], None
    return stand_in


@contextmanager
def listeners_taken_back() -> Iterator[None]:
    """Whoever begins to listen meanwhile does not hear of what comes after."""
    listeners = [(each, list(each.receivers)) for each in vars(signals).values() if isinstance(each, Signal)]
    try:
        yield
    finally:
        for signal, receivers in listeners:
            signal.receivers = receivers
            signal.sender_receivers_cache.clear()


@contextmanager
def scene(pages: str) -> Iterator[None]:
    """The site, with an empty cache; listeners, and what a page puts into ``sys.modules``, are taken out again.

    A package that is there stays: loaded a second time it would have a second registry, or whatever else it has one of.
    """
    before = set(sys.modules)
    missing = {name for name in STAND_INS if _is_missing(name)}
    location = f"docs-{pages}-{uuid.uuid4().hex}"
    cache = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": location}
    sys.modules |= {name: _stand_in(name) for name in (*missing, *SITES, "shop.models")}
    try:
        nobody = mock.patch("catalog_fallback.contrib.tasks._sender", return_value=lambda *arguments: None)
        with override_settings(CACHES={"default": cache}, CATALOG_FALLBACK=CATALOGS), nobody, listeners_taken_back():
            yield
    finally:
        for name in set(sys.modules) - before:
            if name in missing or name.partition(".")[0] in SITES:
                del sys.modules[name]
