"""Which promises hold on which cache? I1 to I8, one flight for many, and the guards, over every backend for real."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import caches
from django.core.cache.backends.base import memcache_key_warnings
from django.db import connections

from catalog_fallback import services
from catalog_fallback.cache import entries_of
from catalog_fallback.results import Lookup
from tests import backends
from tests import loopback as wire
from tests.backends import BACKENDS, make_tables, params_of
from tests.crew import PATIENCE, Crew
from tests.sites import FOUND, ITEM, NOT_FOUND, OTHER_ITEM, TEMPORARY, Site, words

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True, databases="__all__"),
    # pymemcache forgets the socket of a server that it takes for dead; Django's cache those of a thread that has ended.
    pytest.mark.usefixtures("forgotten_sockets"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

#: Other processes open their own databases: those of the tests are known to this one only.
IN_PROCESSES = [
    name for name, backend in BACKENDS.items() if backend.is_shared and backend.server not in {"postgres", "mariadb"}
]
PROCESSES, THREADS = 4, 5
Use = Callable[..., Site]


@pytest.fixture
def use(site: Site, settings: Any, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Use]:
    """Put the site on a backend, with these keys for its catalog."""

    def put(name: str, source: dict[str, Any] | None = None, **catalog: Any) -> Site:
        settings.CACHES = {"default": params_of(name, request, tmp_path)}
        make_tables(name, request)
        site.configure(source, source, **catalog)
        return site

    yield put
    caches.close_all()


@pytest.fixture(params=BACKENDS)
def anywhere(request: pytest.FixtureRequest, use: Use) -> Site:
    """A site on each backend, whose entries may be stale for a while."""
    return use(request.param, STALE_IF_ERROR=600)


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Begin something in another thread, which leaves no connection behind."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def under_way(site: Site) -> tuple[wire.Barrier, threading.Thread, list[Lookup]]:
    """A lookup whose request was sent, and whose answer waits."""
    barrier = wire.Barrier()
    site.primary.on_id("P001", wire.paused(barrier, at="before the head", body={"item": ITEM}), FOUND)
    thread, results = in_thread(site.find)
    barrier.wait_until_reached()
    return barrier, thread, results


# ------------------------------------------------------------------------------------------------ gate and entry


def test_a_hit_makes_no_call(anywhere: Site) -> None:
    """And has the item and its provenance."""
    anywhere.say(FOUND)
    miss, hit = anywhere.find(), anywhere.find()
    assert (str(miss.cache), str(hit.cache), anywhere.calls) == ("miss", "hit", (1, 0))
    assert (hit.item, hit.source, hit.fetched_at) == (ITEM, "primary", miss.fetched_at)


def test_i1_a_stopped_item_is_shown_nowhere(anywhere: Site) -> None:
    """In no language, not by a refresh, not as stale, although every variant was in the cache."""
    anywhere.say(FOUND)
    for language in ("", "de", "ja"):
        assert anywhere.find(language=language).is_found
    services.stop_item("P001")
    anywhere.say(TEMPORARY, TEMPORARY)
    for language in ("", "de", "ja"):
        assert [anywhere.find(language=language).state for _ in range(2)] == ["stopped"] * 2
    assert anywhere.find(refresh=True).is_stopped


def test_i1_a_fetch_under_way_does_not_bring_it_back(anywhere: Site) -> None:
    """What comes after the stop is kept nowhere."""
    barrier, thread, _ = under_way(anywhere)
    services.stop_item("P001")
    barrier.release()
    thread.join(PATIENCE)
    assert anywhere.find().is_stopped
    assert anywhere.calls == (1, 0)


def test_i2_what_was_requested_before_an_invalidation_is_not_kept(anywhere: Site) -> None:
    """Neither what was kept, nor what was on its way; and who asks now joins no flight of before."""
    barrier, thread, results = under_way(anywhere)
    services.invalidate_item("P001")
    anywhere.primary.on_id("P001", wire.ok({"item": OTHER_ITEM}))
    assert anywhere.find().item == OTHER_ITEM
    barrier.release()
    thread.join(PATIENCE)
    assert results[0].item == ITEM
    assert (anywhere.find().item, str(anywhere.find().cache)) == (OTHER_ITEM, "hit")


@pytest.mark.parametrize("lost", ["all", "gate", "entry"])
def test_i3_i8_lost_keys_cost_a_fetch(anywhere: Site, lost: str) -> None:
    """Half a pair is a miss; a cache that lost everything forgets no stop."""
    anywhere.say(FOUND)
    services.stop_item("P002")
    anywhere.find()
    query = entries_of["default"].query("P001")
    if lost == "all":
        caches["default"].clear()
    else:
        caches["default"].delete(query.gate_key if lost == "gate" else query.entry_key)
    assert str(anywhere.find().cache) == "miss"
    assert str(anywhere.find().cache) == "hit"
    assert anywhere.find("P002").is_stopped
    assert anywhere.calls == (2, 0)


def test_i4_a_released_item_is_found(anywhere: Site) -> None:
    """At once."""
    anywhere.say(FOUND)
    services.stop_item("P001")
    assert anywhere.find().is_stopped
    services.release_item("P001")
    assert [anywhere.find().state for _ in range(2)] == ["found"] * 2


def test_i6_every_key_is_legal_everywhere(anywhere: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent to the backend is what Memcached would take."""
    anywhere.say(FOUND)
    made: set[str] = set()
    cache = caches["default"]
    make_key = cache.make_key
    monkeypatch.setattr(
        type(cache), "make_key", lambda self, key, version=None: made.add(make_key(key)) or make_key(key)
    )
    anywhere.find(language="de")
    services.stop_item("P001")
    assert all(list(memcache_key_warnings(key)) == [] for key in made)


