"""Is an item that grows old fetched anew behind the readers' backs, by one process, and without harm if that fails?"""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections

from catalog_fallback import clock, flight_table, refresh_ahead, services
from catalog_fallback.cache import entries_of
from catalog_fallback.queries import Query
from catalog_fallback.results import NoReply, Reply
from tests import stores
from tests.many import ANY, Any_
from tests.sites import MovableClock, Site, words

TTL = 100
#: From here on a hit is due for a refresh: REFRESH_AHEAD is 0.5.
DUE = 51


@pytest.fixture(autouse=True)
def refresher(monkeypatch: pytest.MonkeyPatch) -> Iterator[refresh_ahead.Refresher]:
    """Background threads of the test's own, which are gone at its end."""
    Any_.begin()
    own = refresh_ahead.Refresher()
    monkeypatch.setattr(refresh_ahead, "refresher", own)
    yield own
    own.stop()
    assert len(flight_table.table) == 0


@pytest.fixture
def old(site: Site, moving: MovableClock) -> Site:
    """A site that holds P001, which is due for a refresh."""
    configure(site)
    site.find()
    Any_.begin()
    moving.move(DUE)
    return site


def configure(site: Site, **catalog: Any) -> None:
    """One source that knows every ID."""
    site.configure({"BACKEND": ANY, "TIMEOUT": 20}, {"ENABLED": False}, **{"TTL": TTL, "REFRESH_AHEAD": 0.5, **catalog})


