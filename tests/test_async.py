"""Do lookups leave the event loop alone, end in time, and give everything back when they are cancelled?"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from django.core.asgi import get_asgi_application
from django.core.cache.backends.base import BaseCache
from django.db import connections
from django.http import HttpRequest, JsonResponse
from django.test import AsyncRequestFactory
from django.urls import path

from catalog_fallback import aio, crowds, flight_table, off_loop, services, signals
from catalog_fallback.cache import entries_of
from catalog_fallback.exceptions import InvalidItemID, UnknownCatalog
from catalog_fallback.fallback import chain_of
from catalog_fallback.models import StoppedItem
from catalog_fallback.off_loop import Pool
from catalog_fallback.results import Lookup
from catalog_fallback.store import Store
from tests import loopback as wire
from tests.many import ANY, Any_
from tests.sites import FOUND, ITEM, NOT_FOUND, MovableClock, Site, words

#: Seconds for which the loop may be busy with something else on a crowded machine; a lookup that blocks takes longer.
MOST_BEAT = 1.0
CALL = {"TIMEOUT": 20.0, "CONNECT_TIMEOUT": 20.0}


@pytest.fixture(autouse=True)
def landed() -> Iterator[None]:
    """Whatever a test does, no flight is left behind, and no seat in a bulkhead."""
    Any_.begin()
    yield
    wait_until(lambda: len(flight_table.table) == 0)


def wait_until(condition: Any) -> None:
    """Wait until it holds; a test that waits in vain fails."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


async def reached(event: threading.Event) -> None:
    """Wait for an event of a thread without blocking the loop."""
    while not event.is_set():
        await asyncio.sleep(0.005)


def closing(work: Callable[[], object]) -> None:
    """Do something in a thread that is not ours, and leave no database connection in it."""
    try:
        work()
    finally:
        connections.close_all()


class Gate:
    """A call of a source that says when it has begun, and goes on when it is let."""

    def __init__(self, item_id: str | None = None) -> None:
        self.begun, self.open = threading.Event(), threading.Event()
        self._item_id = item_id

    def __call__(self, item_id: str) -> None:
        if self._item_id in {None, item_id}:
            self.begun.set()
            assert self.open.wait(20)


def ask_any(site: Site, during: Any = lambda item_id: None, **catalog: Any) -> None:
    """One source that knows every ID."""
    Any_.begin(during)
    source = {"BACKEND": ANY, "MAX_CONCURRENT": catalog.pop("MAX_CONCURRENT", 50), **CALL}
    site.configure(source, {"ENABLED": False}, **{"BUDGET": 20, **catalog})


@asynccontextmanager
async def heartbeat() -> AsyncIterator[list[float]]:
    """The gaps between the beats of the loop, which beats every millisecond."""
    gaps: list[float] = []

    async def beat() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.001)
            gaps.append(time.monotonic() - before)

    beating = asyncio.create_task(beat())
    await asyncio.sleep(0.01)
    try:
        yield gaps
    finally:
        beating.cancel()


# --- the same answers -----------------------------------------------------------------------------------------------

ANSWERS = {"found": FOUND, "not found": NOT_FOUND, "temporary": wire.reply(503), "stop": wire.reply(403)}


@pytest.mark.parametrize("script", [FOUND, NOT_FOUND, wire.reply(503)], ids=["found", "not found", "temporary"])
def test_django_ratelimit_300_the_asynchronous_methods_of_a_cache_are_not_used(
    site: Site, monkeypatch: pytest.MonkeyPatch, script: wire.Script
) -> None:
    """On Django 5.2 they read and then write, so two tasks could both win: the synchronous ones do it at once."""

    async def refused(self: BaseCache, *arguments: Any, **named: Any) -> None:
        pytest.fail("an asynchronous method of the cache was called")

    for name in ("aget", "aset", "aadd", "atouch", "adelete", "aget_many", "aset_many", "aincr", "aget_or_set"):
        monkeypatch.setattr(BaseCache, name, refused)
    site.cache_in("tests.stores.MemoryCache", LOCATION=uuid.uuid4().hex)
    site.configure({"RATE_LIMIT": {"CALLS": 50, "PER": 60}})
    site.say(script)

    async def look_up() -> list[Lookup]:
        lookups = [await services.afind_item("P001"), await services.afind_item("P001")]
        return [*lookups, *(await services.afind_items(["P001", "P002"])).values()]

    assert len(asyncio.run(look_up())) == 4


