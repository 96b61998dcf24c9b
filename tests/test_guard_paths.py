"""Do guards hold on every way a lookup can take: batches, asyncio, broken adapters, broken caches, many at once?"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from typing import Any

import pytest
from django.db import connection

from catalog_fallback import services
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.resilience.bulkhead import Bulkhead
from catalog_fallback.results import NoReply, Reply
from catalog_fallback.services import afind_item, afind_items, explain_item
from tests import loopback as wire
from tests import stores
from tests.guard_scenes import EASY, caller, over_memory, refuse, set_up, spent, trace
from tests.scripted import GOOD, PATH, Programmed
from tests.sites import ALSO_FOUND, FOUND, NOT_FOUND, TEMPORARY, MovableClock, Site, words
from tests.stores import Hanging

IDS = [f"P{number:03}" for number in range(1, 7)]

# --- batches --------------------------------------------------------------------------------------------------------


def test_a_batch_whose_sources_all_refuse_costs_two_reads_and_one_query(site: Site) -> None:
    """For all of its items together."""
    shelf = over_memory(site)
    set_up(site)
    refuse("primary", "circuit_open")
    refuse("secondary", "isolated")
    services.find_items(IDS)
    with spent(shelf) as cost:
        lookups = services.find_items(IDS)
    assert cost.operations == ["get_many", "get_many"]
    assert len(cost.queries) == 1
    assert {words(lookup) for lookup in lookups.values()} == {("unavailable", "incomplete_search")}
    assert all(not attempt.called for lookup in lookups.values() for attempt in lookup.trace)
    assert site.calls == (0, 0)


def test_each_item_of_a_batch_says_what_refused_it(site: Site) -> None:
    """The second source answers for all of them."""
    set_up(site)
    site.configure(EASY)
    for item_id in IDS:
        site.secondary.on_id(item_id, wire.ok({"item": {"id": item_id, "name": "Tea"}}))
    refuse("primary", "circuit_open")
    for lookup in services.find_items(IDS).values():
        assert trace(lookup) == [("primary", "temporary", "circuit_open", False), ("secondary", "found", "ok", True)]


def test_a_breaker_opens_within_a_batch(site: Site) -> None:
    """Items that come after it ask the second source only; a batch is no way around the guards."""
    site.configure({"BREAKER": {"CONSECUTIVE_FAILURES": 2}}, MAX_PARALLEL=1)
    site.say(TEMPORARY, NOT_FOUND)
    lookups = services.find_items(IDS)
    reasons = [lookup.trace[0].reason for lookup in lookups.values()]
    assert reasons == ["http_503"] * 2 + ["circuit_open"] * 4
    assert site.calls == (2, 6)


def test_a_batch_keeps_the_rate_limit(site: Site) -> None:
    """However many of its calls run side by side."""
    site.configure({"RATE_LIMIT": {"CALLS": 3, "PER": 60}})
    site.say(NOT_FOUND, NOT_FOUND)
    lookups = services.find_items(IDS)
    limited = [lookup for lookup in lookups.values() if lookup.trace[0].reason == "rate_limited"]
    assert (len(limited), site.calls) == (3, (3, 6))
    assert {words(lookup) for lookup in limited} == {("unavailable", "incomplete_search")}


# --- asyncio --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["circuit_open", "rate_limited", "bulkhead_full", "isolated"])
def test_guards_hold_under_asyncio(site: Site, what: str) -> None:
    """One item and several."""
    set_up(site)
    site.say(FOUND, ALSO_FOUND)
    refuse("primary", what)

    async def both() -> list[Any]:
        one, several = await asyncio.gather(afind_item("P001"), afind_items(["P001"]))
        return [one, several["P001"]]

    for lookup in asyncio.run(both()):
        assert (lookup.source, lookup.trace[:1] == () or lookup.trace[0].reason == what) == ("secondary", True)
    assert site.calls[0] == 0


def test_a_cancelled_task_gives_its_slot_back(site: Site) -> None:
    """The call ends within its limits, its slot is free again, and the breaker has learnt nothing bad (A11)."""
    barrier = wire.Barrier()
    site.configure({"MAX_CONCURRENT": 1, "BREAKER": {"CONSECUTIVE_FAILURES": 1}, "TIMEOUT": 20}, BUDGET=20)
    site.say(wire.paused(barrier, at="before the head", body={"item": None}), NOT_FOUND)

    async def cancelled() -> None:
        task = asyncio.create_task(afind_item("P001"))
        await asyncio.to_thread(barrier.wait_until_reached)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    barrier.release()
    _wait_until(lambda: caller("primary").guard.bulkhead.in_use == 0)
    assert explain_item("P002").sources[0].may_call


# --- adapters that break --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_h11_what_tears_a_call_off_frees_its_slot_and_counts_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """gunicorn's SystemExit, Ctrl-C: it passes through, and the next lookup may call at once."""
    site.configure({"BACKEND": PATH + "Programmed", "MAX_CONCURRENT": 1, "BREAKER": {"CONSECUTIVE_FAILURES": 1}}, TTL=0)

    def tear(timeout: float) -> Reply:
        raise error

    monkeypatch.setattr(Programmed, "program", staticmethod(tear))
    with pytest.raises(error):
        site.find()
    assert caller("primary").guard.bulkhead.in_use == 0
    monkeypatch.setattr(Programmed, "program", staticmethod(lambda timeout: Reply(200, {}, GOOD)))
    assert trace(site.find()) == [("primary", "found", "ok", True)]
    assert caller("primary").statistics.read().calls == 1


