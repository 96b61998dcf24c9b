"""Where are recorded replies of the real catalogs, and who reads them? They are not part of this project.

``CATALOG_RECORDED`` names their folder: ``index.json`` (one entry a reply: ``file``, ``status``, ``headers``),
``checks.json`` (one entry a case: ``file``, ``adapter``, ``asked``, ``expect``) and the bodies.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Outcome, Reply
from catalog_fallback.sources.base import Source

FOLDER = Path(os.environ.get("CATALOG_RECORDED") or Path(__file__).parents[3] / "shared" / "cases" / "recorded")
MISSING = f"NOT RUN: no recorded replies in {FOLDER.name!r}; name their folder in CATALOG_RECORDED"

#: The adapter's name in ``checks.json`` → module, class and options. Others in there are no adapters of ours.
ADAPTERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openlibrary": ("open_library", "OpenLibrarySource", {}),
    "openbd": ("openbd", "OpenBDSource", {}),
    "googlebooks": ("google_books", "GoogleBooksSource", {"key": "made-up-key", "country": "JP"}),
    "openfoodfacts": ("open_food_facts", "OpenFoodFactsSource", {}),
    "crossref": ("crossref", "CrossrefSource", {}),
    "datacite": ("datacite", "DataCiteSource", {}),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One row of ``checks.json``, with one expectation for each ID."""

    file: str
    adapter: str
    asked: tuple[str, ...]
    expected: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.adapter}-{self.file.partition('/')[2]}-{','.join(self.asked)}"


def is_there() -> bool:
    """Whether the recorded replies are on this machine."""
    return (FOLDER / "index.json").is_file() and (FOLDER / "checks.json").is_file()


@functools.cache
def replies() -> dict[str, Reply]:
    """Return file → reply, for everything that was recorded."""
    if not is_there():
        return {}
    entries = json.loads((FOLDER / "index.json").read_text("utf-8"))
    return {entry["file"]: _reply(entry) for entry in entries if (FOLDER / entry["file"]).is_file()}


@functools.cache
def meanings() -> dict[str, str]:
    """Return file → what it means in the words of whoever recorded it (``"not_found (…)"``, ``"stop …"``)."""
    entries = json.loads((FOLDER / "index.json").read_text("utf-8")) if is_there() else []
    return {entry["file"]: str(entry.get("expect", "")) for entry in entries}


def _reply(entry: dict[str, Any]) -> Reply:
    headers = {name.lower(): str(value) for name, value in (entry.get("headers") or {}).items()}
    status = int(str(entry["status"])[:3])  # one entry says "200 or 404 (not recorded)"
    return Reply(status, headers, (FOLDER / entry["file"]).read_bytes())


def cases() -> list[Case]:
    """Return the rows of ``checks.json`` that are for adapters of ours and whose reply is there."""
    if not is_there():
        return []
    rows = json.loads((FOLDER / "checks.json").read_text("utf-8"))
    return [
        Case(row["file"], row["adapter"], _tuple(row["asked"]), _tuple(row["expect"]))
        for row in rows
        if row["adapter"] in ADAPTERS and row["file"] in replies()
    ]


def _tuple(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def source(adapter: str, url: str | None = None) -> Source:
    """Return an adapter, asked at its own URL or another."""
    module, name, options = ADAPTERS[adapter]
    made: type[Source] = getattr(importlib.import_module(f"catalog_fallback.sources.{module}"), name)
    config = SourceConfig(adapter, url=url, contact="mail@example.com", options=options, timeout=10)
    return made(config, **options)


def word(outcome: Outcome, reason: str) -> str:
    """Return an outcome in the words of ``checks.json``."""
    return "no name" if reason == "no_name" else str(outcome)
