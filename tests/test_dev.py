"""Does dev.py decide rightly what to install, and does it say what went wrong?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dev

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
    assert dev.fingerprint({**PYPROJECT, section: value}, "3.11.1") != dev.fingerprint(PYPROJECT, "3.11.1")


def test_fingerprint_changes_with_python() -> None:
    """Another Python makes .venv anew."""
    assert dev.fingerprint(PYPROJECT, "3.12.0") != dev.fingerprint(PYPROJECT, "3.11.1")


@pytest.mark.parametrize(
    ("section", "value"),
    [
        pytest.param("tool", {"ruff": {"line-length": 100}}, id="tool"),
        pytest.param("project", {**PYPROJECT["project"], "name": "y"}, id="name"),
    ],
)
def test_fingerprint_ignores_the_rest(section: str, value: object) -> None:
    """A change that installs nothing else keeps .venv."""
    assert dev.fingerprint({**PYPROJECT, section: value}, "3.11.1") == dev.fingerprint(PYPROJECT, "3.11.1")


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
    assert dev.groups_to_install(mark, "new", needed) == expected


def test_install_command_of_uv_and_pip_name_the_same_packages() -> None:
    """With uv or without it, the same project, extras and groups are installed."""
    with_uv = dev.install_command("/bin/uv", Path("/v/python"), ["lint", "test"])
    with_pip = dev.install_command(None, Path("/v/python"), ["lint", "test"])
    packages = ["--editable", ".[redis,books]", "--group", "lint", "--group", "test"]
    assert with_uv[:3] == ["/bin/uv", "pip", "install"]
    assert with_pip[:4] == ["/v/python", "-m", "pip", "install"]
    assert with_uv[-6:] == with_pip[-6:] == packages


def test_a_foreign_environment_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A .venv that somebody else made is neither used nor removed."""
    foreign = tmp_path / ".venv"
    foreign.mkdir()
    (foreign / "precious").touch()
    monkeypatch.setattr(dev, "VENV", foreign)
    monkeypatch.setattr(dev, "MARK", foreign / "made-by-dev.json")
    with pytest.raises(dev.Failed, match="left alone"):
        dev.ensure_environment("test")
    assert (foreign / "precious").exists()


@pytest.mark.parametrize("content", [None, "", "{", "[]"], ids=["missing", "empty", "cut-off", "other-type"])
def test_an_unreadable_mark_counts_as_none(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an interrupted run left behind, the next one starts afresh."""
    mark = tmp_path / "mark.json"
    if content is not None:
        mark.write_text(content)
    monkeypatch.setattr(dev, "MARK", mark)
    assert dev.read_mark() is None


def test_a_mark_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one run wrote, the next one knows."""
    mark = tmp_path / "mark.json"
    mark.write_text(json.dumps({"hash": "h", "groups": ["test"]}))
    monkeypatch.setattr(dev, "MARK", mark)
    assert dev.read_mark() == {"hash": "h", "groups": ["test"]}


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"]], ids=["nothing", "help", "option"])
def test_help_names_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Without arguments it says what it can do."""
    assert dev.main(arguments) == 0
    shown = capsys.readouterr().out
    assert all(f"dev.py {name} " in shown for name in dev.COMMANDS)


def test_an_unknown_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error ends with exit code 2 and the list of commands."""
    assert dev.main(["tset"]) == 2
    assert "no command 'tset'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["lint", "wheel"])
def test_superfluous_arguments_are_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A command without arguments does not swallow them silently."""
    assert dev.main([command, "--fix"]) == 1
    assert "takes no arguments: --fix" in capsys.readouterr().err


def test_a_failing_command_becomes_a_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that fails is named, without a traceback of dev.py."""
    command = [sys.executable, "-c", "raise SystemExit(7)"]
    monkeypatch.setitem(dev.COMMANDS, "test", lambda arguments: dev.run(command))
    assert dev.main(["test"]) == 1
    assert "exit code 7" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "complaints"),
    [
        pytest.param([*dev.REQUIRED, "django_catalog_fallback-1.dist-info/METADATA"], [], id="good"),
        pytest.param(dev.REQUIRED[1:], ["lacks catalog_fallback/py.typed"], id="untyped"),
        pytest.param([*dev.REQUIRED, "tests/a.py", "tests/b.py"], ["should not hold tests"], id="with-tests"),
    ],
)
def test_complaints_about_a_wheel(names: list[str], complaints: list[str]) -> None:
    """A wheel holds the package with its types and migrations, and nothing else."""
    assert dev.complaints_about(names) == complaints


def test_an_old_python_gets_a_sentence() -> None:
    """On a Python that is too old the first line of dev.py that runs says so; no traceback."""
    script = Path(dev.__file__)
    code = (
        "import sys, runpy; sys.version_info = (3, 9, 1); "
        f"sys.argv = ['dev.py']; runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("dev.py needs Python 3.11 or newer; this is Python 3.9")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param([], ["-n", "auto"], id="nothing said"),
        pytest.param(["-k", "guard"], ["-n", "auto"], id="a choice of tests"),
        pytest.param(["-n", "0"], [], id="how many"),
        pytest.param(["--numprocesses=3"], [], id="how many, at length"),
        pytest.param(["--pdb"], [], id="to look in"),
    ],
)
def test_the_tests_are_spread_over_the_processors(given: list[str], added: list[str]) -> None:
    """Unless the person says otherwise."""
    assert dev.spread(given) == [*added, *given]
