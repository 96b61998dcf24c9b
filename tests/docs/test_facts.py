"""Are the numbers and names in the prose of the newer pages those of the code?"""

from __future__ import annotations

import re

import pytest

from catalog_fallback import cache_trouble, leases, off_loop, problems, queries
from catalog_fallback.contrib import tasks
from catalog_fallback.models import StopReason
from catalog_fallback.resilience import keys
from catalog_fallback.sources import resolver
from tests.docs.pages import DOCS


def text(page: str) -> str:
    """A page in one line."""
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


FACTS = {
    "entries' format": ("upgrading.md", f"format version of the entries (now {queries.FORMAT})"),
    "guards' format": ("upgrading.md", f"that of the guards (now {keys.FORMAT})"),
    "pause of a cache in trouble": ("how-to/redis.md", "leaves the cache alone for five seconds"),
    "the same": ("explanation/not-promised.md", "the cache is left alone for five seconds"),
    "margin of a lease": (
        "explanation/not-promised.md",
        "the limit of one call (with `ATTEMPTS`, of all of them) and two seconds",
    ),
    "IDs of a task": ("how-to/celery.md", f"in pieces of {tasks.IDS_A_TASK} IDs"),
    "names of the tasks": (
        "how-to/celery.md",
        "The tasks are {}, {} and {}.".format(*(f"`{tasks._NAME}{name}`" for name in tasks._JOBS)),
    ),
    "slots of a resolver": ("explanation/not-promised.md", f"{resolver.SLOTS_PER_HOST} for each host"),
    "status of not found": ("explanation/not-there.md", f"| {problems.PROBLEMS['not_found'].status} |"),
    "status of unavailable": ("explanation/not-there.md", f"| {problems.PROBLEMS['unavailable'].status} with"),
    "statuses of stopped": (
        "explanation/not-there.md",
        f"| {problems.PROBLEMS['stopped'].status}, {problems._LEGAL[str(StopReason.LEGAL)]} for legal reasons |",
    ),
    "status of a bad ID": ("explanation/not-there.md", f"| {problems.PROBLEMS['invalid_item_id'].status} |"),
}


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_is_so(fact: str) -> None:
    """Where the code changes, the sentence has to."""
    page, sentence = FACTS[fact]
    assert sentence in text(page)


def test_numbers_that_are_written_as_words() -> None:
    """Five seconds, two seconds."""
    assert (cache_trouble.PAUSE, leases.MARGIN) == (5.0, 2.0)


def test_the_threads_of_asyncio_are_in_one_place() -> None:
    """Only the page on many items names them; the others link to it."""
    reading = off_loop.Pool.READING.value
    assert f"{reading} that read the cache" in text("how-to/many-at-once.md")
    assert re.search(r"many-at-once\.md#asyncio", (DOCS / "how-to" / "asyncio.md").read_text(encoding="utf-8"))
