"""Does dev.py say what it can do, and what went wrong?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dev
from devtools import running


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


@pytest.mark.parametrize("command", ["lint", "wheel", "docs"])
def test_superfluous_arguments_are_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A command without arguments does not swallow them silently."""
    assert dev.main([command, "--fix"]) == 1
    assert "takes no arguments: --fix" in capsys.readouterr().err


def test_a_failing_command_becomes_a_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that fails is named, without a traceback of dev.py."""
    command = [sys.executable, "-c", "raise SystemExit(7)"]
    monkeypatch.setitem(dev.COMMANDS, "test", lambda arguments: running.run(command))
    assert dev.main(["test"]) == 1
    assert "exit code 7" in capsys.readouterr().err


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
