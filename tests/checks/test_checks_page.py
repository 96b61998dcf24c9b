"""Does docs/reference/checks.md name the checks that there are?"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "checks.md"
ID = re.compile(r'"([EW]\d{3})"')


def in_code() -> dict[str, set[str]]:
    """The IDs in the code, with the modules that use each."""
    used: dict[str, set[str]] = {}
    for package in ("conf", "checks"):
        for path in sorted((ROOT / "catalog_fallback" / package).glob("*.py")):
            for check_id in ID.findall(path.read_text(encoding="utf-8")):
                used.setdefault(check_id, set()).add(f"{package}/{path.name}")
    return used


def on_page() -> list[str]:
    """The IDs of the page's tables."""
    return re.findall(r"^\| `([EW]\d{3})` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_each_check_has_one_row() -> None:
    """No ID is missing, made up, or there twice."""
    assert sorted(on_page()) == sorted(in_code())


def test_the_rows_are_in_order() -> None:
    """A reader finds an ID."""
    errors, warnings = ([each for each in on_page() if each[0] == kind] for kind in "EW")
    assert errors == sorted(errors)
    assert warnings == sorted(warnings)
    assert on_page() == [*errors, *warnings]


def test_a_warning_has_one_meaning() -> None:
    """A warning is given in one module; only the errors of the parser are shared by its readers."""
    assert {check_id: where for check_id, where in in_code().items() if check_id[0] == "W" and len(where) > 1} == {}


def test_warnings_are_under_the_heading_that_says_when_they_come() -> None:
    """Which are for deployment only is written in the code by the module's two lists."""
    page = PAGE.read_text(encoding="utf-8").split("## Warnings on deployment")
    assert [len(re.findall(r"^\| `W", part, re.MULTILINE)) for part in page] == [10, 12]
