"""Is the code in order, without running it?"""

from __future__ import annotations

import os
import subprocess

from devtools.environments import MAIN
from devtools.running import ROOT, Failed, say


def lint(arguments: list[str]) -> None:
    """style, types, layers, missing migrations"""
    if arguments:
        raise Failed(f"lint takes no arguments: {' '.join(arguments)}")
    MAIN.ensure("test", "lint")
    python = MAIN.program("python")
    checks = {
        "style": [MAIN.program("ruff"), "check", "."],
        "format": [MAIN.program("ruff"), "format", "--check", "."],
        "types": [python, "-m", "mypy"],
        "layers": [MAIN.program("lint-imports")],
        "migrations": [python, "-m", "django", "makemigrations", "--check", "--dry-run", "--settings=tests.settings"],
    }
    failed = [name for name, command in checks.items() if not _passes(name, command)]
    if failed:
        raise Failed(f"these checks failed: {', '.join(failed)}")


def _passes(name: str, command: list[str]) -> bool:
    say(name)
    return subprocess.call(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}) == 0