@pytest.mark.parametrize("case", ANSWERS)
def test_the_answer_is_that_of_the_synchronous_lookup(site: Site, case: str) -> None:
    """State, reason, item and source."""
    site.configure(TTL=0)
    site.say(ANSWERS[case])
    one, other = site.find(), asyncio.run(services.afind_item("P001"))
    assert (words(one), one.item, one.source) == (words(other), other.item, other.source)


def test_hits_misses_batches_and_refresh(site: Site) -> None:
    """All four verbs' arguments work from a loop."""
    ask_any(site)

    async def look_up() -> list[Lookup]:
        first = await services.afind_item("P001", language="de", budget=5)
        second = await services.afind_item("P001", language="de")
        third = await services.afind_item("P001", language="de", refresh=True)
        found = await services.afind_items(["P002", "P001", "P002"], language="de")
        assert list(found) == ["P002", "P001"]
        return [first, second, third, *found.values()]

    lookups = asyncio.run(look_up())
    assert [str(lookup.cache) for lookup in lookups] == ["miss", "hit", "miss", "miss", "hit"]


def test_bad_arguments_raise(site: Site) -> None:
    """As they do without a loop."""

    async def look_up(call: Coroutine[Any, Any, Any]) -> None:
        await call

    with pytest.raises(InvalidItemID):
        asyncio.run(look_up(services.afind_item("no ID")))
    with pytest.raises(InvalidItemID):
        asyncio.run(look_up(services.afind_items(["P001", "no ID"])))
    with pytest.raises(ValueError, match="budget"):
        asyncio.run(look_up(services.afind_items(["P001"], budget=0)))
    with pytest.raises(TypeError):
        asyncio.run(look_up(services.afind_items("P001")))


def test_what_an_adapter_raises_goes_through_the_thread(site: Site) -> None:
    """What even a synchronous lookup lets through reaches the task that asked."""

    class Enough(BaseException):
        """Not an Exception: nobody down there may swallow it."""

    def during(item_id: str) -> None:
        raise Enough

    ask_any(site, during)
    with pytest.raises(Enough):
        asyncio.run(services.afind_item("P001"))


# --- the loop is left alone -----------------------------------------------------------------------------------------


def test_the_loop_beats_on_while_a_source_is_slow(site: Site) -> None:
    """A miss, a batch and two hundred waiters: the heart never stops for as long as the call takes."""
    gate = Gate()
    ask_any(site, gate)

    async def look_up() -> tuple[float, list[Lookup]]:
        async with heartbeat() as gaps:
            tasks = [asyncio.create_task(services.afind_item("P001")) for _ in range(200)]
            batch = asyncio.create_task(services.afind_items(["P001", "P002"]))
            await reached(gate.begun)
            await asyncio.sleep(1.0)
            gate.open.set()
            lookups = await asyncio.gather(*tasks)
            return max(gaps), [*lookups, *(await batch).values()]

    longest, lookups = asyncio.run(look_up())
    assert {words(lookup) for lookup in lookups} == {("found", "ok")}
    assert sorted(Any_.asked) == ["P001", "P002"]
    assert longest < MOST_BEAT


def test_waiting_for_a_flight_takes_no_thread(site: Site) -> None:
    """Two hundred tasks wait for one call, in no more threads than there are for all lookups."""
    gate = Gate()
    ask_any(site, gate)

    async def look_up() -> int:
        tasks = [asyncio.create_task(services.afind_item("P001")) for _ in range(200)]
        await reached(gate.begun)
        other = asyncio.create_task(services.afind_item("P001", language="de", budget=0.001))
        while not other.done() and Any_.asked.count("P001") < 2:  # a fast machine begins its call within that time
            await asyncio.sleep(0.001)
        gate.open.set()
        assert words(await other) == ("unavailable", "deadline")
        await asyncio.gather(*tasks)
        return threading.active_count()

    before = threading.active_count()
    assert asyncio.run(look_up()) - before <= sum(pool.value for pool in Pool)
    assert Any_.asked.count("P001") <= 2


