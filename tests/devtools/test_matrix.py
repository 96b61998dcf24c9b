"""Does the matrix try what we promise, and does it say what it did not try?"""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from devtools import matrix
from devtools.environments import Interpreter
from devtools.matrix import Outcome
from devtools.running import ROOT, Failed

GOOD = Outcome("3.12.1", "6.0", True, "2 passed", 3.4)
BAD = Outcome("3.13.0", "6.1", False, "1 passed, 1 failed", 61.0)
ABSENT = Outcome("3.14", "6.1", None, "NOT RUN: there is no Python 3.14 here")


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [
        pytest.param([], list(matrix.PAIRS), id="all"),
        pytest.param(["3.12"], [("3.12", "5.2"), ("3.12", "6.0"), ("3.12", "6.1")], id="one Python"),
        pytest.param(["6.0"], [("3.12", "6.0"), ("3.13", "6.0")], id="one Django"),
        pytest.param(["6.0", "3.12"], [("3.12", "6.0")], id="one pair"),
        pytest.param(["3.11", "3.12", "5.2"], [("3.11", "5.2"), ("3.12", "5.2")], id="two Pythons"),
    ],
)
def test_versions_choose_pairs(versions: list[str], chosen: list[tuple[str, str]]) -> None:
    """Pythons and Djangos may be named in any order; what is not named is not narrowed."""
    assert matrix.choose(versions) == chosen


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        pytest.param(["3.10"], "not in the matrix: 3.10", id="unknown"),
        pytest.param(["3.11", "6.0"], "no pair of the matrix has 3.11, 6.0", id="not together"),
    ],
)
def test_a_choice_without_a_pair_is_refused(versions: list[str], message: str) -> None:
    """Nothing to run is not success."""
    with pytest.raises(Failed, match=message):
        matrix.choose(versions)


def test_what_follows_two_dashes_goes_to_pytest() -> None:
    """Options of pytest are not taken for our own."""
    assert matrix.read_arguments(["3.11", "--", "-n", "2"]) == ([("3.11", "5.2")], ["-n", "2"])
    assert matrix.read_arguments(["3.11", "--quick", "--", "-x"])[1] == [*matrix.QUICK, "-x"]


def test_the_quick_choice_names_tests_that_exist() -> None:
    """A test that was renamed does not drop out of it."""
    assert [path for path in matrix.QUICK if path.startswith("tests/") and not (ROOT / path).exists()] == []


def test_the_matrix_is_what_the_classifiers_promise() -> None:
    """Every Python and Django that the package names is tried, and no other."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    named = {words[-1] for words in (line.split(" :: ") for line in classifiers) if words[-1].count(".") == 1}
    assert named == {version for pair in matrix.PAIRS for version in pair}


def test_a_missing_python_is_an_outcome(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The table and a line of its own say so; alone it is a failure, for nothing was tried."""
    monkeypatch.setattr(matrix.interpreters, "find", lambda version: None)
    with pytest.raises(Failed, match="nothing was run"):
        matrix.matrix(["3.12", "6.0"])
    shown = capsys.readouterr()
    assert "3.12     6.0     MISSING" in shown.out
    assert "NOT RUN for want of Python 3.12" in shown.err


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        pytest.param([GOOD], None, id="good"),
        pytest.param([GOOD, ABSENT], None, id="one missing"),
        pytest.param([GOOD, BAD], "these failed: 3.13.0 with 6.1", id="one failed"),
        pytest.param([BAD, ABSENT], "these failed: 3.13.0 with 6.1", id="failed and missing"),
        pytest.param([ABSENT], "nothing was run", id="nothing"),
    ],
)
def test_a_failure_fails_the_command(outcomes: list[Outcome], message: str | None) -> None:
    """A Python that is here and fails counts; one that is not here does not."""
    if message is None:
        matrix.complain(outcomes)
        return
    with pytest.raises(Failed, match=message):
        matrix.complain(outcomes)


def test_the_table_has_a_line_for_each_pair() -> None:
    """Result, time and numbers stand side by side."""
    assert matrix.table([GOOD, BAD, ABSENT]).splitlines()[1:] == [
        "3.12.1   6.0     ok             3  2 passed",
        "3.13.0   6.1     FAILED        61  1 passed, 1 failed",
        "3.14     6.1     MISSING        0  NOT RUN: there is no Python 3.14 here",
    ]


@pytest.mark.parametrize(
    ("report", "text"),
    [
        pytest.param('tests="9" failures="0" errors="0" skipped="0"', "9 passed", id="good"),
        pytest.param(
            'tests="9" failures="1" errors="2" skipped="3"', "3 passed, 1 failed, 2 errors, 3 skipped", id="mixed"
        ),
    ],
)
def test_pytest_s_report_in_a_few_words(report: str, text: str, tmp_path: Path) -> None:
    """What is zero is not mentioned."""
    results = tmp_path / "results.xml"
    results.write_text(f"<testsuites><testsuite {report}/></testsuites>")
    assert matrix.counted(results, 0) == text


@pytest.mark.parametrize("content", [None, "", "<testsuites/>"], ids=["missing", "empty", "without a suite"])
def test_without_a_report_the_exit_code_is_told(content: str | None, tmp_path: Path) -> None:
    """A pytest that died says at least how."""
    results = tmp_path / "results.xml"
    if content is not None:
        results.write_text(content)
    assert matrix.counted(results, 4) == "pytest ended with exit code 4"


@pytest.mark.parametrize(("code", "is_good"), [(0, True), (1, False)], ids=["passes", "fails"])
def test_each_pair_runs_the_tests_in_an_environment_of_its_own(
    code: int, is_good: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the Django that it names, in a directory that it names; pytest's exit code decides."""
    pins: list[tuple[str, ...]] = []
    commands: list[list[str]] = []

    def call(command: list[str], **options: Any) -> int:
        commands.append(command)
        return code

    monkeypatch.setattr(matrix, "PLACE", tmp_path)
    monkeypatch.setattr(matrix.interpreters, "find", lambda version: Interpreter("/bin/python", f"{version}.1"))
    monkeypatch.setattr(matrix.Environment, "ensure", lambda self, *groups: pins.append(self.pins))
    monkeypatch.setattr(subprocess, "call", call)
    (is_told,) = {outcome.is_good for outcome in [matrix.attempt("3.12", "6.0", ["-n", "2"])]}
    assert is_told is is_good
    assert pins == [("Django~=6.0.0",)]
    assert commands[0][0] == str(tmp_path / "py3.12-django6.0" / "bin" / "python")
    assert commands[0][-2:] == ["-n", "2"]


def test_what_cannot_be_installed_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The other pairs go on."""

    def fail(self: object, *groups: str) -> None:
        raise Failed("no such version")

    monkeypatch.setattr(matrix.interpreters, "find", lambda version: Interpreter("/bin/python", f"{version}.1"))
    monkeypatch.setattr(matrix.Environment, "ensure", fail)
    assert matrix.attempt("3.12", "6.0", []).text == "could not be installed: no such version"