def test_i7_the_value_of_another_item_is_a_miss(anywhere: Site) -> None:
    """As a shared connection hands it out: it does not name what was asked for."""
    anywhere.say(FOUND)
    anywhere.primary.on_id("P002", wire.ok({"item": {"id": "P002", "name": "Mug"}}))
    anywhere.find()
    anywhere.find("P002")
    one, other = (entries_of["default"].query(item_id) for item_id in ("P001", "P002"))
    found = caches["default"].get_many([other.gate_key, other.entry_key])
    caches["default"].set(one.gate_key, found[other.gate_key], 60)
    caches["default"].set(one.entry_key, found[other.entry_key], 60)
    lookup = anywhere.find()
    assert (lookup.item, str(lookup.cache)) == (ITEM, "miss")


def test_many_items(anywhere: Site) -> None:
    """A batch is found, hit and stopped as one item is; a database that is busy may not have kept all of it."""
    ids = [f"P{number:03d}" for number in range(40)]
    for item_id in ids:
        anywhere.primary.on_id(item_id, wire.ok({"item": {"id": item_id, "name": "Tea"}}))
    assert {str(lookup.cache) for lookup in services.find_items(ids).values()} == {"miss"}
    hits = [str(lookup.cache) for lookup in services.find_items(ids).values()].count("hit")
    assert hits == len(ids) or (hits > len(ids) / 2 and caches["default"].__class__.__name__ == "DatabaseCache")
    services.stop_items(ids[:20])
    states = [str(lookup.state) for lookup in services.find_items(ids).values()]
    assert states == ["stopped"] * 20 + ["found"] * 20


def test_a_batch_leaves_no_connection_behind(use: Use, postgres: str) -> None:
    """Each worker of a batch has its guards' state in the database; what it opened for that is closed."""
    anywhere = use("database, PostgreSQL")
    anywhere.say(NOT_FOUND, NOT_FOUND)
    services.find_items([f"P{number:03d}" for number in range(20)])
    with connections[postgres].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        assert cursor.fetchone() == (1,)


# ------------------------------------------------------------------------------------------------ flights and guards


