"""Do the introductions in other languages say what the README says, and do they know of each other?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catalog_fallback.results import State
from tests.docs.pages import ROOT, blocks_of
from tests.i18n.texts import CODES

MAIN = ROOT / "README.md"
OTHERS = sorted(ROOT.glob("README.*.md"))


def statuses(page: Path) -> dict[str, list[str]]:
    """State → status codes of the table's row, in its order."""
    rows = re.findall(r"^\| `(\w+)` \|(.+)\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {state: re.findall(r"\b[45]\d\d\b", rest) for state, rest in rows}


def test_each_language_has_one() -> None:
    """All that the pages are translated into, and the README names them."""
    names = {f"README.{code.replace('_', '-')}.md" for code in CODES}
    assert {page.name for page in OTHERS} == names
    assert all(f"`{name}`" in MAIN.read_text(encoding="utf-8") for name in names)


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.name)
def test_the_table_of_states_is_the_same(page: Path) -> None:
    """Four states, with the statuses to answer with."""
    assert [*statuses(page)] == [str(state) for state in State]
    assert statuses(page) == {state: codes for state, codes in statuses(MAIN).items() if state in set(State)}


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.name)
def test_what_is_typed_is_the_same(page: Path) -> None:
    """Commands and settings are those of the README; only the example of a question is a shorter one."""
    code = MAIN.read_text(encoding="utf-8")
    different = [block.code for block in blocks_of(page) if block.code not in code]
    assert len(different) == 1
    assert 'find_item("P001"' in different[0]


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.name)
def test_each_leads_to_the_others(page: Path) -> None:
    """And to the README, which has everything."""
    linked = set(re.findall(r"\]\((README[^)]*)\)", page.read_text(encoding="utf-8")))
    assert linked == {MAIN.name, *(other.name for other in OTHERS)} - {page.name}
