"""Which catalogs do the commands work on in the tests, and how is one run?"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from catalog_fallback import clock
from tests.commands import Runner, runner

if TYPE_CHECKING:
    from pytest_django import Settings

SIMULATED = "catalog_fallback.sources.simulated.SimulatedSource"
ITEMS = {
    "P001": "Tea",
    "P002": "Coffee",
    "ESC": "\x1b[31mred\n",
    "LONG": {"name": "long", "text": "x" * 1000, "tags": ["a", "緑"]},
}


@pytest.fixture(autouse=True)
def _catalogs(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two catalogs without HTTP; waiting for the cache costs no time."""
    options = {"items": ITEMS, "failing": {"BUSY": 503, "BROKEN": "timeout"}}
    source = {"BACKEND": SIMULATED, "OPTIONS": options, "BREAKER": None}
    cache = {"BACKEND": "tests.admin.site.SwitchedCache", "OPTIONS": {"MAX_ENTRIES": 10_000}}
    settings.CACHES = {"default": {**cache, "LOCATION": uuid.uuid4().hex}}
    settings.CATALOG_FALLBACK = {
        "default": {"SOURCES": {"only": source}, "STOP_CHECK": "cache"},
        "other": {"SOURCES": {"only": source}, "STOP_CHECK": "cache", "ID_PATTERN": r"\d+"},
    }
    monkeypatch.setattr(clock, "sleep", lambda seconds: None)


@pytest.fixture
def run(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run a command in this process, outside any transaction."""
    return runner(monkeypatch)


def own_commands() -> dict[str, BaseCommand]:
    """The commands of this package, by name."""
    names = [name for name, app in get_commands().items() if app == "catalog_fallback"]
    return {name: load_command_class("catalog_fallback", name) for name in sorted(names)}
