"""How are the tests spread over the processors?"""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools import suite


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param([], ["-n", "5"], id="nothing said"),
        pytest.param(["-k", "guard"], ["-n", "5"], id="a choice of tests"),
        pytest.param(["-n", "0"], [], id="how many"),
        pytest.param(["--numprocesses=3"], [], id="how many, at length"),
        pytest.param(["--pdb"], [], id="to look in"),
    ],
)
def test_the_tests_are_spread_over_the_processors(
    given: list[str], added: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one process more, unless the person says otherwise."""
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert suite.spread(given) == [*added, *given]


@pytest.mark.parametrize(
    ("given", "is_here", "groups", "for_pytest"),
    [
        pytest.param(["-k", "guard"], False, ["test"], ["-k", "guard"], id="no browser"),
        pytest.param(["-k", "guard"], True, ["browser", "test"], ["-k", "guard"], id="a browser"),
        pytest.param(["-x", "--browser"], False, ["browser", "test"], ["-x"], id="asked for"),
    ],
)
def test_a_browser_is_used(given: list[str], is_here: bool, groups: list[str], for_pytest: list[str]) -> None:
    """What the tests in a browser need is installed where there is one, or on demand; pytest does not see the word."""
    assert suite.read_arguments(given, is_browser_here=is_here) == (groups, for_pytest)


@pytest.mark.parametrize("name", ["CHROMIUM", *suite.BROWSERS])
def test_a_browser_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the variable says, or under one of its names on the path."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not suite.has_browser()
    program = tmp_path / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    if name == "CHROMIUM":
        monkeypatch.setenv(name, str(program))
    assert suite.has_browser()