def done(refresher: refresh_ahead.Refresher) -> None:
    """Wait until nothing is under way."""
    wait_for(lambda: not refresher._names)


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds; a test that waits in vain fails."""
    for _ in range(4000):
        if condition():
            return
        threading.Event().wait(0.005)
    pytest.fail("it never came to that")


def age(site: Site) -> float:
    """The age of what a lookup shows, in seconds."""
    lookup = site.find()
    assert lookup.cache == "hit"
    assert lookup.fetched_at is not None
    return clock.wall() - lookup.fetched_at.timestamp()


# --- what happens ---------------------------------------------------------------------------------------------------


def test_a_hit_that_has_grown_old_is_fetched_anew(old: Site, refresher: refresh_ahead.Refresher) -> None:
    """The reader has the old one at once; the next reader has the new one."""
    assert age(old) >= DUE
    done(refresher)
    assert Any_.asked == ["P001"]
    assert age(old) < DUE


@pytest.mark.parametrize("seconds", [0, 49])
def test_a_young_hit_is_left_alone(site: Site, moving: MovableClock, seconds: float) -> None:
    """Before the fraction of its life nobody is asked."""
    configure(site)
    site.find()
    Any_.begin()
    moving.move(seconds)
    site.find()
    assert not refresh_ahead.refresher._names
    assert Any_.asked == []


def test_off_by_default(site: Site, moving: MovableClock) -> None:
    """Nobody is fetched for unless the site says so."""
    configure(site, REFRESH_AHEAD=0)
    site.find()
    moving.move(99)
    site.find()
    assert not refresh_ahead.refresher._threads


def find_with_loop() -> None:
    asyncio.run(services.afind_item("P001"))


def find_with_batch() -> None:
    services.find_items(["P001", "P002"])


def find_with_loop_and_batch() -> None:
    asyncio.run(services.afind_items(["P001"]))


@pytest.mark.parametrize("find", [find_with_loop, find_with_batch, find_with_loop_and_batch])
def test_every_verb_takes_notice(old: Site, refresher: refresh_ahead.Refresher, find: Callable[[], None]) -> None:
    """Asynchronous lookups and batches too."""
    find()
    done(refresher)
    assert Any_.asked.count("P001") == 1
    assert age(old) < DUE


def test_hits_that_the_database_confirms_are_noticed_too(
    site: Site, moving: MovableClock, refresher: refresh_ahead.Refresher
) -> None:
    """STOP_CHECK="database", which is the default on a local-memory cache."""
    configure(site, STOP_CHECK="database")
    site.find()
    moving.move(DUE)
    assert site.find().cache == "hit"
    done(refresher)
    assert age(site) < DUE


def test_hits_go_on_while_it_is_fetched(old: Site, refresher: refresh_ahead.Refresher) -> None:
    """A hundred hits meanwhile: one refresh, none of them waits (requests-cache 398, cacheops 289)."""
    begun, go_on = threading.Event(), threading.Event()

    def during(item_id: str) -> None:
        begun.set()
        go_on.wait(20)

    Any_.begin(during)
    old.find()
    assert begun.wait(20)
    assert {str(old.find().cache) for _ in range(100)} == {"hit"}
    go_on.set()
    done(refresher)
    assert Any_.asked == ["P001"]


def test_h16_threads_and_what_waits_are_bounded(
    site: Site, moving: MovableClock, refresher: refresh_ahead.Refresher
) -> None:
    """A thousand old items: two threads, a hundred that wait; the others are left to later hits."""
    ids = [f"P{number:03}" for number in range(200)]
    configure(site)
    services.find_items(ids, budget=60)
    moving.move(DUE)
    go_on = threading.Event()
    Any_.begin(lambda item_id: go_on.wait(20) and None)
    services.find_items(ids, budget=60)
    assert len(refresher._threads) == refresh_ahead.THREADS
    assert len(refresher._waiting) <= refresh_ahead.WAITING
    assert Any_.most <= refresh_ahead.THREADS
    go_on.set()
    done(refresher)
    assert len(Any_.asked) <= refresh_ahead.WAITING + refresh_ahead.THREADS


def test_c19_a_refresh_slower_than_what_is_left_still_lands(
    old: Site, moving: MovableClock, refresher: refresh_ahead.Refresher
) -> None:
    """The entry expires meanwhile: a reader waits for this very fetch, and it is kept (caffeine 175, 467)."""
    begun, go_on = threading.Event(), threading.Event()

    def during(item_id: str) -> None:
        begun.set()
        go_on.wait(20)

    Any_.begin(during)
    old.find()
    assert begun.wait(20)
    expire(old)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(str(find_and_close(old).state)))
    reader.start()
    go_on.set()
    reader.join(20)
    done(refresher)
    assert (found, Any_.asked) == (["found"], ["P001"])
    assert old.find().cache == "hit"


def expire(site: Site) -> None:
    """Let the entry of P001 be over, and nothing else."""
    entries = entries_of["default"]
    query = entries.query("P001")
    value = list(entries.store.get_many((query.entry_key,))[query.entry_key])
    value[4] = value[5] = clock.wall() - 1
    entries.store.set(query.entry_key, value, 60)


def find_and_close(site: Site) -> Any:
    try:
        return site.find(budget=20)
    finally:
        connections.close_all()


# --- what it brings -------------------------------------------------------------------------------------------------

FAILURES: dict[str, Reply | NoReply] = {
    "timeout": NoReply("timeout"),
    "503": Reply(503),
    "403": Reply(403),
    "garbage": Reply(200, {}, b"?"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_refresh_changes_nothing(old: Site, refresher: refresh_ahead.Refresher, case: str) -> None:
    """The entry serves until its own end, with its own provenance (FusionCache 332)."""
    Any_.begin(lambda item_id: FAILURES[case])
    before = old.find()
    done(refresher)
    assert Any_.asked == ["P001"]
    assert old.find() == before


@pytest.mark.parametrize("negative_ttl", [0, 30])
def test_a_refresh_that_says_not_found_counts(old: Site, refresher: refresh_ahead.Refresher, negative_ttl: int) -> None:
    """The item is gone: the old entry is removed, and kept as not found where the site wants that."""
    configure(old, NEGATIVE_TTL=negative_ttl)
    Any_.begin(lambda item_id: Reply(200, {}, b'{"item": null}'))
    assert old.find().is_found
    done(refresher)
    lookup = old.find()
    assert (words(lookup), lookup.cache) == (("not_found", "all_not_found"), "hit" if negative_ttl else "miss")


def test_a_refresh_that_may_not_be_stored_removes_the_old_entry(old: Site, refresher: refresh_ahead.Refresher) -> None:
    """The upstream has changed its mind about caches."""
    body = b'{"item": {"id": "P001", "name": "Tea"}}'
    Any_.begin(lambda item_id: Reply(200, {"cache-control": "no-store"}, body))
    old.find()
    done(refresher)
    assert old.find().cache == "miss"


@pytest.mark.parametrize("verb", [services.invalidate_item, services.stop_item])
def test_fusioncache_628_what_was_invalidated_meanwhile_is_not_refreshed(
    old: Site, refresher: refresh_ahead.Refresher, verb: Callable[[str], int]
) -> None:
    """The request was sent before: what it brings is not kept (D2)."""
    begun, go_on = threading.Event(), threading.Event()

    def during(item_id: str) -> None:
        begun.set()
        go_on.wait(20)

    Any_.begin(during)
    old.find()
    assert begun.wait(20)
    verb("P001")
    go_on.set()
    done(refresher)
    Any_.begin()
    lookup = old.find()
    assert words(lookup) == (("stopped", "stopped") if verb is services.stop_item else ("found", "ok"))
    assert lookup.cache == "miss"


def test_what_was_invalidated_before_its_turn_is_not_fetched(old: Site, refresher: refresh_ahead.Refresher) -> None:
    """There is nothing left to refresh."""
    query = entries_of["default"].query("P001")
    services.invalidate_item("P001")
    assert refresher.submit(query)
    done(refresher)
    assert Any_.asked == []


def test_a_stopped_item_is_not_fetched(old: Site, refresher: refresh_ahead.Refresher) -> None:
    """Neither in the background."""
    services.stop_item("P001")
    old.find()
    assert refresher.submit(entries_of["default"].query("P001"))
    done(refresher)
    assert Any_.asked == []


def test_with_every_source_refused_nothing_is_tried(
    site: Site, moving: MovableClock, refresher: refresh_ahead.Refresher
) -> None:
    """An open breaker or a used-up limit: hits go on."""
    limit = {"CALLS": 1, "PER": 3600}
    site.configure({"BACKEND": ANY, "RATE_LIMIT": limit}, {"ENABLED": False}, TTL=TTL, REFRESH_AHEAD=0.5)
    site.find()
    moving.move(DUE)
    assert site.find().cache == "hit"
    done(refresher)
    assert Any_.asked == ["P001"]


# --- who does it ----------------------------------------------------------------------------------------------------


def test_one_process_refreshes(site: Site, moving: MovableClock, refresher: refresh_ahead.Refresher) -> None:
    """Another process has the lease: this one leaves it alone, and waits for nobody."""
    site.cache_in("tests.stores.MemoryCache", LOCATION="refreshed elsewhere")
    stores.shelf("refreshed elsewhere").__init__()  # type: ignore[misc]
    configure(site)
    site.find()
    Any_.begin()
    moving.move(DUE)
    entries = entries_of["default"]
    query = entries.query("P001")
    gate = entries.read_gate(query)
    assert gate is not None
    entries.store.add(entries.lease_key(query, gate), "elsewhere", 60)
    assert site.find().cache == "hit"
    done(refresher)
    assert Any_.asked == []


def test_a_refresh_that_raises_is_logged_and_ends(
    old: Site, refresher: refresh_ahead.Refresher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread goes on with the next."""

    def broken(query: Query, deadline: object, is_due: object) -> None:
        raise LookupError

    with monkeypatch.context() as patched:
        patched.setattr(refresh_ahead, "refresh", broken)
        old.find()
        done(refresher)
    assert "a refresh ahead of expiry raised" in caplog.text
    refresher._resting.clear()
    old.find()
    done(refresher)
    assert Any_.asked == ["P001"]


