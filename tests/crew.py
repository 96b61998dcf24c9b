"""Who else asks for items? Processes of their own, started afresh by ``spawn``, on the test's cache and database.

A test says what each does next, and may kill it meanwhile::

    crew.configure(settings)                                 # the test's CACHES and CATALOG_FALLBACK, everywhere
    crew.start("look_up", item_id="P001", threads=25)        # in each process
    crew.waiting(99)                                         # so many wait for whoever fetches
    crew.results()                                           # what each of them brought
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import uuid
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the processes import this module before they have settings
    from tests.sites import Site

DJANGO_REDIS = "django_redis.cache.RedisCache"
#: How long anybody waits for anybody, in seconds.
PATIENCE = 60

spawn = multiprocessing.get_context("spawn")

#: State, reason, cache, item's name, seconds that it took.
Seen = tuple[str, str, str, str | None, float]


class Worker:
    """One process, from the test's side."""

    def __init__(self, database: str) -> None:
        self.pipe, theirs = spawn.Pipe()
        self.waiting = spawn.Value("i", 0)
        self.process = spawn.Process(target=serve, args=(theirs, self.waiting, database), daemon=True)
        self.process.start()
        theirs.close()
        self.is_busy = True

    def ask(self, job: str, **arguments: Any) -> None:
        """Let it begin something."""
        self.is_busy = True
        self.pipe.send((job, arguments))

    def answer(self) -> Any:
        """Wait for what came of it."""
        assert self.pipe.poll(PATIENCE), "a process never answered"
        answer = self.pipe.recv()
        self.is_busy = False
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def kill(self) -> None:
        """End it at once, as the kernel does when memory runs out."""
        self.process.kill()
        self.process.join()


class Crew:
    """Several of them."""

    def __init__(self, size: int, database: str) -> None:
        self._database = database
        self.workers = [Worker(database) for _ in range(size)]
        for worker in self.workers:
            worker.answer()

    def configure(self, settings: Any) -> None:
        """Give all of them the test's settings; whoever was killed, or is not done with the last test, is replaced."""
        self.workers = [self._replaced(each) if each.is_busy else each for each in self.workers]
        for worker in self.workers:
            worker.waiting.value = 0
        self.start("configure", caches=settings.CACHES, catalogs=settings.CATALOG_FALLBACK)
        self.results()

    def _replaced(self, worker: Worker) -> Worker:
        worker.kill()
        worker = Worker(self._database)
        worker.answer()
        return worker

    def start(self, job: str, **arguments: Any) -> None:
        """Let all of them begin the same."""
        for worker in self.workers:
            worker.ask(job, **arguments)

    def waiting(self, lookups: int) -> None:
        """Wait until so many lookups wait for one that fetches."""
        wait_until(lambda: sum(worker.waiting.value for worker in self.workers) >= lookups)

    def results(self) -> list[Any]:
        """Wait for all of them."""
        return [worker.answer() for worker in self.workers]

    def close(self) -> None:
        """End all of them."""
        for worker in self.workers:
            worker.kill()


def settle(
    site: Site, crew: Crew, settings: Any, redis_url: str, *, backend: str = DJANGO_REDIS, **catalog: Any
) -> None:
    """Configure the test and its crew: an empty corner of a real cache, and sources that are given all the time."""
    site.cache_in(backend, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex)
    source = {"TIMEOUT": catalog.pop("TIMEOUT", PATIENCE / 2), "CONNECT_TIMEOUT": PATIENCE / 2}
    site.configure(source, source, **{"BUDGET": PATIENCE, "OUTER_TIMEOUT": 2 * PATIENCE, **catalog})
    crew.configure(settings)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until it holds; a test that waits in vain fails."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


# ------------------------------------------------------------------------------------------------ the processes' side


def serve(pipe: Connection, waiting: Any, database: str) -> None:
    """Set Django up, then do what is asked for, one job after the other."""
    from tests import settings  # noqa: PLC0415  # the process has none yet

    settings.DATABASES["default"]["NAME"] = database
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django  # noqa: PLC0415

    django.setup()
    _forgive_the_machine()
    _count_waiters(waiting)
    pipe.send("ready")
    while True:
        job, arguments = pipe.recv()
        try:
            pipe.send(_JOBS[job](**arguments))
        except Exception as error:  # noqa: BLE001 - the test raises it
            pipe.send(error)


def _forgive_the_machine() -> None:
    """A hundred threads that wait for each other on a busy machine are no sign of a cache in trouble."""
    from catalog_fallback import cache_trouble  # noqa: PLC0415  # needs settings

    cache_trouble.SLOW = float(PATIENCE)


def _count_waiters(waiting: Any) -> None:
    """Count who waits for this process's flight, and who has seen another process's lease."""
    from catalog_fallback import flight_table, leases  # noqa: PLC0415  # needs settings

    wait, watch_many = flight_table.Flight.wait, leases.watch_many

    def note() -> None:
        with waiting.get_lock():
            waiting.value += 1

    def counted_wait(self: Any, seconds: float) -> None:
        note()
        wait(self, seconds)

    def counted_watch(*arguments: Any) -> Any:
        _looks.count = getattr(_looks, "count", 0) + 1
        if _looks.count == _SECOND_LOOK:
            note()
        return watch_many(*arguments)

    flight_table.Flight.wait = counted_wait  # type: ignore[method-assign]
    leases.watch_many = counted_watch


_SECOND_LOOK = 2
_looks = threading.local()


def _configure(caches: Any, catalogs: Any) -> None:
    from django.test import override_settings  # noqa: PLC0415  # needs settings

    override_settings(CACHES=caches, CATALOG_FALLBACK=catalogs).enable()


def _look_up(item_id: str, threads: int = 1, **arguments: Any) -> list[Seen]:
    """So many threads ask for one item at the same moment."""
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    together = threading.Barrier(threads)
    seen: list[Seen] = []

    def ask() -> None:
        from django.db import connection  # noqa: PLC0415

        together.wait(PATIENCE)
        started_at = time.monotonic()
        try:
            lookup = find_item(item_id, **arguments)
        finally:
            connection.close()
        seen.append(_seen(lookup, time.monotonic() - started_at))

    running = [threading.Thread(target=ask) for _ in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    return seen


def _look_up_many(item_ids: list[str], **arguments: Any) -> dict[str, Seen]:
    from catalog_fallback.services import find_items  # noqa: PLC0415  # needs settings

    _looks.count = 0
    started_at = time.monotonic()
    found = find_items(item_ids, **arguments)
    return {item_id: _seen(lookup, time.monotonic() - started_at) for item_id, lookup in found.items()}


def _seen(lookup: Any, seconds: float) -> Seen:
    name = None if lookup.item is None else lookup.item["name"]
    return str(lookup.state), lookup.reason, str(lookup.cache), name, seconds


_JOBS: dict[str, Callable[..., Any]] = {
    "configure": _configure,
    "look_up": _look_up,
    "look_up_many": _look_up_many,
}
