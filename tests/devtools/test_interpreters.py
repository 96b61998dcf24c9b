"""Which Pythons are found, and which are not?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from devtools import interpreters
from devtools.environments import THIS, Interpreter


def a_python(path: Path, version: str) -> Path:
    """Put a program there that answers as a Python of this version would; without a version it fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\n" if version else "#!/bin/sh\necho not active >&2\nexit 127\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Python but the one that runs the tests: ``path/`` is on the PATH, ``pyenv/`` is pyenv's."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")


def test_the_python_that_runs_is_found(machine: Path) -> None:
    """It needs no search."""
    assert interpreters.find("{}.{}".format(*sys.version_info[:2])) == THIS


def test_nothing_is_found_where_nothing_is(machine: Path) -> None:
    """A Python that is not there is None, not another one."""
    a_python(machine / "path" / "python3.98", "3.98.0")
    a_python(machine / "pyenv" / "versions" / "3.98.1" / "bin" / "python3.98", "3.98.1")
    assert interpreters.find("3.99") is None


def test_the_path_comes_before_pyenv(machine: Path) -> None:
    """Who set the PATH has chosen."""
    chosen = a_python(machine / "path" / "python3.99", "3.99.4")
    a_python(machine / "pyenv" / "versions" / "3.99.5" / "bin" / "python3.99", "3.99.5")
    assert interpreters.find("3.99") == Interpreter(str(chosen), "3.99.4")


def test_a_stand_in_of_pyenv_that_does_not_run_is_passed_over(machine: Path) -> None:
    """pyenv puts a program on the PATH for versions that are not active; it only complains."""
    a_python(machine / "path" / "python3.99", "")
    real = a_python(machine / "pyenv" / "versions" / "3.99.5" / "bin" / "python3.99", "3.99.5")
    assert interpreters.find("3.99") == Interpreter(str(real), "3.99.5")


def test_a_program_of_another_version_is_passed_over(machine: Path) -> None:
    """What a program says of itself counts, not its name: 3.9 is not 3.99."""
    a_python(machine / "path" / "python3.9", "3.99.1")
    assert interpreters.find("3.9") is None


def test_uv_is_asked_last_and_downloads_nothing(machine: Path) -> None:
    """A Python that only uv knows is found."""
    real = a_python(machine / "managed" / "python", "3.99.7")
    uv = a_python(machine / "path" / "uv", "x")
    uv.write_text(f'#!/bin/sh\n[ "$*" = "python find --no-python-downloads 3.99" ] && echo {real}\n')
    assert interpreters.find("3.99") == Interpreter(str(real), "3.99.7")
