"""Which of the packages that contrib works with are here? A test whose package is missing is skipped, loudly."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests import servers
from tests.sites import SIMULATED


@pytest.fixture
def needs() -> Callable[[str, str], ModuleType]:
    """Import a package, or skip the test: ``needs("rest_framework", "djangorestframework")``."""

    def find(module: str, package: str) -> ModuleType:
        try:
            return importlib.import_module(module)
        except ImportError:
            servers.skip_for_want_of(package, f"pip install {package}")
            raise

    return find


@pytest.fixture
def shop(settings: Any, transactional_db: None) -> None:
    """Two catalogs whose source has a few items."""
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": uuid.uuid4().hex}
    }
    options = {"items": {f"P{n:04}": "Tea" for n in range(1200)}, "failing": {"BUSY": 503}}
    source = {"BACKEND": SIMULATED, "OPTIONS": options, "BREAKER": None}
    settings.CATALOG_FALLBACK = {
        "default": {"SOURCES": {"only": source}, "STOP_CHECK": "cache"},
        "slow": {"SOURCES": {"only": source}, "UNAVAILABLE_STATUS": 504},
    }