def test_threads_share_one_flight(anywhere: Site) -> None:
    """Five threads of one process: one call, and everybody has the item."""
    barrier, thread, results = under_way(anywhere)
    others = [in_thread(anywhere.find) for _ in range(4)]
    barrier.release()
    for each, _ in [(thread, results), *others]:
        each.join(PATIENCE)
    lookups = [results[0], *(found[0] for _, found in others)]
    assert {words(lookup) for lookup in lookups} == {("found", "ok")}
    assert anywhere.calls == (1, 0)


def test_a_breaker_opens_and_is_believed(anywhere: Site) -> None:
    """After the failures that the settings name; a source that rests is not called."""
    anywhere.configure({"BREAKER": {"CONSECUTIVE_FAILURES": 3}}, {"ENABLED": False})
    anywhere.say(TEMPORARY)
    for _ in range(6):
        assert words(anywhere.find()) == ("unavailable", "incomplete_search")
    assert anywhere.calls == (3, 0)
    assert anywhere.find().trace[0].reason == "circuit_open"


def test_a_rate_limit_is_kept(anywhere: Site) -> None:
    """By one process on every backend, to the call."""
    anywhere.configure({"RATE_LIMIT": {"CALLS": 3, "PER": 600}}, {"ENABLED": False})
    anywhere.say(NOT_FOUND)
    reasons = [anywhere.find(f"P{number:03d}").reason for number in range(6)]
    assert (reasons, anywhere.calls) == (["all_not_found"] * 3 + ["incomplete_search"] * 3, (3, 0))


# ------------------------------------------------------------------------------------------------ processes


@pytest.fixture(params=IN_PROCESSES)
def shared(request: pytest.FixtureRequest, processes: Crew, use: Use, settings: Any) -> tuple[backends.Backend, Site]:
    """Four processes and this one on a backend that all of them see."""
    source = {"TIMEOUT": PATIENCE / 2, "RATE_LIMIT": {"CALLS": 10, "PER": 600}}
    site = use(request.param, source, BUDGET=PATIENCE, OUTER_TIMEOUT=2 * PATIENCE)
    processes.configure(settings)
    return BACKENDS[request.param], site


def test_processes_share_one_flight(processes: Crew, shared: tuple[backends.Backend, Site]) -> None:
    """Exactly one call where ``add`` has one winner; elsewhere some more, and no wrong answer.

    There a cache that is busy (SQLite) may be left alone, so that everybody calls: more than the bulkhead lets through.
    """
    backend, site = shared
    barrier = wire.Barrier()
    site.say(wire.paused(barrier, at="before the head", body={"item": ITEM}))
    processes.start("look_up", item_id="P001", threads=THREADS)
    barrier.wait_until_reached(timeout=PATIENCE)
    if backend.is_atomic:
        processes.waiting(PROCESSES * THREADS - 1)
    barrier.release()
    seen = [each for result in processes.results() for each in result]
    answers = {each[:2] for each in seen}
    assert answers <= (
        {("found", "ok")} if backend.is_atomic else {("found", "ok"), ("unavailable", "incomplete_search")}
    )
    assert site.calls[0] == 1 or not backend.is_atomic


def test_a_stop_reaches_every_process(processes: Crew, shared: tuple[backends.Backend, Site]) -> None:
    """Whichever made the entry, and whichever stops."""
    _, site = shared
    site.say(FOUND)
    processes.start("look_up", item_id="P001")
    assert {each[0] for result in processes.results() for each in result} == {"found"}
    services.stop_item("P001")
    processes.start("look_up", item_id="P001")
    assert {each[0] for result in processes.results() for each in result} == {"stopped"}


def test_processes_share_one_limit(processes: Crew, shared: tuple[backends.Backend, Site]) -> None:
    """Never more calls than allowed where ``incr`` is atomic; elsewhere the limit may be passed: what W012 says."""
    backend, site = shared
    site.say(NOT_FOUND)
    for number, worker in enumerate(processes.workers):
        worker.ask("look_up_many", item_ids=[f"P{number}{at:02d}" for at in range(10)])
    seen = [each for result in processes.results() for each in result.values()]
    assert {each[0] for each in seen} <= {"not_found", "unavailable"}
    most = 10 if backend.is_atomic else 10 * PROCESSES
    assert 0 < site.calls[0] <= most
