"""What is installed where? Virtual environments that are made here, and made anew when ``pyproject.toml`` changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devtools.running import ROOT, Failed, run, say

EXTRAS = ("redis", "books")


@dataclass(frozen=True)
class Interpreter:
    """A Python on this machine."""

    path: str
    version: str


#: The Python that runs dev.py.
THIS = Interpreter(sys.executable, "{}.{}.{}".format(*sys.version_info[:3]))


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds the project, editable, and groups of its dependencies.

    ``pins`` narrow what the project asks for: ``("Django~=6.0.0",)``.
    """

    path: Path
    interpreter: Interpreter = THIS
    pins: tuple[str, ...] = ()

    @property
    def mark(self) -> Path:
        """The file that says that this program made the directory, and what is in it."""
        return self.path / "made-by-dev.json"

    @property
    def name(self) -> str:
        """Its path as a person would write it."""
        return str(self.path.relative_to(ROOT)) if self.path.is_relative_to(ROOT) else str(self.path)

    def program(self, name: str) -> str:
        """The path of a program in it."""
        directory, suffix = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
        return str(self.path / directory / f"{name}{suffix}")

    def ensure(self, *needed: str) -> None:
        """Make it hold the project and these groups; costs nothing when it does already.

        Raises Failed where it is somebody else's, or where something cannot be installed.
        """
        pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        wanted = fingerprint(pyproject, self.interpreter.version, self.pins)
        mark = self.read_mark()
        anew, groups = groups_to_install(mark, wanted, needed)
        installed = [] if anew or mark is None else list(mark["groups"])
        if anew:
            self._make()
        if groups:
            say(f"installing {', '.join(groups)} into {self.name} …")
            run(install_command(shutil.which("uv"), self.program("python"), groups, self.pins))
            self.mark.write_text(json.dumps({"hash": wanted, "groups": sorted({*installed, *groups})}))

    def read_mark(self) -> dict[str, Any] | None:
        """What is in it, or None where it is not there or unfinished."""
        try:
            mark = json.loads(self.mark.read_text())
        except (OSError, ValueError):
            return None
        return mark if isinstance(mark, dict) else None

    def _make(self) -> None:
        """Make it, empty, in place of an outdated one of ours."""
        if self.path.exists() and not self.mark.exists():
            raise Failed(f"{self.path} was not made by dev.py, so it is left alone. Move it away and try again.")
        say(f"making {self.name} with Python {self.interpreter.version} …")
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        self.mark.write_text("{}")
        if uv := shutil.which("uv"):
            run([uv, "venv", "--quiet", "--allow-existing", "--python", self.interpreter.path, str(self.path)])
        else:
            self._make_with_venv()

    def _make_with_venv(self) -> None:
        """Fill it from the standard library; its pip is brought up to date, for an old one knows no ``--group``."""
        if subprocess.call([self.interpreter.path, "-m", "venv", str(self.path)]) != 0:
            raise Failed(
                f"{self.interpreter.path} cannot make virtual environments (on Debian: the package python3-venv)."
            )
        run([*_pip(self.program("python")), "--upgrade", "pip"])


MAIN = Environment(ROOT / ".venv")


def fingerprint(pyproject: Mapping[str, Any], python: str, pins: Iterable[str] = ()) -> str:
    """A hash of what decides which packages are installed: dependencies, groups, build system, Python, pins."""
    project = pyproject.get("project", {})
    parts = {
        "build-system": pyproject.get("build-system"),
        "groups": pyproject.get("dependency-groups"),
        "python": python,
        "pins": list(pins),
        **{key: project.get(key) for key in ("dependencies", "optional-dependencies", "requires-python")},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def groups_to_install(mark: Mapping[str, Any] | None, wanted: str, needed: Iterable[str]) -> tuple[bool, list[str]]:
    """Return (make it anew?, groups to install) for the mark that was found and the hash that is wanted."""
    if mark is None or mark.get("hash") != wanted:
        return True, sorted(needed)
    return False, sorted(set(needed) - set(mark.get("groups", ())))


def install_command(uv: str | None, python: str, groups: Iterable[str], pins: Iterable[str] = ()) -> list[str]:
    """The command that installs the project, editable, with the extras, these groups, and the pins."""
    installer = _pip(python) if uv is None else [uv, "pip", "install", "--quiet", "--python", python]
    chosen = [word for group in groups for word in ("--group", group)]
    return [*installer, "--editable", f".[{','.join(EXTRAS)}]", *pins, *chosen]


def _pip(python: str) -> list[str]:
    return [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