def test_hits_do_not_wait_behind_slow_sources(site: Site) -> None:
    """With every thread in a slow call, what is in the cache is answered at once."""
    gate = Gate()
    ask_any(site)
    site.find("HIT")
    ask_any(site, gate)

    async def look_up() -> str:
        slow = [asyncio.create_task(services.afind_item(f"P{each:03}")) for each in range(Pool.FETCHING.value + 5)]
        await reached(gate.begun)
        hit = await asyncio.wait_for(services.afind_item("HIT"), 10)
        gate.open.set()
        await asyncio.gather(*slow)
        return str(hit.cache)

    assert asyncio.run(look_up()) == "hit"


async def everybody_busy(pool: Pool) -> list[asyncio.Task[Any]]:
    """Lookups that keep every thread of a pool in a slow call."""
    if pool is Pool.WAITING:
        calls: list[Any] = [services.afind_items([f"B{each:03}"]) for each in range(pool.value)]
    else:
        calls = [services.afind_item(f"P{each:03}") for each in range(pool.value)]
    tasks = [asyncio.ensure_future(call) for call in calls]
    while len(Any_.asked) < pool.value:
        await asyncio.sleep(0.005)
    return tasks


async def find_one(budget: float) -> list[Lookup]:
    return [await services.afind_item("LATE", budget=budget)]


async def find_many(budget: float) -> list[Lookup]:
    return list((await services.afind_items(["LATE", "LATER"], budget=budget)).values())


@pytest.mark.parametrize(("pool", "find"), [(Pool.FETCHING, find_one), (Pool.WAITING, find_many)], ids=["one", "many"])
def test_a_lookup_ends_in_time_even_if_no_thread_is_free(site: Site, pool: Pool, find: Any) -> None:
    """The budget counts from the call, not from when its turn comes; and its source is never asked afterwards."""
    gate = Gate()
    ask_any(site, gate)

    async def look_up() -> list[Lookup]:
        slow = await everybody_busy(pool)
        late: list[Lookup] = await asyncio.wait_for(find(0.05), 10)
        gate.open.set()
        await asyncio.gather(*slow)
        return late

    assert {words(each) for each in asyncio.run(look_up())} == {("unavailable", "deadline")}
    assert not {"LATE", "LATER"} & set(Any_.asked)


def test_a_flight_never_queues_behind_those_who_wait_for_it(site: Site) -> None:
    """More batches than there are threads wait for one item whose fetch has still to begin: all of them get it."""
    ask_any(site)

    async def look_up() -> list[dict[str, Lookup]]:
        for item_id in [f"P{each:03}" for each in range(3)]:
            one = asyncio.create_task(services.afind_item(item_id))
            many = [asyncio.create_task(services.afind_items([item_id, "X"])) for _ in range(60)]
            await one
            found = await asyncio.gather(*many)
        return found

    started_at = time.monotonic()
    found = asyncio.run(look_up())
    assert {words(lookup) for each in found for lookup in each.values()} == {("found", "ok")}
    assert time.monotonic() - started_at < 15


def test_an_expired_entry_stands_in_when_no_thread_is_free(site: Site, moving: MovableClock) -> None:
    """The same as for every other deadline, where the site allows it."""
    gate = Gate("P001")
    ask_any(site, gate, STALE_IF_ERROR=600)
    gate.open.set()
    site.find("P001")
    gate.open.clear()
    gate.begun.clear()
    moving.move(61)

    async def look_up() -> Lookup:
        first = asyncio.create_task(services.afind_item("P001"))
        await reached(gate.begun)
        late = await services.afind_item("P001", budget=0.05)
        gate.open.set()
        await first
        return late

    assert asyncio.run(look_up()).is_stale


# --- budgets --------------------------------------------------------------------------------------------------------


def test_tasks_share_the_budget_they_were_started_in(site: Site, moving: MovableClock) -> None:
    """time_budget() is inherited by tasks and by the threads that work for them."""
    ask_any(site)

    async def look_up() -> list[Lookup]:
        with services.time_budget(5):
            one = await asyncio.create_task(services.afind_item("P001"))
            moving.move(5)
            two = await asyncio.gather(services.afind_item("P002"), services.afind_item("P003"))
            many = await services.afind_items(["P004"])
        return [one, *two, *many.values(), await services.afind_item("P005")]

    expected = [("found", "ok"), *[("unavailable", "deadline")] * 3, ("found", "ok")]
    assert [words(lookup) for lookup in asyncio.run(look_up())] == expected


