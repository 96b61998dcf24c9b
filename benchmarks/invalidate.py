"""How long does it take to forget or to stop many items, and how much memory do a million IDs from a pipe need?"""

from __future__ import annotations

import itertools
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.report import Row
from benchmarks.surroundings import Surroundings

IDS = 10_000
#: IDs that come from standard input, and with ``--large``.
_PIPED, _LARGE = 100_000, 1_000_000
CATALOG = "django-redis"
#: Base of the ratios.
_FLOOR = f"set_many of {IDS:,} keys"
_FORGET = f"forget {IDS:,} IDs"
_STOP = f"stop {IDS:,} IDs"
_MOST_ROUNDS = 5
_STATUS = Path("/proc/self/status")
_numbers = itertools.count()


def row_names() -> list[str]:
    """The names of the rows, those of ``--large`` included."""
    timed = [each for name in (_FORGET, _STOP) for each in (name, _seconds(name))]
    return [_FLOOR, *timed, _piped(_PIPED), _piped(_LARGE)]


def _seconds(name: str) -> str:
    return f"{name}: seconds"


def _piped(count: int) -> str:
    return f"forget {count:,} IDs from standard input: most MB resident"


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Forget and stop IDs that were never named before, beside the write that puts up as many keys."""
    spent: dict[str, list[float]] = {_FLOOR: [], _FORGET: [], _STOP: []}
    for _ in range(min(rounds, _MOST_ROUNDS)):
        for name, work in _work().items():
            started = time.perf_counter()
            work()
            spent[name].append(time.perf_counter() - started)
    floor = Row(_FLOOR, 1.0, _FLOOR, statistics.median(spent[_FLOOR]) * 1e6)
    timed = [row for name in (_FORGET, _STOP) for row in _rows(name, spent[name], spent[_FLOOR])]
    return [floor, *timed, _piped_row(around, _LARGE if around.is_large else _PIPED)]


def _work() -> dict[str, Callable[[], object]]:
    """What is timed in one round."""
    from django.core.cache import caches  # noqa: PLC0415  # needs settings

    from catalog_fallback.cache import entries_of  # noqa: PLC0415
    from catalog_fallback.services import invalidate_items, stop_items  # noqa: PLC0415

    ids = {name: [f"I{next(_numbers):08d}" for _ in range(IDS)] for name in (_FLOOR, _FORGET, _STOP)}
    entries = entries_of[CATALOG]
    gates = {entries.query(item_id).gate_key: "0123456789abcdef" for item_id in ids[_FLOOR]}
    return {
        _FLOOR: lambda: caches[entries.config.cache].set_many(gates, 3600),
        _FORGET: lambda: invalidate_items(ids[_FORGET], catalog=CATALOG),
        _STOP: lambda: stop_items(ids[_STOP], catalog=CATALOG, reason="withdrawn"),
    }


def _rows(name: str, spent: list[float], floor: list[float]) -> list[Row]:
    ratio = statistics.median(own / other for own, other in zip(spent, floor, strict=True))
    return [
        Row(name, ratio, _FLOOR, statistics.median(spent) * 1e6),
        Row(_seconds(name), round(statistics.median(spent), 3)),
    ]


def _piped_row(around: Surroundings, count: int) -> Row:
    """Let a process of its own run the command, and ask it what it weighed at most."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    with TemporaryDirectory() as directory:
        arguments = (theirs, around.redis, around.catalog, directory, count)
        process = spawn.Process(target=forget_from_stdin, args=arguments, daemon=True)
        process.start()
        theirs.close()
        try:
            before, most, seconds = ours.recv()
        finally:
            process.kill()
            process.join()
    note = f"{before / 1e6:.1f} MB before, {seconds:.1f} s"
    return Row(_piped(count), round(most / 1e6, 1), note=note)


def forget_from_stdin(pipe: Connection, redis: str, url: str, directory: str, count: int) -> None:
    """``invalidate_item -`` with so many IDs; send the bytes resident before and at most, and the seconds."""
    from benchmarks import site  # noqa: PLC0415  # the process has no settings yet

    site.set_up(redis, url, Path(directory))
    from django.core.management import call_command  # noqa: PLC0415

    before = most_resident()
    with Path(directory, "ids").open("w+", encoding="ascii") as lines:
        lines.writelines(_lines(count))
        lines.seek(0)
        sys.stdin = lines
        started = time.perf_counter()
        call_command("invalidate_item", "-", catalog=CATALOG)
        pipe.send((before, most_resident(), time.perf_counter() - started))


def _lines(count: int) -> Iterator[str]:
    return (f"P{number:09d}\n" for number in range(count))


def most_resident() -> int:
    """The most bytes that this process has had in real memory.

    ``ru_maxrss`` would count what the parent weighed when it forked; the system's own note of this program does not.
    """
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
