"""Which catalogs do the commands work on in the tests, and how is one run?"""

from __future__ import annotations

import io
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from catalog_fallback import clock

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


@dataclass(frozen=True)
class Run:
    """How a command ended."""

    code: int
    out: str
    err: str
    message: str = ""


Runner = Callable[..., Run]


@pytest.fixture
def run(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run a command in this process; ``stdin`` is what it reads, in bytes or as a stream of its own."""

    def call(name: str, *args: str, stdin: object = b"") -> Run:
        if isinstance(stdin, bytes):
            stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii")
        monkeypatch.setattr(sys, "stdin", stdin)
        out, err = io.StringIO(), io.StringIO()
        try:
            call_command(name, *args, stdout=out, stderr=err)
        except CommandError as error:
            return Run(error.returncode, out.getvalue(), err.getvalue(), str(error))
        except SystemExit as error:
            return Run(int(error.code or 0), out.getvalue(), err.getvalue())
        return Run(0, out.getvalue(), err.getvalue())

    return call


def own_commands() -> dict[str, BaseCommand]:
    """The commands of this package, by name."""
    names = [name for name, app in get_commands().items() if app == "catalog_fallback"]
    return {name: load_command_class("catalog_fallback", name) for name in sorted(names)}
