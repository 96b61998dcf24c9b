"""How are the tests spread over the processors?"""

from __future__ import annotations

import pytest

from devtools import suite


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
    assert suite.spread(given) == [*added, *given]


@pytest.mark.parametrize(
    ("given", "groups", "for_pytest"),
    [
        pytest.param(["-k", "guard"], ["test"], ["-k", "guard"], id="without"),
        pytest.param(["-x", "--browser"], ["browser", "test"], ["-x"], id="with"),
    ],
)
def test_a_browser_is_asked_for(given: list[str], groups: list[str], for_pytest: list[str]) -> None:
    """What the tests in a browser need is installed only then; pytest does not see the word."""
    assert suite.read_arguments(given) == (groups, for_pytest)
