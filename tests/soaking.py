"""What is a process made of after so many different IDs? Started as ``python -m tests.soaking IDS``, in JSON.

A process of its own, so that nothing that another test left behind is weighed, no thread and no block of memory.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

#: Weighings in each half; the least of them counts: caches of the interpreter and of Django swing by a thousand blocks.
WEIGHINGS = 10


def set_up(directory: Path) -> None:
    """A site whose cache takes everything and keeps nothing, so that only we could grow."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django  # noqa: PLC0415  # the module says how it is started; only then are there settings
    from django.conf import settings  # noqa: PLC0415
    from django.core.management import call_command  # noqa: PLC0415

    settings.DATABASES["default"]["NAME"] = directory / "soak.sqlite3"
    settings.CACHES = {"default": {"BACKEND": "tests.stores.LossyCache", "LOCATION": "soak"}}
    sources = {"primary": {"BACKEND": "tests.many.Any_"}}
    catalog = {"SOURCES": sources, "STOP_CHECK": "cache", "REFRESH_AHEAD": 0.5, "BUDGET": 60}
    settings.CATALOG_FALLBACK = {"default": catalog}
    django.setup()
    call_command("migrate", verbosity=0)
    _forget_what_the_cache_notes()


def _forget_what_the_cache_notes() -> None:
    """The test's cache keeps a log of every operation, which would be all that grows."""
    from tests import stores  # noqa: PLC0415  # needs settings

    class Nothing(list[Any]):
        """A list that stays empty."""

        def append(self, item: Any) -> None:
            """Forget it."""

    stores.shelf("soak").log = Nothing()


def ask(first: int, count: int) -> None:
    """Ask for so many different IDs, one at a time, in batches, and from a loop."""
    from catalog_fallback import services  # noqa: PLC0415  # needs settings
    from tests.many import Any_  # noqa: PLC0415

    ids = [f"S{number}" for number in range(first, first + count)]
    for item_id in ids[::2]:
        services.find_item(item_id)
    services.find_items(ids[1::4])

    async def from_loop() -> None:
        for item_id in ids[3::4]:
            await services.afind_item(item_id)

    asyncio.run(from_loop())
    Any_.asked.clear()


def start_all_threads() -> None:
    """Let every thread that serves event loops begin, and look something up: each keeps some things of its own."""
    from catalog_fallback import off_loop, services  # noqa: PLC0415  # needs settings

    for pool in off_loop.Pool:
        all_here = threading.Barrier(pool.value)

        def work(name: str, all_here: threading.Barrier = all_here) -> None:
            all_here.wait(60)
            services.find_item(name)
            all_here.wait(60)

        jobs = [off_loop.submit(pool, partial(work, f"T{number}")) for number in range(pool.value)]
        for job in jobs:
            job.result(60)


def blocks() -> int:
    """Blocks of memory that Python holds."""
    gc.collect()
    return sys.getallocatedblocks()


def half(first: int, count: int) -> int:
    """Ask for so many IDs; the least that the process weighed meanwhile."""
    chunk = count // WEIGHINGS
    weights = []
    for start in range(first, first + count, chunk):
        ask(start, chunk)
        weights.append(blocks())
    return min(weights)


def main(ids: int) -> None:
    """Ask for ``ids``, then for as many again; write what each half weighed and what there is at the end."""
    with tempfile.TemporaryDirectory() as directory:
        set_up(Path(directory))
        from catalog_fallback import flight_table, refresh_ahead  # noqa: PLC0415  # needs settings

        start_all_threads()
        ask(2 * ids, ids // WEIGHINGS)  # what is made once: pools, prepared statements, compiled patterns
        report = {
            "blocks": [half(0, ids), half(ids, ids)],
            "threads": Counter(thread.name.rpartition("_")[0] or thread.name for thread in threading.enumerate()),
            "flights": len(flight_table.table),
            "refreshes": len(refresh_ahead.refresher._names),
        }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(int(sys.argv[1]))