def test_a_waiting_task_ends_with_its_own_budget(site: Site) -> None:
    """The one that fetches goes on, and its result is kept."""
    gate = Gate()
    ask_any(site, gate)

    async def look_up() -> tuple[Lookup, float, Lookup]:
        first = asyncio.create_task(services.afind_item("P001"))
        await reached(gate.begun)
        started_at = time.monotonic()
        hurried = await services.afind_item("P001", budget=0.1)
        seconds = time.monotonic() - started_at
        gate.open.set()
        return hurried, seconds, await first

    hurried, seconds, first = asyncio.run(look_up())
    assert (words(hurried), first.is_found) == (("unavailable", "deadline"), True)
    assert seconds < 0.1 + MOST_BEAT
    assert site.find("P001").cache == "hit"


# --- cancellation ---------------------------------------------------------------------------------------------------


def test_b1_a_cancelled_fetch_gives_everything_back(site: Site) -> None:
    """Lease, seat, flight and thread; what it fetched is kept, and whoever waits for it has it (FusionCache 218)."""
    gate = Gate()
    site.cache_in("tests.stores.MemoryCache", LOCATION="cancelled")
    ask_any(site, gate)

    async def look_up() -> Lookup:
        first = asyncio.create_task(services.afind_item("P001"))
        await reached(gate.begun)
        second = asyncio.create_task(services.afind_item("P001"))
        await asyncio.sleep(0.05)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        gate.open.set()
        return await second

    assert asyncio.run(look_up()).is_found
    wait_until(lambda: len(flight_table.table) == 0)
    assert chain_of["default"].callers[0].guard.bulkhead.in_use == 0
    entries = entries_of["default"]
    query = entries.query("P001")
    gate_token = entries.read_gate(query)
    assert gate_token is not None
    assert entries.store.get_many((entries.lease_key(query, gate_token),)) == {}
    assert Any_.asked == ["P001"]


def test_a_cancelled_waiter_harms_nobody(site: Site) -> None:
    """The flight lands for the others."""
    gate = Gate()
    ask_any(site, gate)

    async def look_up() -> list[Any]:
        tasks = [asyncio.create_task(services.afind_item("P001")) for _ in range(20)]
        await reached(gate.begun)
        await asyncio.sleep(0.05)
        for task in tasks[5:]:
            task.cancel()
        gate.open.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(look_up())
    assert all(isinstance(each, Lookup) and each.is_found for each in results[:5])
    assert all(isinstance(each, asyncio.CancelledError) for each in results[5:])
    assert Any_.asked == ["P001"]


