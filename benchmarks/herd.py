"""Who asks for one item all at once? Threads or tasks of a process of its own, which says how long each waited."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks import herd_peers

Ask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Order:
    """So many callers ask for this item, beginning at this moment (seconds since the epoch).

    ``kind``: ``threads`` use ``find_item``, ``tasks`` use ``afind_item``; ``event alone`` is the floor, threads that
    use neither; ``gate`` puts up the item's gate, and nobody asks. Others are those of :mod:`benchmarks.herd_peers`.
    """

    kind: str
    callers: int
    item_id: str
    begin_at: float


@dataclass(frozen=True, slots=True)
class Report:
    """How long each caller waited, in milliseconds, and which state it saw."""

    waited: tuple[float, ...]
    states: tuple[str, ...]


def serve(pipe: Connection, redis: str, url: str, directory: str) -> None:
    """Set Django up, then carry out one order after the other."""
    use_all_processors()
    from benchmarks import site  # noqa: PLC0415  # the process has no settings yet

    site.set_up(redis, url, Path(directory))
    from catalog_fallback.services import find_item  # noqa: PLC0415

    for _ in range(2):
        find_item("D0S200N0", catalog="herd")
    asks: dict[str, Ask] = {"threads": _ask, "event alone": EventAlone(url).ask}
    pipe.send(None)
    while True:
        order: Order = pipe.recv()
        pipe.send(_carry_out(order, asks, redis, url))


def _carry_out(order: Order, asks: dict[str, Ask], redis: str, url: str) -> Report:
    if order.kind == "gate":
        return _put_up_gate(order.item_id)
    if order.kind == "tasks":
        return asyncio.run(_tasks(order, _ask_from_loop))
    if order.kind == herd_peers.CASHEWS:
        return asyncio.run(_tasks(order, herd_peers.cashews(redis, url)))
    if order.kind not in asks:
        asks[order.kind] = herd_peers.ask_of(order.kind, redis, url)
    return _threads(order, asks[order.kind])


def _put_up_gate(item_id: str) -> Report:
    from catalog_fallback.cache import entries_of  # noqa: PLC0415  # needs settings

    entries = entries_of["herd"]
    entries.open_gate(entries.query(item_id))
    return Report((), ())


def use_all_processors() -> None:
    """Threads are measured as a server runs them: the system says where."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def _ask(item_id: str) -> str:
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    return str(find_item(item_id, catalog="herd").state)


class EventAlone:
    """What sharing one call costs at least: a dict, a lock and an event, without cache, stop list or deadline."""

    def __init__(self, url: str) -> None:
        import requests  # noqa: PLC0415  # only needed by who measures

        self._url = url
        self._session = requests.Session()
        self._session.trust_env = False
        self._lock = threading.Lock()
        self._flights: dict[str, threading.Event] = {}

    def ask(self, item_id: str) -> str:
        """Fetch, or wait for whoever does."""
        with self._lock:
            is_mine = item_id not in self._flights
            flight = self._flights.setdefault(item_id, threading.Event())
        if is_mine:
            self._session.get(f"{self._url}/items/{item_id}", timeout=10).json()
            flight.set()
        flight.wait()
        return "found"


def _threads(order: Order, ask: Callable[[str], str]) -> Report:
    waited: list[float] = []
    states: list[str] = []

    def one() -> None:
        _wait_until(order.begin_at)
        started = time.perf_counter()
        state = ask(order.item_id)
        waited.append((time.perf_counter() - started) * 1000)
        states.append(state)

    threads = [threading.Thread(target=one) for _ in range(order.callers)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return Report(tuple(waited), tuple(states))


async def _ask_from_loop(item_id: str) -> str:
    from catalog_fallback.services import afind_item  # noqa: PLC0415  # needs settings

    return str((await afind_item(item_id, catalog="herd")).state)


async def _tasks(order: Order, ask: Callable[[str], Awaitable[str]]) -> Report:
    await ask("D0S200N0")
    _wait_until(order.begin_at)

    async def one() -> tuple[float, str]:
        started = time.perf_counter()
        state = await ask(order.item_id)
        return (time.perf_counter() - started) * 1000, state

    done = await asyncio.gather(*(one() for _ in range(order.callers)))
    return Report(tuple(each[0] for each in done), tuple(each[1] for each in done))


def _wait_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))
