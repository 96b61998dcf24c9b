"""Do the operations page and the pages of the stop list look alike by one sheet, and not by the same rules twice?"""

from __future__ import annotations

import re
from pathlib import Path

from django.test import Client

import catalog_fallback
from tests.admin.operations import PAGE, operator

STATIC = Path(catalog_fallback.__file__).parent / "static" / "catalog_fallback"
#: So many declarations, one after the other, are a rule that somebody has written again.
MANY = 3


def sheets(page: str) -> set[str]:
    """The app's own style sheets that a page loads."""
    return set(re.findall(r"catalog_fallback/(\w+\.css)", page))


def runs(sheet: str) -> set[tuple[str, ...]]:
    """All runs of that many declarations within a rule."""
    rules = re.findall(r"\{([^{}]*)\}", (STATIC / sheet).read_text(encoding="utf-8"))
    lists = [[line.strip() for line in rule.strip().splitlines()] for rule in rules]
    return {tuple(lines[start : start + MANY]) for lines in lists for start in range(len(lines) - MANY + 1)}


def test_both_load_the_sheet_of_what_they_share(browser: Client) -> None:
    """Beside one of their own; each sheet is loaded by somebody."""
    sources = sheets(operator().get(PAGE).content.decode())
    stops = sheets(browser.get("/admin/catalog_fallback/stoppeditem/bulk/").content.decode())
    assert (sources, stops) == ({"pages.css", "operations.css"}, {"pages.css", "stopped_items.css"})
    assert sources | stops == {path.name for path in STATIC.glob("*.css")}


def test_no_rule_is_in_two_sheets() -> None:
    """What is written twice is changed once."""
    assert runs("operations.css") & runs("stopped_items.css") == set()
