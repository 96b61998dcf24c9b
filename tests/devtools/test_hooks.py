"""Are the hooks for pre-commit, and what runs before a change goes in, in step with dev.py?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import dev
from devtools.running import ROOT

SCRIPT = ROOT / ".ci" / "run"
COMMANDS = ["python dev.py lint", "python dev.py wheel", "python dev.py docs", "python dev.py test --browser"]


def test_the_hooks_run_what_dev_py_runs() -> None:
    """Each entry is a program of .venv that ``lint`` installs, or a command of dev.py."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"^ +entry: (.+)$", hooks, re.MULTILINE)
    assert entries == [
        ".venv/bin/ruff check --force-exclude",
        ".venv/bin/ruff format --force-exclude",
        "python3 dev.py lint",
    ]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory with all programs that .ci/run finds; ``python`` and whatever is added write their calls down."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "cat"):
        (programs / name).symlink_to(shutil.which(name) or "")
    (tmp_path / "calls").touch()
    add(tmp_path, "python")
    return tmp_path


def add(machine: Path, name: str, then: str = "") -> None:
    """A program that writes its call down, and then does as told."""
    program = machine / "bin" / name
    program.write_text(f'#!{shutil.which("bash")}\necho "{name} $*" >> {machine}/calls\n{then}\n')
    program.chmod(0o755)


def ci(machine: Path, *arguments: str) -> tuple[int, list[str], str]:
    """Run it; its exit code, the programs that it called, and what it said."""
    done = subprocess.run(
        [shutil.which("bash") or "", str(SCRIPT), *arguments],
        env={"PATH": str(machine / "bin"), "PYTHON": "python"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (machine / "calls").read_text().splitlines(), done.stderr


def test_ci_runs_commands_that_there_are(machine: Path) -> None:
    """Style, archives, documentation and tests; with a browser on the machine nothing is installed."""
    add(machine, "chromium")
    add(machine, "apt-get")
    assert ci(machine, "-x") == (0, [*COMMANDS[:-1], "python dev.py test --browser -x"], "")
    assert {command.split()[2] for command in COMMANDS} <= set(dev.COMMANDS)
    assert os.access(SCRIPT, os.X_OK)


def test_ci_ends_with_the_first_failure(machine: Path) -> None:
    """What comes after it is not run."""
    add(machine, "chromium")
    add(machine, "python", "exit 3")
    assert ci(machine)[:2] == (3, COMMANDS[:1])


def test_ci_goes_on_without_apt(machine: Path) -> None:
    """Where no browser can be had, that is said, and everything else runs."""
    code, calls, said = ci(machine)
    assert (code, calls) == (0, COMMANDS)
    assert "NO CHROMIUM" in said


@pytest.mark.parametrize("fails_at", ["update", "install"])
def test_ci_goes_on_where_apt_fails(machine: Path, fails_at: str) -> None:
    """Offline, or without the right: said, and not fatal."""
    add(machine, "apt-get", f'[[ "$*" != *{fails_at}* ]]')
    with_tools(machine)
    code, calls, said = ci(machine)
    assert code == 0
    assert calls[-len(COMMANDS) :] == COMMANDS
    assert "NO CHROMIUM" in said


def test_ci_installs_a_browser(machine: Path) -> None:
    """Without a question, and before the tests."""
    add(machine, "apt-get", f'[[ "$*" != *install* ]] || echo > {machine}/bin/chromium; chmod -f +x {machine}/bin/*')
    with_tools(machine)
    (machine / "bin" / "chmod").symlink_to(shutil.which("chmod") or "")
    code, calls, said = ci(machine)
    assert code == 0
    assert [call.split()[:2] for call in calls if call.startswith("apt-get")] == [
        ["apt-get", "update"],
        ["apt-get", "install"],
    ]
    assert "NO CHROMIUM" not in said


def with_tools(machine: Path) -> None:
    """``timeout``, and a sudo that lets everything pass (whoever runs the tests may be root or not)."""
    for name in ("timeout", "env"):
        (machine / "bin" / name).symlink_to(shutil.which(name) or "")
    sudo = machine / "bin" / "sudo"
    sudo.write_text(f'#!{shutil.which("bash")}\n[[ $1 == -n ]] && shift\n"$@"\n')
    sudo.chmod(0o755)
