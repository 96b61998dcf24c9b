"""Does a process stay as it is, however many different IDs it is asked for?

``SOAK_IDS=1000000`` (some minutes) asks for a million, as is done before a release.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from typing import Any

import pytest

from catalog_fallback import flight_table, refresh_ahead, services
from tests.many import ANY, Any_
from tests.sites import Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

IDS = int(os.environ.get("SOAK_IDS", "10000"))
#: Blocks of memory by which a process may grow meanwhile; a name kept of each ID would be one for each at least.
GROWTH = IDS // 5


def ask(first: int, count: int) -> None:
    """Ask for so many different IDs, one at a time, in batches, and from a loop."""
    ids = [f"S{number}" for number in range(first, first + count)]
    for item_id in ids[::2]:
        services.find_item(item_id)
    services.find_items(ids[1::4])

    async def from_loop() -> None:
        for item_id in ids[3::4]:
            await services.afind_item(item_id)

    asyncio.run(from_loop())
    Any_.asked.clear()


def blocks() -> int:
    """Blocks of memory that Python holds."""
    gc.collect()
    return sys.getallocatedblocks()


def test_e12_memory_does_not_grow_with_distinct_ids(site: Site, settings: Any) -> None:
    """No table of locks, flights, leases, breakers or names keeps anything of an ID (resilience4j 1809, 2243)."""
    site.cache_in("tests.stores.LossyCache")  # takes everything and keeps nothing, so that only we could grow
    forget_what_the_cache_notes(settings)
    Any_.begin()
    site.configure({"BACKEND": ANY}, {"ENABLED": False}, REFRESH_AHEAD=0.5, BUDGET=60)
    chunk = max(1, IDS // 20)
    ask(0, chunk)
    before = blocks()
    for first in range(chunk, IDS, chunk):
        ask(first, chunk)
    assert blocks() - before < GROWTH
    assert len(flight_table.table) == 0
    assert not refresh_ahead.refresher._names
    ours = [thread for thread in threading.enumerate() if thread.name.startswith("catalog-fallback-refresh")]
    assert len(ours) <= refresh_ahead.THREADS


def forget_what_the_cache_notes(settings: Any) -> None:
    """The test's cache keeps a log of every operation, which would be all that grows."""
    from django.core.cache import caches  # noqa: PLC0415  # the settings are those of the test

    class Nothing(list[Any]):
        """A list that stays empty."""

        def append(self, item: Any) -> None:
            """Forget it."""

    caches["default"].shelf.log = Nothing()  # type: ignore[attr-defined]
