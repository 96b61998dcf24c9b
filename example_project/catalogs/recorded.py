"""What did the real APIs once answer? Replies from a directory with ``index.json`` and ``checks.json``, unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalogs.answers import Answer
from catalogs.products import gtin

#: The name of an adapter in checks.json → our catalog.
_ADAPTERS = {
    "openbd": "openbd",
    "openlibrary": "open_library",
    "openfoodfacts": "open_food_facts",
    "crossref": "crossref",
    "datacite": "datacite",
}
_DOI_URL = "https://doi.org/"


def load(directory: Path) -> Mapping[tuple[str, str], Answer]:
    """Recorded replies by (catalog, ID); where several were recorded for one ID, a found one is taken."""
    index = {entry["file"]: entry for entry in _read(directory / "index.json")}
    replies: dict[tuple[str, str], Answer] = {}
    checks = [check for check in _read(directory / "checks.json") if _is_usable(check, index)]
    for check in sorted(checks, key=lambda check: bool(check["expect"] != "found")):
        catalog = _ADAPTERS[check["adapter"]]
        replies.setdefault((catalog, filed_as(catalog, check["asked"])), _answer(directory, index[check["file"]]))
    return replies


def filed_as(catalog: str, item_id: str) -> str:
    """The one form of an ID under which this catalog's replies are filed."""
    if catalog in {"crossref", "datacite"}:
        return item_id.removeprefix(_DOI_URL).lower()
    return gtin(item_id) if catalog == "open_food_facts" else isbn13(item_id)


def isbn13(text: str) -> str:
    """The 13-digit form of an ISBN that is known to be valid."""
    digits = text.replace("-", "").replace(" ", "")
    if len(digits) != 10:
        return digits
    body = "978" + digits[:9]
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(body))
    return f"{body}{-total % 10}"


def _is_usable(check: Mapping[str, Any], index: Mapping[str, Any]) -> bool:
    return check["adapter"] in _ADAPTERS and isinstance(check["asked"], str) and check["file"] in index


def _answer(directory: Path, entry: Mapping[str, Any]) -> Answer:
    headers = {name.title(): value for name, value in entry["headers"].items()}
    content_type = headers.pop("Content-Type", "application/octet-stream")
    return Answer(int(str(entry["status"])[:3]), (directory / entry["file"]).read_bytes(), content_type, headers)


def _read(path: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return entries
