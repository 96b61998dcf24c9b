"""Do the links between the pages lead somewhere? Files, and headings in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, name_of, pages

_LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def prose(page: Path) -> str:
    """A page without its code."""
    return _CODE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names of its headings, as they are made from their texts."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    """To a page of the documentation, and to a heading of it."""
    for target, anchor in _LINK.findall(prose(page)):
        file = (page.parent / target).resolve() if target else page
        assert file.is_file(), f"{target} is not there"
        assert not anchor or anchor in anchors(file), f"{target} has no heading #{anchor}"


def test_no_page_links_out_of_the_documentation() -> None:
    """What is built knows only its own pages."""
    for page in (page for page in pages() if page.parent != ROOT):
        for target, _ in _LINK.findall(prose(page)):
            assert (page.parent / target).resolve().is_relative_to(DOCS), (name_of(page), target)


def test_every_file_that_is_named_is_there() -> None:
    """Paths of the project in prose: ``docs/…``, ``example_project/…``, ``tests/…``, ``benchmarks/…``."""
    for page in pages():
        named = re.findall(r"`((?:docs|example_project|tests|benchmarks)/[\w./-]+)`", page.read_text(encoding="utf-8"))
        made = {"benchmarks/results/", "docs/_build"}
        for path in named:
            assert path in made or (ROOT / path).exists(), (name_of(page), path)
