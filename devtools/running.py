"""How does dev.py run a program, and how does it say what went wrong?"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent


class Failed(Exception):
    """What a person has to read; its text is the whole message."""


def say(text: str) -> None:
    """Tell what is going on, beside the output of the programs."""
    print(f"dev.py: {text}", file=sys.stderr, flush=True)


def run(command: list[str], *, directory: Path = ROOT, variables: Mapping[str, str] | None = None) -> None:
    """Run a command in the project's directory; raises Failed where it fails.

    ``variables`` are added to the environment.
    """
    code = subprocess.call(command, cwd=directory, env={**os.environ, **(variables or {})})
    if code != 0:
        raise Failed(f"failed with exit code {code}: {' '.join(command)}")


def become(command: list[str]) -> NoReturn:
    """Run the last command in this program's place, so that signals and the exit code are its own."""
    sys.stdout.flush()
    if os.name == "nt":
        sys.exit(subprocess.call(command, cwd=ROOT))
    os.chdir(ROOT)
    os.execv(command[0], command)  # noqa: S606  # a program of our own .venv, no shell wanted
