"""Where do the example's settings come from? The environment; and a demo that runs, so that commands join it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
#: Where the example keeps what it makes.
VAR = Path(os.environ.get("EXAMPLE_VAR", PROJECT / "var"))
#: Written by ``demo`` while it runs: the settings that make a command in another terminal see the demo's data.
RUNNING = VAR / "running.json"


def environment() -> Mapping[str, str]:
    """The variables that the settings read; those of the process win over those of a running demo."""
    return {**running_demo(), **os.environ}


def running_demo(path: Path = RUNNING) -> dict[str, str]:
    """The variables of the demo that runs at the moment; empty where none does."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        os.kill(int(values.pop("PID")), 0)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}
    return {str(name): str(value) for name, value in values.items()}


def secret_key(directory: Path) -> str:
    """A secret key that is made at first use and kept beside the data."""
    path = directory / "secret_key"
    directory.mkdir(parents=True, exist_ok=True)
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        path.touch(mode=0o600)
        path.write_text(key := secrets.token_urlsafe(50), encoding="ascii")
        return key


def notice_secret(key: str) -> str:
    """A secret for deletion notices, so that nobody has to make one; a real site gets its own from its provider."""
    return "whsec_" + base64.b64encode(hashlib.sha256(f"notices {key}".encode()).digest()).decode()
