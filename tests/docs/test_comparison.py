"""Are the figures of docs/explanation/comparison.md those that were measured, and are its facts about us so?"""

from __future__ import annotations

import re

from tests.docs.pages import DOCS

PAGE = (DOCS / "explanation" / "comparison.md").read_text(encoding="utf-8")
SPEED = (DOCS / "explanation" / "speed.md").read_text(encoding="utf-8")
FIGURE = re.compile(r"\d+(?:\.\d+)?(?:–\d+(?:\.\d+)?)? ×")


def test_every_figure_is_one_of_the_benchmarks() -> None:
    """A ratio that docs/explanation/speed.md does not have was measured by nobody."""
    section = PAGE.split("## By number")[1].split("\n## ")[0]
    figures = FIGURE.findall(section)
    assert len(figures) >= 7
    assert [figure for figure in figures if figure not in SPEED] == []


def test_every_peer_has_a_link() -> None:
    """So that a reader can look whether it is still so."""
    rows = re.findall(r"^\| (?!\*\*this)([^|]*\[[^|]+)\|", PAGE.split("## What each")[0], re.MULTILINE)
    assert len(rows) >= 8
    for row in rows:
        names = re.findall(r"\[([^]]+)\]\(https://[^)]+\)", row)
        assert names, row
        assert not re.sub(r"\[[^]]+\]\([^)]+\)|\(\.NET\)|[,\s]", "", row), row


def test_it_says_where_we_lose() -> None:
    """And when to take something else."""
    assert "**Where we lose:**" in PAGE
    assert "## When not to use this" in PAGE