FRUITLESS: dict[str, Any] = {
    "a stop": Reply(403),
    "garbage": Reply(200, {}, b"<html>"),
}


@pytest.mark.parametrize("case", FRUITLESS)
def test_a_refresh_that_brought_nothing_is_not_tried_with_every_hit(
    old: Site, refresher: refresh_ahead.Refresher, moving: MovableClock, case: str
) -> None:
    """None of these opens a breaker, which would spare the source; after some seconds one is tried again."""
    Any_.begin(lambda item_id: FRUITLESS[case])
    for _ in range(20):
        assert old.find().cache == "hit"
        done(refresher)
    assert Any_.asked == ["P001"]
    moving.move(refresh_ahead.REST + 0.1)
    for _ in range(5):
        assert old.find().cache == "hit"
        done(refresher)
    assert Any_.asked == ["P001"] * 2
    moving.move(refresh_ahead.REST + 0.1)
    Any_.begin()
    assert old.find().cache == "hit"
    done(refresher)
    assert age(old) < 1


def test_what_one_process_tried_in_vain_is_tried_by_no_other(
    old: Site, refresher: refresh_ahead.Refresher, redis_url: str, moving: MovableClock
) -> None:
    """For as long as waiters could read how the flight ended."""
    pytest.importorskip("django_redis")
    old.cache_in("django_redis.cache.RedisCache", LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex)
    old.find()
    moving.move(DUE)
    Any_.begin(lambda item_id: Reply(403))
    for _ in range(3):
        assert old.find().cache == "hit"
        done(refresher)
        refresher._resting.clear()  # as in a process of its own
    assert Any_.asked == ["P001"]


