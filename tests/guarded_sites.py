"""What does a site look like whose own calls are guarded? A catalog, a cache to look into, and what a guard holds."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from catalog_fallback.guards import guards_of
from catalog_fallback.resilience.guard import GuardStatus
from catalog_fallback.testing import fake_source
from tests import stores

#: Two failures open it.
QUICK = {"BREAKER": {"CONSECUTIVE_FAILURES": 2, "FAILURE_RATE": None, "OPEN_FOR": 30}}


class Desk:
    """A site with guards; ``"desk"`` is the one that the tests use."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings
        self.location = uuid.uuid4().hex
        settings.CACHES = {"default": {"BACKEND": "tests.stores.MemoryCache", "LOCATION": self.location}}
        self.configure(desk=QUICK)

    def configure(self, **guards: Mapping[str, Any]) -> None:
        """Set GUARDS; as in a process that has just started."""
        source = {"only": fake_source({"P001": "Tea"})}
        catalog = {"SOURCES": source, "STOP_CHECK": "cache"}
        self._settings.CATALOG_FALLBACK = {"default": {**catalog, "GUARDS": guards}, "other": catalog}

    @property
    def shelf(self) -> stores.Shelf:
        """What the cache holds."""
        return stores.shelf(self.location)

    def status(self, alias: str = "desk", catalog: str = "default") -> GuardStatus:
        """What the guard does now."""
        guard = guards_of[catalog].get(alias)[1]
        return guard.status(guard.stores.read((guard,)))

    def is_idle(self) -> bool:
        """Nobody holds a seat of the bulkhead."""
        return self.status().in_use == 0