def test_h11_a_torn_off_probe_frees_its_slot(site: Site, moving: MovableClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half-open stays half-open, and the next lookup probes (Polly 1979, monix 1080)."""
    over_memory(site)
    site.configure({"BACKEND": PATH + "Programmed", "BREAKER": {"CONSECUTIVE_FAILURES": 1, "OPEN_FOR": 10}})
    site.say(FOUND, NOT_FOUND)
    ends: list[Any] = [NoReply("timeout"), KeyboardInterrupt(), Reply(200, {}, GOOD)]

    def run(timeout: float) -> Any:
        end = ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        return end

    monkeypatch.setattr(Programmed, "program", staticmethod(run))
    site.find()
    moving.move(10.5)
    with pytest.raises(KeyboardInterrupt):
        site.find()
    assert site.find().source == "primary"


def test_an_adapter_that_refuses_an_id_is_no_failure_and_no_traceback(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """``InvalidItemID`` from ``request()``: the question was bad, the source is as it was, and no call is counted."""
    site.configure({"BREAKER": {"CONSECUTIVE_FAILURES": 1}})
    site.say(FOUND, ALSO_FOUND)

    def refuse_it(*_: object) -> Any:
        raise InvalidItemID("not this one")

    with monkeypatch.context() as patch:
        patch.setattr(caller("primary").source, "request", refuse_it)
        with caplog.at_level(logging.INFO):
            lookup = site.find()
    assert trace(lookup) == [("primary", "stop", "invalid_request", True)]
    assert words(lookup) == ("unavailable", "invalid_request")
    assert [record for record in caplog.records if record.exc_info] == []
    assert (site.calls, caller("primary").statistics.read().calls) == ((0, 0), 0)
    assert site.find().source == "primary"


# --- many at once ---------------------------------------------------------------------------------------------------


def test_h1_slow_calls_overlap(site: Site) -> None:
    """Eight lookups are all in their calls at the same moment: no lock spans one (pybreaker 3)."""
    together = wire.Barrier()
    site.configure({"TIMEOUT": 20}, BUDGET=20)
    site.say(wire.paused(together, at="before the head", body={"item": None}), NOT_FOUND)
    threads = [threading.Thread(target=_find_and_close, args=(site, f"P{number}")) for number in range(8)]
    for each in threads:
        each.start()
    together.wait_until_reached(8)
    assert caller("primary").guard.bulkhead.in_use == 8
    together.release()
    for each in threads:
        each.join()
    assert site.calls[0] == 8
    assert caller("primary").guard.bulkhead.in_use == 0


# --- caches in trouble ----------------------------------------------------------------------------------------------

BROKEN = [f"tests.stores.{name}" for name in ("RaisingCache", "SilentCache", "TimingOutCache", "MuteCache")]
NONE = "django.core.cache.backends.dummy.DummyCache"


@pytest.mark.parametrize("cache", [*BROKEN, NONE])
def test_litellm_34300_a_broken_cache_leaves_lookups_and_guards_working(site: Site, cache: str) -> None:
    """The breaker works in the process then: a dead source costs a few calls, not one for each lookup."""
    site.cache_in(cache, LOCATION=uuid.uuid4().hex)
    site.configure({"BREAKER": {"CONSECUTIVE_FAILURES": 3}})
    site.say(TEMPORARY, ALSO_FOUND)
    lookups = [site.find() for _ in range(30)]
    assert {lookup.source for lookup in lookups} == {"secondary"}
    assert site.calls[0] <= 10
    assert lookups[-1].trace[0].reason == "circuit_open"


def test_a_cache_that_forgets_leaves_lookups_working(site: Site) -> None:
    """Nobody can count in it, and nobody is refused for that."""
    site.cache_in("tests.stores.LossyCache", LOCATION=uuid.uuid4().hex)
    site.say(TEMPORARY, ALSO_FOUND)
    assert {site.find().source for _ in range(10)} == {"secondary"}


def test_a_hanging_cache_is_waited_for_once(site: Site) -> None:
    """The first operation ends with the socket's time-out; then the guards work in the process for a while."""
    location = uuid.uuid4().hex
    site.cache_in("tests.stores.MemoryCache", LOCATION=location)
    set_up(site)
    site.say(FOUND, ALSO_FOUND)
    refuse("primary", "circuit_open")
    shelf, hanging = stores.shelf(location), Hanging()
    hanging.let_go.set()  # the time-out of the socket: at once
    shelf.fault = hanging
    before = len(shelf.log)
    assert [site.find().is_found for _ in range(3)] == [True] * 3
    assert len(shelf.log) == before + 1


def test_a_state_cache_of_its_own_fails_alone(site: Site, settings: Any) -> None:
    """Guards without a store, entries with one."""
    settings.CACHES = {
        **settings.CACHES,
        "state": {"BACKEND": "tests.stores.RaisingCache", "LOCATION": uuid.uuid4().hex},
    }
    site.configure(STATE_CACHE="state")
    site.say(FOUND)
    assert [str(site.find().cache) for _ in range(2)] == ["miss", "hit"]


def _find_and_close(site: Site, item_id: str) -> None:
    try:
        site.find(item_id)
    finally:
        connection.close()


def _wait_until(condition: Any) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


def test_a_bulkhead_of_the_chain_is_one_for_the_process(site: Site) -> None:
    """Not one a thread: MAX_CONCURRENT is what it says."""
    set_up(site)
    seen: list[Bulkhead] = []
    threads = [threading.Thread(target=lambda: seen.append(caller("primary").guard.bulkhead)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({id(each) for each in seen}) == 1
