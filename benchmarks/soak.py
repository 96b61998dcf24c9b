"""Does a process grow with the number of different IDs that it is asked for?

Each case is a process of its own, which looks one new ID up after the other: one at a time, in batches, and from an
event loop. Its cache is emptied before it is weighed, so that what is left is what we keep.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import resource
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from benchmarks.catalog_server import FIELDS
from benchmarks.herd import use_all_processors
from benchmarks.report import Row
from benchmarks.surroundings import Surroundings
from catalog_fallback.results import Lookup, NoReply, Reply
from catalog_fallback.sources.json_item import JSONItemSource

#: Different IDs in all, and with ``--large``.
_IDS, _LARGE = 10_000, 1_000_000
#: Parts of them after which the process is weighed.
_MARKS = (0.1, 0.5, 1.0)
#: IDs between two times at which the cache is emptied: a server need not hold a million entries for this.
_CHUNK = 1_000
#: Row → the catalog that is asked (named after its cache).
_CASES = {"LocMem, over HTTP": "soak-locmem", "django-redis": "soak-redis"}
#: Seconds for one lookup: the machine may be busy with other work.
_PATIENCE = 600
_STATM = Path("/proc/self/statm")


class Endless(JSONItemSource):
    """Has every item, without a connection."""

    needs_url: ClassVar[bool] = False

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """Answer as the catalog server does."""
        return Reply(200, {}, json.dumps({"item": {"id": item_id, **FIELDS}}).encode())


@dataclass(frozen=True, slots=True)
class Weight:
    """What a process weighs after so many IDs: blocks of memory that Python holds, and resident bytes."""

    ids: int
    blocks: int
    resident: int


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Weigh a process of each case at the marks; one round says it all."""
    count = _LARGE if around.is_large else _IDS
    rows = []
    for name, catalog in _CASES.items():
        weights = []
        for weight in _soak(around, catalog, count):
            weights.append(weight)
            print(f"{name}: {weight}", flush=True)
        rows += _rows(name, weights)
    return rows


def row_names() -> list[str]:
    """The names of the rows that have one whatever the number of IDs."""
    return [f"{name}: blocks of memory gained" for name in _CASES]


def _rows(name: str, weights: list[Weight]) -> list[Row]:
    first, last = weights[0], weights[-1]
    gained = Row(
        f"{name}: blocks of memory gained", last.blocks - first.blocks, note=f"from {first.ids:,} to {last.ids:,} IDs"
    )
    sizes = [
        Row(f"{name}: MiB after {each.ids:,} IDs", round(each.resident / 2**20, 1), note=f"{each.blocks:,} blocks")
        for each in weights
    ]
    return [gained, *sizes]


def _soak(around: Surroundings, catalog: str, count: int) -> Iterator[Weight]:
    """Let a new process look up so many IDs; what it weighs at each mark."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    with TemporaryDirectory() as directory:
        arguments = (theirs, around.redis, around.catalog, directory, catalog, count)
        process = spawn.Process(target=work, args=arguments, daemon=True)
        process.start()
        theirs.close()
        try:
            yield from (ours.recv() for _ in _MARKS)
        finally:
            process.kill()
            process.join()


def work(pipe: Connection, redis: str, url: str, directory: str, catalog: str, count: int) -> None:
    """Set Django up, look the IDs up, and say at each mark what the process weighs."""
    use_all_processors()
    from benchmarks import site  # noqa: PLC0415  # the process has no settings yet

    site.set_up(redis, url, Path(directory))
    from django.core.cache import caches  # noqa: PLC0415

    marks = {round(count * part) for part in _MARKS}
    for first in range(0, count, _CHUNK):
        _ask(catalog, first, _CHUNK)
        caches[catalog].clear()
        done = first + _CHUNK
        if done in marks:
            pipe.send(weigh(done))


def _ask(catalog: str, first: int, count: int) -> None:
    """Ask for so many new IDs in three ways."""
    from catalog_fallback.services import afind_item, find_item, find_items  # noqa: PLC0415  # needs settings

    ids = [f"S{number:08d}" for number in range(first, first + count)]

    async def from_loop() -> list[Lookup]:
        return [await afind_item(each, catalog=catalog, budget=_PATIENCE) for each in ids[3::4]]

    answers = [find_item(each, catalog=catalog, budget=_PATIENCE) for each in ids[::2]]
    answers += find_items(ids[1::4], catalog=catalog, budget=_PATIENCE).values()
    answers += asyncio.run(from_loop())
    if strange := [answer for answer in answers if not answer.is_found]:
        raise RuntimeError(f"what was weighed is not what was meant: {strange[0]}")


def weigh(ids: int) -> Weight:
    """Weigh this process, after ``ids`` of them."""
    gc.collect()
    return Weight(ids, sys.getallocatedblocks(), _resident())


def _resident() -> int:
    """Bytes in real memory; where the system does not say that, the most there have been."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
