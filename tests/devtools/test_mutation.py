"""Does the mutation testing change what it is meant to change, and run the tests that are meant to notice?"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from devtools import mutation
from devtools.running import ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]
PAGE = (ROOT / "docs" / "explanation" / "mutation.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("key", ["only_mutate", "pytest_add_cli_args_test_selection", "also_copy", "source_paths"])
def test_everything_that_is_named_is_there(key: str) -> None:
    """A file that was renamed does not drop out: mutmut would say nothing."""
    assert [name for name in SETTINGS[key] if not (ROOT / name).exists()] == []


def test_the_page_names_what_is_changed() -> None:
    """Each module has a row of figures, and no other has."""
    rows = re.findall(r"^\| `([a-z_/]+\.py)` \| \d+ \|", PAGE, re.MULTILINE)
    assert [f"catalog_fallback/{name}" for name in rows] == SETTINGS["only_mutate"]


def test_the_survivors_are_listed_after_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was chosen goes to mutmut; the last command is the list."""
    commands: list[list[str]] = []
    monkeypatch.setattr(mutation.MAIN.__class__, "ensure", lambda self, *groups: commands.append(list(groups)))
    monkeypatch.setattr(mutation, "run", commands.append)
    monkeypatch.setattr(mutation, "become", commands.append)
    mutation.mutate(["catalog_fallback.classify*"])
    mutmut = mutation.MAIN.program("mutmut")
    assert commands == [["mutation"], [mutmut, "run", "catalog_fallback.classify*"], [mutmut, "results"]]
