"""Do the examples of docs/how-to/many-at-once.md run, and are its numbers those of the code?"""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from catalog_fallback import off_loop, refresh_ahead, shared_reads
from catalog_fallback.configuration import CatalogConfig
from tests.sites import LOCMEM, SIMULATED

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "many-at-once.md"
ITEMS = {"P001": "Tea", "P002": "Coffee", "P003": "Mug"}


@pytest.fixture
def page() -> str:
    """The text of the page, in one line."""
    return " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_examples_run(settings: Any, transactional_db: None, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, as somebody who reads it would type them."""
    source = {"BACKEND": SIMULATED, "OPTIONS": {"items": ITEMS}}
    settings.CACHES = {"default": {"BACKEND": LOCMEM, "LOCATION": uuid.uuid4().hex}}
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"only": source}}}
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    assert list(names["found"]) == ["P001", "P002", "P003"]
    assert "P002 found {'id': 'P002', 'name': 'Coffee'}" in capsys.readouterr().out
    assert (names["book"].item, [each.is_found for each in names["similar"].values()]) == (
        {"id": "P001", "name": "Tea"},
        [True, True],
    )


def test_the_numbers_are_those_of_the_code(page: str) -> None:
    """A changed default changes the page."""
    reading, fetching, waiting, telling = (pool.value for pool in off_loop.Pool)
    reads, config = shared_reads.LOTS * shared_reads.AT_ONCE, CatalogConfig("default", ())
    for text in (
        f"{reading} that read the cache, {fetching} that fetch, {waiting} for batches, {telling} that tell listeners",
        f"{reading + fetching + waiting + telling} threads, for the life of the process",
        f"`MAX_PARALLEL` ({config.max_parallel}) at a time",
        f"{refresh_ahead.THREADS} threads; {refresh_ahead.WAITING} items that wait",
        f"{reads} for single lookups at the same moment, {shared_reads.AT_ONCE} of them for the same item",
    ):
        assert text in page
