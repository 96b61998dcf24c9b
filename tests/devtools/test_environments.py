"""Does dev.py decide rightly what to install, and where?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from devtools import environments
from devtools.environments import Environment, Interpreter
from devtools.running import Failed

PYPROJECT = {
    "build-system": {"requires": ["hatchling"]},
    "project": {"name": "x", "dependencies": ["Django"], "requires-python": ">=3.11"},
    "dependency-groups": {"test": ["pytest"]},
    "tool": {"ruff": {"line-length": 120}},
}


@pytest.mark.parametrize(
    ("section", "value"),
    [
        pytest.param("build-system", {"requires": ["hatchling>=2"]}, id="build-system"),
        pytest.param("dependency-groups", {"test": ["pytest>=9"]}, id="group"),
        pytest.param("project", {**PYPROJECT["project"], "dependencies": ["Django>=6"]}, id="dependency"),
        pytest.param("project", {**PYPROJECT["project"], "optional-dependencies": {"a": ["b"]}}, id="extra"),
        pytest.param("project", {**PYPROJECT["project"], "requires-python": ">=3.12"}, id="requires-python"),
    ],
)
def test_fingerprint_changes_with_what_is_installed(section: str, value: object) -> None:
    """Each part of pyproject.toml that decides what is installed makes .venv anew."""
    assert environments.fingerprint({**PYPROJECT, section: value}, "3.11.1") != environments.fingerprint(
        PYPROJECT, "3.11.1"
    )


def test_fingerprint_changes_with_python() -> None:
    """Another Python makes .venv anew."""
    assert environments.fingerprint(PYPROJECT, "3.12.0") != environments.fingerprint(PYPROJECT, "3.11.1")


@pytest.mark.parametrize(
    ("section", "value"),
    [
        pytest.param("tool", {"ruff": {"line-length": 100}}, id="tool"),
        pytest.param("project", {**PYPROJECT["project"], "name": "y"}, id="name"),
    ],
)
def test_fingerprint_ignores_the_rest(section: str, value: object) -> None:
    """A change that installs nothing else keeps .venv."""
    assert environments.fingerprint({**PYPROJECT, section: value}, "3.11.1") == environments.fingerprint(
        PYPROJECT, "3.11.1"
    )


@pytest.mark.parametrize(
    ("mark", "needed", "expected"),
    [
        pytest.param(None, {"test"}, (True, ["test"]), id="no-environment"),
        pytest.param({}, {"test"}, (True, ["test"]), id="unfinished-environment"),
        pytest.param({"hash": "old", "groups": ["test"]}, {"test"}, (True, ["test"]), id="outdated"),
        pytest.param({"hash": "new", "groups": ["test"]}, {"test"}, (False, []), id="nothing-to-do"),
        pytest.param({"hash": "new", "groups": ["demo"]}, {"demo", "lint"}, (False, ["lint"]), id="one-more-group"),
    ],
)
def test_groups_to_install(mark: dict[str, object] | None, needed: set[str], expected: tuple[bool, list[str]]) -> None:
    """An outdated or unfinished environment is made anew; a good one gets only what it lacks."""
    assert environments.groups_to_install(mark, "new", needed) == expected


@pytest.mark.parametrize("pins", [(), ("Django~=6.0.0",)], ids=["project", "pinned"])
def test_install_command_of_uv_and_pip_name_the_same_packages(pins: tuple[str, ...]) -> None:
    """With uv or without it, the same project, extras, groups and pins are installed."""
    with_uv = environments.install_command("/bin/uv", "/v/python", ["lint", "test"], pins)
    with_pip = environments.install_command(None, "/v/python", ["lint", "test"], pins)
    packages = ["--editable", ".[redis,books]", *pins, "--group", "lint", "--group", "test"]
    assert with_uv[:3] == ["/bin/uv", "pip", "install"]
    assert with_pip[:4] == ["/v/python", "-m", "pip", "install"]
    assert with_uv[-len(packages) :] == with_pip[-len(packages) :] == packages


def test_fingerprint_changes_with_a_pin() -> None:
    """An environment of the matrix is made anew when its Django changes."""
    assert environments.fingerprint(PYPROJECT, "3.12.1", ("Django~=6.1.0",)) != environments.fingerprint(
        PYPROJECT, "3.12.1", ("Django~=6.0.0",)
    )


def test_a_foreign_environment_is_left_alone(tmp_path: Path) -> None:
    """A .venv that somebody else made is neither used nor removed."""
    foreign = tmp_path / ".venv"
    foreign.mkdir()
    (foreign / "precious").touch()
    with pytest.raises(Failed, match="left alone"):
        Environment(foreign).ensure("test")
    assert (foreign / "precious").exists()


def test_a_python_that_makes_no_environments_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is named; the next run starts afresh, for what is there is ours and unfinished."""
    broken = Environment(tmp_path / ".venv", Interpreter(shutil.which("false") or "", "3.11.7"))
    monkeypatch.setattr(environments.shutil, "which", lambda name: None)
    for _ in range(2):
        with pytest.raises(Failed, match="python3-venv"):
            broken.ensure("test")


@pytest.mark.parametrize("content", [None, "", "{", "[]"], ids=["missing", "empty", "cut-off", "other-type"])
def test_an_unreadable_mark_counts_as_none(content: str | None, tmp_path: Path) -> None:
    """Whatever an interrupted run left behind, the next one starts afresh."""
    environment = Environment(tmp_path)
    if content is not None:
        environment.mark.write_text(content)
    assert environment.read_mark() is None


def test_a_mark_is_read_back(tmp_path: Path) -> None:
    """What one run wrote, the next one knows."""
    environment = Environment(tmp_path)
    environment.mark.write_text(json.dumps({"hash": "h", "groups": ["test"]}))
    assert environment.read_mark() == {"hash": "h", "groups": ["test"]}
