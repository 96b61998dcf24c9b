"""What does a lookup pay while Redis is gone: refused, or hanging until the socket's time-out?

Each trouble has a Redis and a process of its own. Beside each lookup stands the same lookup over LocMem, which calls
the upstream just as well: what is more than that is what the outage costs.
"""

from __future__ import annotations

import multiprocessing
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import servers
from benchmarks.measuring import interleave, percentile
from benchmarks.peers import dogpile, is_installed, missing
from benchmarks.report import Row
from benchmarks.site import OUTAGES, SOCKET_TIMEOUT
from benchmarks.surroundings import Surroundings


def _end(server: subprocess.Popen[bytes]) -> None:
    server.kill()
    server.wait()


#: Trouble → what makes it.
TROUBLES: dict[str, Callable[[subprocess.Popen[bytes]], object]] = {
    "Redis refuses": _end,
    "Redis hangs": lambda server: server.send_signal(signal.SIGSTOP),
}
#: What an item was before the trouble began.
BEFORE = ("a hit before", "a miss before")
_RAW, _DOGPILE = "raw django-redis, get and set", "dogpile.cache, get_or_create"
#: What else is shown → how it answers.
_PEERS = {_RAW: "every error caught", _DOGPILE: "raises; no item"}
#: Lookups of a process until it leaves the cache alone, at most: three errors that are no time-outs.
_FIRST = 3
#: Rounds of the lookups while the cache is left alone: they have to fit into five seconds.
_MOST_ROUNDS = 15
_KEPT = "KEPT"


@dataclass(frozen=True, slots=True)
class Seen:
    """What one trouble brought, in milliseconds: beyond the same lookup over LocMem, by what an item was before."""

    first: dict[str, list[float]]
    then: dict[str, float]
    of_peers: dict[str, list[float]]


def row_names() -> list[str]:
    """The names of the rows."""
    return [name(trouble) for trouble in TROUBLES for name in _OURS] + [
        _of_peer(trouble, peer) for trouble in TROUBLES for peer in _PEERS
    ]


_OURS: tuple[Callable[[str], str], ...] = (
    lambda trouble: f"{trouble}, a hit before: most extra of a first lookup, ms",
    lambda trouble: f"{trouble}, a miss before: most extra of a first lookup, ms",
    lambda trouble: f"{trouble}, a hit before: extra of each lookup then, ms",
    lambda trouble: f"{trouble}, a miss before: extra of each lookup then, ms",
)