def test_many_tasks_that_want_the_same_are_one_question(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty tasks for each of two items: one read of four keys, one call an item, and everybody has the answer."""
    ask_any(site)
    for item_id in ("P001", "P002"):
        services.invalidate_item(item_id)  # the gates are known
    reads: list[int] = []
    read_all = Store.get_many

    def get_many(self: Store, keys: tuple[str, ...]) -> Any:
        reads.append(len(keys))
        return read_all(self, keys)

    monkeypatch.setattr(Store, "get_many", get_many)

    async def look_up() -> list[Lookup]:
        return await asyncio.gather(*(services.afind_item(f"P00{1 + number % 2}") for number in range(100)))

    misses, hits = asyncio.run(look_up()), asyncio.run(look_up())
    assert [lookup.item_id for lookup in misses] == ["P001", "P002"] * 50
    assert {(*words(lookup), str(lookup.cache)) for lookup in misses} == {("found", "ok", "miss")}
    assert {(*words(lookup), str(lookup.cache)) for lookup in hits} == {("found", "ok", "hit")}
    assert sorted(Any_.asked) == ["P001", "P002"]
    assert reads.count(4) == 2


def test_an_expired_entry_stands_in_for_one_of_many(site: Site, moving: MovableClock) -> None:
    """Of tasks that asked together, for the one whose time is over before the fetch has ended."""
    gate = Gate()
    gate.open.set()
    ask_any(site, gate, STALE_IF_ERROR=600)
    site.find("P001")
    gate.open.clear()
    gate.begun.clear()
    moving.move(61)

    async def look_up() -> list[Lookup]:
        tasks = [asyncio.create_task(services.afind_item("P001", budget=budget)) for budget in (20, 0.1, 20)]
        late = await tasks[1]
        gate.open.set()
        return [late, await tasks[0], await tasks[2]]

    late, *others = asyncio.run(look_up())
    assert late.is_stale
    assert [(lookup.is_stale, *words(lookup)) for lookup in others] == [(False, "found", "ok")] * 2


@pytest.mark.parametrize("is_stopped", [False, True])
def test_many_tasks_ask_the_database_after_the_flight_where_it_decides(
    site: Site, is_stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STOP_CHECK = "database": a stop that no gate tells of is seen by each who waited; and nobody fetches again."""
    gate = Gate()
    ask_any(site, gate, STOP_CHECK="database", TTL=0)
    services.invalidate_item("P001")
    monkeypatch.setattr("catalog_fallback.publishing._publish_part", lambda *args, **kwargs: [])

    async def look_up() -> list[Lookup]:
        tasks = [asyncio.create_task(services.afind_item("P001")) for _ in range(20)]
        await reached(gate.begun)
        if is_stopped:
            rows = [StoppedItem(catalog="default", item_id="P001")]
            await asyncio.to_thread(closing, lambda: StoppedItem.objects.bulk_create(rows))
        gate.open.set()
        return await asyncio.gather(*tasks)

    first, *others = asyncio.run(look_up())
    assert first.is_found
    assert {words(lookup) for lookup in others} == {("stopped", "stopped") if is_stopped else ("found", "ok")}
    assert Any_.asked == ["P001"]


@pytest.mark.parametrize("stop_check", ["cache", "database"])
def test_what_was_stopped_while_they_waited_is_shown_to_nobody(site: Site, stop_check: str) -> None:
    """The flight that twenty tasks wait for finds another gate, or the database says it to each."""
    gate = Gate()
    ask_any(site, gate, STOP_CHECK=stop_check)
    services.invalidate_item("P001")

    async def look_up() -> list[Lookup]:
        tasks = [asyncio.create_task(services.afind_item("P001")) for _ in range(20)]
        await reached(gate.begun)
        await asyncio.to_thread(closing, lambda: services.stop_item("P001"))
        gate.open.set()
        return await asyncio.gather(*tasks)

    lookups = asyncio.run(look_up())
    assert {words(lookup) for lookup in lookups} == {("stopped", "stopped")}
    assert Any_.asked == ["P001"]


def test_the_one_who_goes_ahead_may_be_cancelled_at_that_very_moment(site: Site) -> None:
    """Between being told to begin and beginning: the others go on without it, and nothing is left behind."""
    ask_any(site)
    services.invalidate_item("P001")

    async def look_up() -> list[Any]:
        tasks = [asyncio.create_task(services.afind_item("P001")) for _ in range(5)]
        while tasks[0]._fut_waiter is None or not tasks[0]._fut_waiter.done():  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, *others = asyncio.run(look_up())
    assert isinstance(first, asyncio.CancelledError)
    assert {words(lookup) for lookup in others} == {("found", "ok")}
    assert Any_.asked == ["P001"]
    assert len(flight_table.table) == 0


def test_whoever_was_to_go_ahead_may_be_cancelled_before_his_turn(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many items are asked for at once, and their tasks go on a few at a time: the next one leads the others then."""
    ask_any(site)
    ids = [f"P{number:03}" for number in range(60)]

    async def run() -> list[Lookup]:
        has_begun = asyncio.Event()

        def noted(*arguments: Any) -> None:
            crowds.in_turns(*arguments)
            has_begun.set()

        monkeypatch.setattr(aio, "in_turns", noted)
        first = [asyncio.create_task(services.afind_item(item_id)) for item_id in ids]
        others = [asyncio.create_task(services.afind_item(item_id, budget=10)) for item_id in ids * 2]
        await has_begun.wait()
        for task in first[5:]:
            task.cancel()
        await asyncio.gather(*first, return_exceptions=True)
        return list(await asyncio.gather(*others))

    assert {words(lookup) for lookup in asyncio.run(run())} == {("found", "ok")}
    assert sorted(Any_.asked) == ids


#: What breaks for a catalog → its name in ``aio``, how its arguments name the catalog, and what it raises.
TROUBLES: dict[str, tuple[str, Callable[..., str], type[Exception]]] = {
    "reading": ("_read", lambda alias, queries: alias, UnknownCatalog),
    "starting a thread": ("submit", lambda pool, work: work.args[0] if pool is Pool.READING else "", RuntimeError),
    "going ahead": ("Trip", lambda query, *_: query.catalog.alias, UnknownCatalog),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_fails_for_one_catalog_fails_for_no_other(
    site: Site, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """Asked for in the same turn of the loop: everybody has an answer or an error of his own at once, nobody waits."""
    ask_any(site)
    site._settings.CATALOG_FALLBACK = {
        **site._settings.CATALOG_FALLBACK,
        "gone": site._settings.CATALOG_FALLBACK["default"],
    }
    name, catalog_of, error = TROUBLES[trouble]
    works = getattr(aio, name)

    def breaks(*arguments: Any, **options: Any) -> Any:
        if catalog_of(*arguments) == "gone":
            raise error("gone")
        return works(*arguments, **options)

    monkeypatch.setattr(aio, name, breaks)

    async def run() -> list[Any]:
        asked = [services.afind_item("P001", catalog=alias) for alias in ("gone", "gone", "default", "gone")]
        return await asyncio.gather(*asked, return_exceptions=True)

    started = time.monotonic()
    answers = asyncio.run(run())
    assert time.monotonic() - started < 10  # of a budget of 20
    assert answers.pop(2).is_found
    for answer in answers:
        assert isinstance(answer, UnknownCatalog) if trouble == "going ahead" else answer.is_found, answer


def test_a_task_that_is_cancelled_before_its_turn_never_calls(site: Site) -> None:
    """What no thread has begun is taken off the queue, and whoever waited for it does it himself."""
    gate = Gate()
    ask_any(site, gate)
    services.invalidate_item("QUEUED")  # with its gate known, the first task begins the flight, and the second joins

    async def look_up() -> Lookup:
        slow = await everybody_busy(Pool.FETCHING)
        queued = [asyncio.create_task(services.afind_item("QUEUED")) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert len(flight_table.table) == Pool.FETCHING.value + 1
        queued[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued[0]
        assert "QUEUED" not in Any_.asked
        gate.open.set()
        await asyncio.gather(*slow)
        return await queued[1]

    assert asyncio.run(look_up()).is_found
    assert Any_.asked.count("QUEUED") == 1


def test_a_time_out_of_the_callers_own_works(site: Site) -> None:
    """asyncio.timeout around a lookup: the caller goes on at once, and the next lookup finds what was fetched."""
    gate = Gate()
    ask_any(site, gate)

    async def look_up() -> Lookup:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await services.afind_item("P001")
        gate.open.set()
        return await services.afind_item("P001")

    assert asyncio.run(look_up()).is_found
    assert Any_.asked == ["P001"]


# --- loops, requests, connections -----------------------------------------------------------------------------------


def test_two_loops_in_a_row_and_a_closed_one(site: Site) -> None:
    """The threads belong to the process; a loop that was closed with a lookup under way is no trouble for the next."""
    gate = Gate("P001")
    ask_any(site, gate)

    async def abandon() -> None:
        first = asyncio.create_task(services.afind_item("P001"))
        await reached(gate.begun)
        waiting = asyncio.create_task(services.afind_item("P001"))
        await asyncio.sleep(0.05)
        del first, waiting  # asyncio.run() cancels what is left

    asyncio.run(abandon())
    gate.open.set()
    for item_id in ("P002", "P001", "P003"):
        assert asyncio.run(services.afind_item(item_id)).is_found


def test_two_loops_at_the_same_time_share_a_flight(site: Site) -> None:
    """Each in a thread of its own: one call for both."""
    gate = Gate()
    ask_any(site, gate)
    found: list[Lookup] = []

    def run() -> None:
        found.append(asyncio.run(services.afind_item("P001")))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert gate.begun.wait(20)
    gate.open.set()
    for thread in threads:
        thread.join(20)
    assert [words(lookup) for lookup in found] == [("found", "ok")] * 2
    assert Any_.asked == ["P001"]


async def show(request: HttpRequest, item_id: str) -> JsonResponse:
    """A view that looks an item up."""
    lookup = await services.afind_item(item_id)
    return JsonResponse({"state": str(lookup.state)})


urlpatterns = [path("items/<str:item_id>/", show)]


def test_asgi_leaks_no_database_connections(site: Site, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred concurrent requests: as many connections are closed as were opened."""
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = []
    ask_any(site)
    opened, closed = count_connections(monkeypatch)

    async def request_all() -> list[int]:
        application = get_asgi_application()
        factory = AsyncRequestFactory()

        async def one(number: int) -> int:
            scope = factory.get(f"/items/P{number:03}/").scope
            body = [{"type": "http.request", "body": b"", "more_body": False}]
            sent: list[dict[str, Any]] = []

            async def receive() -> dict[str, Any]:
                if not body:
                    await asyncio.Event().wait()  # the client stays
                return body.pop()

            async def send(message: dict[str, Any]) -> None:
                sent.append(message)

            await application({**scope, "type": "http"}, receive, send)  # type: ignore[arg-type]
            return int(sent[0]["status"])

        return await asyncio.gather(*(one(number) for number in range(200)))

    assert set(asyncio.run(request_all())) == {200}
    assert len(Any_.asked) == 200
    assert len(opened) > 0
    assert len(closed) == len(opened)


def count_connections(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[int]]:
    """What is opened and closed from now on, in threads other than this one."""
    opened: list[int] = []
    closed: list[int] = []
    wrapper = type(connections["default"])
    connect, close = wrapper.connect, wrapper._close
    here = threading.get_ident()

    def counted_connect(self: Any) -> None:
        connect(self)
        if threading.get_ident() != here:
            opened.append(threading.get_ident())

    def counted_close(self: Any) -> None:
        if threading.get_ident() != here and self.connection is not None:
            closed.append(threading.get_ident())
        close(self)

    monkeypatch.setattr(wrapper, "connect", counted_connect)
    monkeypatch.setattr(wrapper, "_close", counted_close)
    return opened, closed


def test_listeners_are_called_off_the_loop(site: Site) -> None:
    """A receiver of lookup_finished may use the database."""
    ask_any(site)
    seen: list[tuple[str, bool]] = []
    loop_thread = threading.get_ident()

    def listen(lookup: Lookup, elapsed: float, **_: Any) -> None:
        seen.append((lookup.item_id, threading.get_ident() == loop_thread))

    async def look_up() -> None:
        await services.afind_item("P001")
        with services.time_budget(0.001):
            await asyncio.sleep(0.01)
            await services.afind_item("P002")
        await services.afind_items(["P003"])

    signals.lookup_finished.connect(listen)
    try:
        asyncio.run(look_up())
    finally:
        signals.lookup_finished.disconnect(listen)
    assert seen == [("P001", False), ("P002", False), ("P003", False)]


def test_listeners_wait_for_no_batch(site: Site) -> None:
    """With every thread for batches in a slow call, a hit that is told to somebody is back at once."""
    ask_any(site)
    site.find("P001")
    go, told = threading.Event(), threading.Event()

    def listen(sender: object, **_: object) -> None:
        told.set()

    async def look_up() -> Lookup:
        return await asyncio.wait_for(services.afind_item("P001", budget=1), 10)

    signals.lookup_finished.connect(listen)
    try:
        for _ in range(Pool.WAITING.value):
            off_loop.submit(Pool.WAITING, partial(go.wait, 20))
        assert asyncio.run(look_up()).cache == "hit"
        assert told.is_set()
    finally:
        go.set()
        signals.lookup_finished.disconnect(listen)


def test_where_no_thread_can_be_had_what_was_begun_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the caller's, and nobody waits for him."""
    given_up: list[str] = []

    def none(*arguments: object) -> None:
        raise RuntimeError("cannot schedule new futures after shutdown")

    monkeypatch.setattr(off_loop, "submit", none)
    with pytest.raises(RuntimeError):
        asyncio.run(off_loop.in_thread(lambda: None, if_never=lambda: given_up.append("once")))
    assert given_up == ["once"]


def test_a_child_after_a_fork_has_threads_of_its_own() -> None:
    """Those of the parent are not there."""
    threads = off_loop._Threads()
    mine = threads.executor(Pool.READING)
    assert threads.executor(Pool.READING) is mine
    threads._pid = -1  # as a child sees its parent's
    assert threads.executor(Pool.READING) is not mine


def test_the_item_is_the_item(site: Site) -> None:
    """Nothing on the way changes it."""
    site.say(FOUND)
    assert asyncio.run(services.afind_item("P001")).item == ITEM