def test_those_who_rest_are_not_more_and_more(refresher: refresh_ahead.Refresher, moving: MovableClock) -> None:
    """Those whose time is over go first, then the oldest."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(refresh_ahead, "MOST_RESTING", 3)
        for name in ("a", "b", "c", "d"):
            refresher._rest_locked(name)
            moving.move(1)
        assert list(refresher._resting) == ["b", "c", "d"]
        moving.move(refresh_ahead.REST)
        refresher._rest_locked("e")
        assert list(refresher._resting) == ["e"]


def test_a_hit_is_a_hit_where_no_thread_can_be_had(
    old: Site, refresher: refresh_ahead.Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once there is one again, refreshing goes on."""

    def none(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none)
        assert [old.find().cache for _ in range(3)] == ["hit"] * 3
    assert (refresher._names, refresher._threads) == (set(), [])
    old.find()
    done(refresher)
    assert Any_.asked == ["P001"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_an_adapter_ends_is_replaced(old: Site, refresher: refresh_ahead.Refresher) -> None:
    """However often: ``SystemExit`` is no error that anybody catches."""

    def leave(item_id: str) -> None:
        raise SystemExit

    for _ in range(refresh_ahead.THREADS + 1):
        Any_.begin(leave)
        old.find()
        done(refresher)
        wait_for(lambda: not any(thread.is_alive() for thread in refresher._threads))
        assert Any_.asked == ["P001"]
        refresher._resting.clear()
    Any_.begin()
    old.find()
    done(refresher)
    assert Any_.asked == ["P001"]


def test_it_is_stopped_at_the_end(old: Site) -> None:
    """What waits is dropped, what is under way is waited for, and nothing begins any more."""
    own = refresh_ahead.Refresher()
    begun, go_on = threading.Event(), threading.Event()

    def during(item_id: str) -> None:
        begun.set()
        go_on.wait(20)

    Any_.begin(during)
    query = entries_of["default"].query("P001")
    assert own.submit(query)
    assert not own.submit(query)
    assert begun.wait(20)
    threading.Timer(0.05, go_on.set).start()
    own.stop(20)
    assert not any(thread.is_alive() for thread in own._threads)
    assert not own.submit(entries_of["default"].query("P002"))


def test_no_thread_before_the_first_refresh() -> None:
    """Importing and being idle cost nothing; stopping what never began neither."""
    own = refresh_ahead.Refresher()
    own.stop()
    assert own._threads == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_after_a_fork_the_child_is_not_held_up_by_its_parents_threads(old: Site) -> None:
    """A child that was forked while a thread held the lock: it stops at once, and could begin anew."""
    own = refresh_ahead.Refresher()
    own._wake.acquire()
    own._pid = -1  # as a child sees its parent's
    own.stop(0)
    query = entries_of["default"].query("P001")
    assert own.submit(query)
    done(own)
    own.stop()
    assert Any_.asked == ["P001"]
