"""Which Pythons are on this machine?"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from devtools.environments import THIS, Interpreter

_VERSION = "import platform; print(platform.python_version())"


def find(wanted: str) -> Interpreter | None:
    """Return a Python of this version (``"3.12"``), or None where there is none.

    The one that runs this comes first, then the PATH, pyenv's, and those that uv knows; nothing is downloaded.
    """
    for path in _candidates(wanted):
        version = _version_of(path)
        if version.startswith(f"{wanted}."):
            return Interpreter(path, version)
    return None


def _candidates(wanted: str) -> Iterator[str]:
    yield THIS.path
    if on_path := shutil.which(f"python{wanted}"):
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{wanted}.*/bin/python{wanted}"), reverse=True))
    if uv := shutil.which("uv"):
        yield _output([uv, "python", "find", "--no-python-downloads", wanted])


def _version_of(path: str) -> str:
    """The version that a Python gives; empty where it does not run, as pyenv's stand-ins for what is not active."""
    return _output([path, "-I", "-c", _VERSION]) if path else ""


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
