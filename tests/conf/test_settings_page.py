"""Does docs/reference/settings.md say what the parser does?"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalog_fallback.conf.catalogs import CATALOG_KEYS
from catalog_fallback.conf.guards import BREAKER_KEYS, GUARD_KEYS, RATE_LIMIT_KEYS
from catalog_fallback.conf.sources import SOURCE_KEYS
from tests.conf.making import plain, raw_catalog, raw_source, read

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
ROW = re.compile(r"^\| `(?P<key>[A-Z_]+)` \| (?P<default>.+?) \| .+? \| .+ \|$", re.MULTILINE)

TABLES = {
    "Catalog keys": CATALOG_KEYS,
    "Source keys": SOURCE_KEYS,
    "Breaker keys": BREAKER_KEYS,
    "Rate limit keys": RATE_LIMIT_KEYS,
    "Guard keys": GUARD_KEYS,
}
#: Keys whose default is no value: it is required, or follows from others.
WITHOUT_VALUE = {
    "Catalog keys": {"SOURCES", "ORDER", "STATE_CACHE", "ID_PATTERN", "NORMALIZE_ID"},
    "Source keys": {"URL"},
    "Breaker keys": set(),
    "Rate limit keys": {"CALLS", "PER"},
    "Guard keys": {"FALLBACK"},
}
MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "Catalog keys": lambda keys: raw_catalog(**keys),
    "Source keys": lambda keys: raw_source(**keys),
    "Breaker keys": lambda keys: raw_source(BREAKER=keys),
    "Guard keys": lambda keys: raw_catalog(GUARDS={"payment": keys}),
}


def documented(title: str) -> dict[str, str]:
    """The keys of one table of the page with their defaults as they are written."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [(match["key"], match["default"]) for match in ROW.finditer(section)]
    assert len(rows) == len(dict(rows)) == section.count("\n| `")
    return dict(rows)


DEFAULTS = [
    pytest.param(title, key, default[1:-1], id=f"{title.split()[0]}-{key}")
    for title in TABLES
    for key, default in documented(title).items()
    if default.startswith("`")
]


@pytest.mark.parametrize("title", TABLES)
def test_the_page_has_the_keys_of_the_parser(title: str) -> None:
    """No key is missing, none is made up, and the order is the same."""
    assert list(documented(title)) == list(TABLES[title])


@pytest.mark.parametrize("title", TABLES)
def test_only_some_keys_have_no_value_as_default(title: str) -> None:
    """Every other default is a literal, which the next test tries."""
    assert {key for key, default in documented(title).items() if not default.startswith("`")} == WITHOUT_VALUE[title]


@pytest.mark.parametrize(("title", "key", "default"), DEFAULTS)
def test_the_documented_default_is_the_one_that_holds(title: str, key: str, default: str) -> None:
    """Writing the default into the settings changes nothing."""
    make = MAKERS[title]
    assert plain(read(make({key: ast.literal_eval(default)}))) == plain(read(make({})))


def test_the_example_of_the_page_runs() -> None:
    """The first code block is a setting with which nothing is wrong."""
    block = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    found: dict[str, Any] = {}
    exec(block, found)  # noqa: S102  # our own page
    assert len(read(found["CATALOG_FALLBACK"]).sources) == 2
