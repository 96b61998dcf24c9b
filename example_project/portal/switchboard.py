"""How does the site reach the faults of the simulated catalogs? Over HTTP, as they run in another process."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import URLError
from urllib.parse import quote, urlencode
from urllib.request import urlopen

from django.conf import settings

from catalogs.server import DEFAULT_PORT

TIMEOUT = 2.0


def address(path: str) -> str:
    """The URL of a path on the server of the simulated catalogs."""
    return f"{getattr(settings, 'CATALOG_SERVER', f'http://127.0.0.1:{DEFAULT_PORT}')}{path}"


def state() -> dict[str, dict[str, Any]] | None:
    """Fault and calls of each simulated catalog; None where their server does not run."""
    try:
        with urlopen(address("/_faults"), timeout=TIMEOUT) as reply:
            catalogs: dict[str, dict[str, Any]] = json.load(reply)
    except (URLError, OSError, ValueError):
        return None
    return catalogs


def calls() -> dict[str, int] | None:
    """How often each simulated catalog was called, by its own count; None where their server does not run."""
    catalogs = state()
    return None if catalogs is None else {name: int(row["calls"]) for name, row in catalogs.items()}


def switch(catalog: str, fault: str) -> bool:
    """Give a simulated catalog this fault; False where that could not be done."""
    return _post(f"/_faults/{quote(catalog, safe='')}", fault=fault)


def reset() -> bool:
    """Make every simulated catalog healthy again."""
    return _post("/_reset")


def _post(path: str, **form: str) -> bool:
    try:
        urlopen(address(path), data=urlencode(form).encode(), timeout=TIMEOUT).close()
    except (URLError, OSError):
        return False
    return True
