"""What is a site with two catalogs like? Two loopback servers, settings that ask them in order, a clock to move."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from catalog_fallback import clock, services
from catalog_fallback.results import Lookup
from tests import loopback as wire
from tests.loopback import Loopback, Script

ITEM = {"id": "P001", "name": "Tea"}
OTHER_ITEM = {"id": "P001", "name": "Coffee"}

#: What one server may say about P001.
FOUND = wire.ok({"item": ITEM})
ALSO_FOUND = wire.ok({"item": OTHER_ITEM})
NOT_FOUND = wire.ok({"item": None})
TEMPORARY = wire.reply(503)
STOP = wire.reply(403)

SIMULATED = "catalog_fallback.sources.simulated.SimulatedSource"
LOCMEM = "django.core.cache.backends.locmem.LocMemCache"


def found(headers: wire.Headers = (), **fields: Any) -> Script:
    """A complete item with these reply headers and further fields."""
    return wire.ok({"item": {**ITEM, **fields}}, headers)


class Site:
    """Two catalogs and one Django site that asks them; everything is fresh for each test."""

    def __init__(self, settings: Any, primary: Loopback, secondary: Loopback) -> None:
        self._settings = settings
        self.primary = primary
        self.secondary = secondary
        self.cache_in(LOCMEM, OPTIONS={"MAX_ENTRIES": 1_000_000})
        self.configure()

    def cache_in(self, backend: str, **params: Any) -> None:
        """Use another cache, empty."""
        self._settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": uuid.uuid4().hex, **params}}

    def configure(
        self, primary: Mapping[str, Any] | None = None, secondary: Mapping[str, Any] | None = None, **catalog: Any
    ) -> None:
        """Set keys of the sources and of the catalog; everything else has its default (STOP_CHECK: "cache")."""
        sources = {
            "primary": {"URL": self.primary.template, **(primary or {})},
            "secondary": {"URL": self.secondary.template, **(secondary or {})},
        }
        self._settings.CATALOG_FALLBACK = {"default": {"STOP_CHECK": "cache", "SOURCES": sources, **catalog}}

    def simulate(self, *reasons: str | int | None, **catalog: Any) -> None:
        """Replace the sources by simulated ones: each ends with a reason or status, None has every test's item."""
        names = ("primary", "secondary", "third")
        sources = {
            name: {"BACKEND": SIMULATED, "OPTIONS": {"failure": reason, "items": {"P001": "Tea"}}}
            for name, reason in zip(names, reasons, strict=False)
        }
        self._settings.CATALOG_FALLBACK = {"default": {"STOP_CHECK": "cache", "SOURCES": sources, **catalog}}

    def say(self, primary: Script, secondary: Script = NOT_FOUND) -> None:
        """Say how the servers answer from now on."""
        self.primary.otherwise(primary)
        self.secondary.otherwise(secondary)

    @property
    def calls(self) -> tuple[int, int]:
        """How often each server was called."""
        return self.primary.calls(), self.secondary.calls()

    def find(self, item_id: str = "P001", **arguments: Any) -> Lookup:
        """One lookup."""
        return services.find_item(item_id, **arguments)


class MovableClock:
    """The real clocks plus what the test adds; waiting costs no time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        monkeypatch.setattr(clock, "wall", lambda: time.time() + self.ahead)
        monkeypatch.setattr(clock, "monotonic", lambda: time.monotonic() + self.ahead)
        monkeypatch.setattr(clock, "sleep", self.move)

    def move(self, seconds: float) -> None:
        """Let this much time pass at once."""
        self.ahead += seconds


def words(lookup: Lookup) -> tuple[str, str]:
    """State and reason of a lookup."""
    return str(lookup.state), lookup.reason


def story(lookup: Lookup) -> list[tuple[str, str, str]]:
    """The trace without its times: source, outcome, reason."""
    return [(attempt.source, str(attempt.outcome), attempt.reason) for attempt in lookup.trace]