def _of_peer(trouble: str, peer: str) -> str:
    return f"{trouble}: {peer}, every time, ms"


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Take Redis away from a process twice, in two ways."""
    rows = []
    for trouble, begin in TROUBLES.items():
        seen = _suffer(around, begin, rounds)
        first = [Row(_OURS[at](trouble), round(max(seen.first[kind]), 2)) for at, kind in enumerate(BEFORE)]
        then = [Row(_OURS[at + 2](trouble), round(seen.then[kind], 3)) for at, kind in enumerate(BEFORE)]
        of_peers = [
            Row(_of_peer(trouble, peer), round(statistics.median(each), 2), note=_PEERS[peer])
            for peer, each in seen.of_peers.items()
        ]
        absent = [_of_peer(trouble, peer) for peer in _PEERS if peer not in seen.of_peers]
        rows += [*first, *then, *of_peers, *missing(absent)]
    return rows


def _suffer(around: Surroundings, begin: Callable[[subprocess.Popen[bytes]], object], rounds: int) -> Seen:
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        redis, server = stack.enter_context(servers.mortal_valkey())
        directory = stack.enter_context(TemporaryDirectory())
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=work, args=(theirs, redis, around.catalog, directory, rounds), daemon=True)
        process.start()
        theirs.close()
        stack.callback(process.kill)
        ours.recv()
        begin(server)
        ours.send("begin")
        seen: Seen = ours.recv()
        return seen


def work(pipe: Connection, redis: str, url: str, directory: str, rounds: int) -> None:
    """Set Django up, put the items into the caches, wait for the trouble, and send what it brought."""
    from benchmarks import site  # noqa: PLC0415  # the process has no settings yet

    site.set_up(redis, url, Path(directory))
    from catalog_fallback.services import find_item  # noqa: PLC0415

    around = Surroundings(redis, url)
    for alias in OUTAGES:
        for _ in range(2):
            find_item(_KEPT, catalog=alias)
    peers = _peers(redis, around)
    for ask in peers.values():
        ask(_KEPT)
    fair = [_spent(lambda: find_item(around.fresh_id(), catalog="locmem")) for _ in range(50)]
    pipe.send("ready")
    pipe.recv()
    halves = dict(zip(BEFORE, (OUTAGES[::2], OUTAGES[1::2]), strict=True))
    normal = percentile(fair, 50)
    first: dict[str, list[float]] = {}
    then: dict[str, float] = {}
    for kind, aliases in halves.items():
        first[kind] = [each - normal for alias in aliases for each in _first(alias, kind, around)]
        then[kind] = _then(aliases[-1], kind, around, min(rounds, _MOST_ROUNDS))
    pipe.send(Seen(first, then, {name: _spent_by(ask) for name, ask in peers.items()}))


def _first(alias: str, kind: str, around: Surroundings) -> list[float]:
    """Milliseconds of the lookups until this process leaves the cache alone."""
    return [_spent(lambda: _look_up(alias, kind, around)) for _ in range(_FIRST)]


def _then(alias: str, kind: str, around: Surroundings, rounds: int) -> float:
    """Milliseconds that a lookup takes more than one over LocMem, the cache being left alone."""
    from catalog_fallback.cache import entries_of  # noqa: PLC0415  # needs settings
    from catalog_fallback.services import find_item  # noqa: PLC0415

    store = entries_of[alias].store
    cases = {
        "ours": lambda: _look_up(alias, kind, around),
        "LocMem": lambda: find_item(around.fresh_id(), catalog="locmem"),
    }
    timings = interleave(cases, rounds)
    if not store.is_paused:
        raise RuntimeError("the cache was tried again meanwhile: the rounds took more than its pause")
    ours, fair = timings["ours"].rounds, timings["LocMem"].rounds
    return statistics.median(own - other for own, other in zip(ours, fair, strict=True)) / 1000


def _look_up(alias: str, kind: str, around: Surroundings) -> None:
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    lookup = find_item(_KEPT if kind == BEFORE[0] else around.fresh_id(), catalog=alias)
    if not lookup.is_found or lookup.cache == "hit":
        raise RuntimeError(f"what was measured is not what was meant: {lookup}")


def _peers(redis: str, around: Surroundings) -> dict[str, Callable[[str], Any]]:
    """What has a cache with the same time-outs, and no memory of its troubles."""
    from django.core.cache import caches  # noqa: PLC0415  # needs settings

    raw = caches["outage-raw"]

    def get_and_set(item_id: str) -> None:
        with suppress(Exception):  # what a site writes around its cache
            if raw.get(item_id) is not None:
                return
        with suppress(Exception):
            raw.set(item_id, around.an_item(item_id), 3600)

    asks: dict[str, Callable[[str], Any]] = {_RAW: get_and_set}
    if is_installed("dogpile.cache"):
        limits = {"socket_timeout": SOCKET_TIMEOUT, "connection_kwargs": {"socket_connect_timeout": SOCKET_TIMEOUT}}
        asks[_DOGPILE] = dogpile(redis, around.an_item, **limits)
    return asks


def _spent_by(ask: Callable[[str], Any]) -> list[float]:
    def once() -> None:
        with suppress(Exception):  # whatever it raises, the visitor has waited for it
            ask(_KEPT)

    return [_spent(once) for _ in range(3)]


def _spent(call: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000
