"""What did the real APIs once answer? Replies from a directory with ``index.json`` and ``checks.json``, unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalogs.answers import Answer

#: The name of an adapter in checks.json → our catalog.
_ADAPTERS = {"openbd": "openbd", "openlibrary": "open_library"}


def load(directory: Path) -> Mapping[tuple[str, str], Answer]:
    """Recorded replies by (catalog, ISBN-13); where several were recorded for one ISBN, a found one is taken."""
    index = {entry["file"]: entry for entry in _read(directory / "index.json")}
    replies: dict[tuple[str, str], Answer] = {}
    checks = [check for check in _read(directory / "checks.json") if _is_usable(check, index)]
    for check in sorted(checks, key=lambda check: bool(check["expect"] != "found")):
        key = (_ADAPTERS[check["adapter"]], isbn13(check["asked"]))
        replies.setdefault(key, _answer(directory, index[check["file"]]))
    return replies


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
    return Answer(int(entry["status"]), (directory / entry["file"]).read_bytes(), content_type, headers)


def _read(path: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return entries
