"""Does one fetch serve everybody who waits for it, and does nobody wait longer than his budget?

Several processes on a real cache, and every order of events, are tested elsewhere; here another process is played by
what it leaves in the cache.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from catalog_fallback import clock, flight_table, leases, services, waiting
from catalog_fallback.cache import EntryCache, entries_of
from catalog_fallback.entry_form import Entry, new_token
from catalog_fallback.queries import Query
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup, NoReply, Reply, State
from catalog_fallback.trips import Trip
from tests import loopback as wire
from tests import stores
from tests.scripted import GOOD, PATH, Programmed
from tests.sites import ALSO_FOUND, FOUND, ITEM, NOT_FOUND, TEMPORARY, MovableClock, Site, words

PATIENT = {"TIMEOUT": 20.0, "CONNECT_TIMEOUT": 20.0}


def in_thread(site: Site, **arguments: Any) -> Lookup:
    """A lookup in a thread of its own, which leaves no connection behind."""
    try:
        return site.find(**{"budget": 20, **arguments})
    finally:
        connection.close()


@contextmanager
def threads(count: int = 6) -> Iterator[ThreadPoolExecutor]:
    """Threads for lookups."""
    with ThreadPoolExecutor(count) as pool:
        yield pool


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds; a test that waits in vain fails."""
    for _ in range(2000):
        if condition():
            return
        threading.Event().wait(0.005)
    pytest.fail("it never came to that")


def wait_for_waiters(count: int) -> None:
    """Wait until so many lookups wait for a flight of this process."""
    wait_for(lambda: sum(_waiters(each) for each in list(flight_table.table._flights.values())) >= count)


def _waiters(flight: flight_table.Flight) -> int:
    return len(flight._landed._cond._waiters) if flight._landed else 0  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def landed() -> Iterator[None]:
    """Whatever a test does, no flight is left behind."""
    yield
    assert len(flight_table.table) == 0


# --- one process ----------------------------------------------------------------------------------------------------

#: What the owner's source says → what everybody gets.
SHARED: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "found": ({"body": {"item": ITEM}}, ("found", "ok")),
    "not to be stored": ({"body": {"item": ITEM}, "headers": {"Cache-Control": "no-store"}}, ("found", "ok")),
    "not found": ({"body": {"item": None}}, ("not_found", "all_not_found")),
    "temporary": ({"status": 503}, ("unavailable", "incomplete_search")),
    "stop": ({"status": 403}, ("unavailable", "http_403")),
}


@pytest.mark.parametrize("case", SHARED)
def test_rueidis_1014_waiters_get_the_owners_answer(site: Site, case: str) -> None:
    """One call; the same state and reason for everybody; and everything is given back (B3, B14, D9)."""
    said, expected = SHARED[case]
    barrier = wire.Barrier()
    site.configure(PATIENT)
    site.say(wire.paused(barrier, at="before the head", **said), NOT_FOUND)
    with threads() as pool:
        futures = [pool.submit(in_thread, site) for _ in range(6)]
        barrier.wait_until_reached()
        wait_for_waiters(5)
        barrier.release()
        lookups = [future.result(20) for future in futures]
    assert [words(lookup) for lookup in lookups] == [expected] * 6
    assert len({lookup.trace for lookup in lookups}) == 1
    assert site.calls[0] == 1


def test_different_items_do_not_wait_for_each_other(site: Site) -> None:
    """Neither do languages of one item."""
    barrier = wire.Barrier()
    site.configure(PATIENT)
    site.primary.on_id("P001", wire.paused(barrier, at="before the head", body={"item": None}), FOUND)
    with threads(1) as pool:
        future = pool.submit(in_thread, site)
        barrier.wait_until_reached()
        assert site.find("P002").reason == "http_404"
        assert site.find(language="de").is_found
        barrier.release()
        assert future.result(20).is_unavailable


@pytest.mark.parametrize("is_allowed", [False, True], ids=["nothing", "stale"])
def test_a_waiter_ends_with_his_own_budget(site: Site, is_allowed: bool, moving: MovableClock) -> None:
    """Unavailable, or the expired entry; his leaving harms nobody, and the owner's answer is kept."""
    site.configure(PATIENT, STALE_IF_ERROR=300 if is_allowed else 0)
    site.say(FOUND)
    site.find()
    moving.move(61)
    barrier = wire.Barrier()
    site.say(wire.paused(barrier, at="before the head", body={"item": {"id": "P001", "name": "New"}}))
    with threads(1) as pool:
        future = pool.submit(in_thread, site)
        barrier.wait_until_reached()
        least = float("inf")
        for _ in range(4):
            started = time.monotonic()
            lookup = site.find(budget=0.1)
            least = min(least, time.monotonic() - started)
            assert (words(lookup), lookup.is_stale) == (
                (("found", "ok"), True) if is_allowed else (("unavailable", "deadline"), False)
            )
        assert least <= 0.15
        barrier.release()
        assert future.result(20).item == {"id": "P001", "name": "New"}
    assert site.find().cache == "hit"
    assert site.calls[0] == 2


def test_the_owners_own_deadline_is_not_shared(site: Site) -> None:
    """Others have more time: one of them takes over and finds the item."""
    site.configure(PATIENT)
    barrier = wire.Barrier()
    site.primary.otherwise(wire.silence)
    site.primary.on_id("P001", wire.paused(barrier, at="before the head"), FOUND)
    with threads(2) as pool:
        short = pool.submit(in_thread, site, budget=1)
        barrier.wait_until_reached()
        patient = pool.submit(in_thread, site, budget=20)
        wait_for_waiters(1)
        assert words(short.result(20)) == ("unavailable", "deadline")
        assert patient.result(20).is_found
    assert site.calls[0] == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, RuntimeError])
def test_fusioncache_218_whatever_ends_the_owner_his_flight_lands(
    site: Site, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing stays locked, and the next lookup fetches (B1, A11, H11)."""

    def end(timeout: float) -> Reply:
        raise error

    monkeypatch.setattr(Programmed, "program", staticmethod(end))
    site.configure({"BACKEND": PATH + "Programmed"})
    if issubclass(error, Exception):
        assert site.find().reason == "source_error"
    else:
        with pytest.raises(error):
            site.find()
    assert len(flight_table.table) == 0
    monkeypatch.setattr(Programmed, "program", staticmethod(lambda timeout: Reply(200, {}, GOOD)))
    assert site.find().is_found


def test_a_waiter_goes_on_when_the_owner_was_interrupted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """He fetches himself instead of waiting for nobody."""
    reached, go_on = threading.Event(), threading.Event()

    def end(timeout: float) -> Reply:
        monkeypatch.setattr(Programmed, "program", staticmethod(lambda timeout: Reply(200, {}, GOOD)))
        reached.set()
        go_on.wait(20)
        raise SystemExit

    monkeypatch.setattr(Programmed, "program", staticmethod(end))
    site.configure({"BACKEND": PATH + "Programmed"})
    with threads(2) as pool:
        owner: Future[Lookup] = pool.submit(in_thread, site)
        assert reached.wait(20)
        waiter = pool.submit(in_thread, site)
        wait_for_waiters(1)
        go_on.set()
        assert waiter.result(20).is_found
        with pytest.raises(SystemExit):
            owner.result(20)


def test_a_lookup_made_by_an_adapter_never_waits(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for itself."""
    inner: list[Lookup] = []

    def look_up_again(timeout: float) -> Reply:
        monkeypatch.setattr(Programmed, "program", staticmethod(lambda timeout: Reply(200, {}, GOOD)))
        inner.append(site.find())
        return Reply(200, {}, GOOD)

    monkeypatch.setattr(Programmed, "program", staticmethod(look_up_again))
    site.configure({"BACKEND": PATH + "Programmed"}, BUDGET=20)
    started = time.monotonic()
    assert site.find().is_found
    assert time.monotonic() - started < 10
    assert inner[0].is_found


def test_a_refresh_joins_a_fetch_but_not_an_old_entry(site: Site) -> None:
    """Who asks for something newer gets something newer, from whoever fetches it."""
    site.configure(PATIENT)
    site.say(FOUND)
    site.find()
    barrier = wire.Barrier()
    site.say(wire.paused(barrier, at="before the head", body={"item": {"id": "P001", "name": "New"}}))
    with threads(2) as pool:
        futures = [pool.submit(in_thread, site, refresh=True) for _ in range(2)]
        barrier.wait_until_reached()
        wait_for_waiters(1)
        assert site.find().cache == "hit"
        barrier.release()
        lookups = [future.result(20) for future in futures]
    assert [lookup.item for lookup in lookups] == [{"id": "P001", "name": "New"}] * 2
    assert site.calls[0] == 2


def test_after_a_fork_the_child_has_no_flights() -> None:
    """The threads that would land them are not there."""
    table = flight_table.FlightTable()
    ends_at = clock.monotonic() + 60
    flight, is_own = table.join(("key", "gate"), ends_at)
    assert (is_own, table.join(("key", "gate"), ends_at)) == (True, (flight, False))
    table._pid = -1  # as a child sees its parent's table
    other, is_own = table.join(("key", "gate"), ends_at)
    assert is_own
    assert other is not flight
    table.land(("key", "gate"), flight)  # the parent's: it is not the child's business
    assert len(table) == 1
    table.land(("key", "gate"), other)
    assert len(table) == 0


# --- another process ------------------------------------------------------------------------------------------------


class Elsewhere:
    """Another process that has the lease for P001, on the same cache; ``does`` runs at this process's second look."""

    def __init__(self, entries: EntryCache, shelf: stores.Shelf) -> None:
        self.entries, self.shelf = entries, shelf
        self.query: Query = entries.query("P001")
        gate = entries.open_gate(self.query)
        assert gate is not None
        self.gate = gate
        self.key = entries.lease_key(self.query, gate)
        entries.store.add(self.key, "elsewhere", 60)
        self.looks = 0
        self.does: Callable[[], None] = lambda: None
        shelf.fault = self.watch

    def watch(self, name: str, keys: tuple[str, ...], effect: stores.Effect) -> Any:
        """Count the looks at the lease."""
        if name == "get_many" and any("elsewhere" in repr(self.shelf.read(key)) for key in keys if self.alive(key)):
            self.looks += 1
            if self.looks == 2:
                self.does()
        return effect()

    def alive(self, key: str) -> bool:
        """There is something under the key."""
        return self.shelf.alive(key) is not None

    def writes(self, state: State = State.FOUND, fetched_at: float | None = None) -> None:
        """It has its answer, and lets go."""
        at = clock.wall() if fetched_at is None else fetched_at
        item = ITEM if state is State.FOUND else None
        self.entries.keep(self.query, self.gate, Entry(state, at, at + 60, at + 600, "primary", item))
        self.lets_go()

    def leaves(self, record: leases.Record) -> None:
        """It has no answer that can be kept, and lets go."""
        told = (record.owner, str(record.state), record.reason, record.retry_after, record.may_be_stale)
        value = [self.query.name, *told]
        self.entries.store.set(self.entries.record_key(self.query), value, leases.RECORD_LIFE)
        self.lets_go()

    def lets_go(self) -> None:
        """The lease is given back, or has expired because the process was killed."""
        self.entries.store.delete(self.key)


@pytest.fixture
def elsewhere(site: Site, moving: MovableClock) -> Elsewhere:
    """A site on a cache that is shared with another process, which is fetching P001."""
    location = f"flights-{id(site)}"
    stores.shelf(location).__init__()  # type: ignore[misc]  # another test's site may have had this address
    site.cache_in("tests.stores.MemoryCache", LOCATION=location)
    site.say(ALSO_FOUND)
    return Elsewhere(entries_of["default"], stores.shelf(location))


def test_the_entry_of_another_process_is_taken(site: Site, elsewhere: Elsewhere) -> None:
    """Nobody is called; the answer is a hit."""
    elsewhere.does = elsewhere.writes
    lookup = site.find()
    assert (words(lookup), lookup.item, lookup.cache, site.calls) == (("found", "ok"), ITEM, "hit", (0, 0))


RECORDS: dict[str, tuple[leases.Record, tuple[str, str], float | None]] = {
    "not found": (
        leases.Record("elsewhere", State.NOT_FOUND, "all_not_found"),
        ("not_found", "all_not_found"),
        None,
    ),
    "unavailable": (
        leases.Record("elsewhere", State.UNAVAILABLE, "http_429", 7.0, True),
        ("unavailable", "http_429"),
        7.0,
    ),
}


@pytest.mark.parametrize("case", RECORDS)
def test_how_the_flight_of_another_process_ended_is_taken(site: Site, elsewhere: Elsewhere, case: str) -> None:
    """The same state, reason and wait, without a call of our own."""
    record, expected, wait = RECORDS[case]
    elsewhere.does = lambda: elsewhere.leaves(record)
    lookup = site.find()
    assert (words(lookup), lookup.retry_after, site.calls) == (expected, wait, (0, 0))


@pytest.mark.parametrize("is_batch", [False, True], ids=["lookup", "batch"])
def test_what_was_for_its_own_process_is_fetched_side_by_side(
    site: Site, elsewhere: Elsewhere, *, is_batch: bool
) -> None:
    """Though a third process has the lease by now: nobody fetches one after the other."""

    def ends() -> None:
        elsewhere.leaves(leases.Record("elsewhere", State.FOUND, "ok"))
        elsewhere.entries.store.set(elsewhere.key, "a third one", 60)

    elsewhere.does = ends
    lookup = services.find_items(["P001"])["P001"] if is_batch else site.find()
    assert (words(lookup), site.calls[0]) == (("found", "ok"), 1)


def test_a_record_of_somebody_else_is_not_taken(site: Site, elsewhere: Elsewhere) -> None:
    """It is about another flight: this lookup starts its own."""
    record = leases.Record("a stranger", State.NOT_FOUND, "all_not_found")
    elsewhere.does = lambda: elsewhere.leaves(record)
    assert site.find().is_found
    assert site.calls[0] == 1


BAD_RECORDS: dict[str, Any] = {
    "text": "garbage",
    "short": ["elsewhere"],
    "another query": ["other", "elsewhere", "not_found", "all_not_found", None, False],
    "found without an item": [None, "elsewhere", "found", "ok", None, False],
    "an unknown state": [None, "elsewhere", "gone", "x", None, False],
    "no reason": [None, "elsewhere", "not_found", None, None, False],
    "a list for a state": [None, "elsewhere", ["found"], "ok", None, False],
    "a dict for a state": [None, "elsewhere", {"found": 1}, "ok", None, False],
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_a_poisoned_record_is_none(site: Site, elsewhere: Elsewhere, case: str) -> None:
    """Nobody believes what does not name the question and a possible end."""
    value = BAD_RECORDS[case]
    if isinstance(value, list) and value[0] is None:
        value = [elsewhere.query.name, *value[1:]]

    def poison() -> None:
        elsewhere.entries.store.set(elsewhere.entries.record_key(elsewhere.query), value, 3)
        elsewhere.lets_go()

    elsewhere.does = poison
    assert site.find().is_found
    assert site.calls[0] == 1


def test_symfony_59191_a_killed_process_is_replaced(site: Site, elsewhere: Elsewhere) -> None:
    """Its lease expires without an answer: one waiter takes over (B5, B10, H12)."""
    elsewhere.does = elsewhere.lets_go
    assert site.find().is_found
    assert site.calls[0] == 1


def test_a_lease_that_stays_costs_no_more_than_the_budget(
    site: Site, elsewhere: Elsewhere, moving: MovableClock
) -> None:
    """Waiting for another process is bounded like everything else; its lease is left alone."""
    before = moving.ahead
    assert words(site.find(budget=2)) == ("unavailable", "deadline")
    assert moving.ahead - before <= 2.05
    assert elsewhere.alive(f":1:{elsewhere.key}")
    assert elsewhere.looks > 50
    assert site.calls == (0, 0)


def test_an_invalidation_ends_the_waiting(site: Site, elsewhere: Elsewhere) -> None:
    """What that process brings is from before it: this lookup starts anew under the new gate (hindsight 2315)."""

    def invalidate() -> None:
        services.invalidate_item("P001")

    elsewhere.does = invalidate
    assert site.find().is_found
    assert site.calls[0] == 1


def test_a_waiter_may_get_his_expired_entry(site: Site, elsewhere: Elsewhere) -> None:
    """Where the other process could not find out either, and the site allows it."""
    site.configure(STALE_IF_ERROR=600)
    at = clock.wall() - 100
    elsewhere.entries.keep(elsewhere.query, elsewhere.gate, Entry(State.FOUND, at, at + 60, at + 660, "primary", ITEM))
    record = leases.Record("elsewhere", State.UNAVAILABLE, "incomplete_search", None, may_be_stale=True)
    elsewhere.does = lambda: elsewhere.leaves(record)
    lookup = site.find()
    assert (lookup.is_stale, lookup.item, site.calls) == (True, ITEM, (0, 0))


def test_two_waiters_of_one_process_watch_once(site: Site, elsewhere: Elsewhere) -> None:
    """One polls, the other waits for him; both get the answer."""
    done = threading.Event()
    elsewhere.does = lambda: (done.wait(20), elsewhere.writes())[1]
    with threads(2) as pool:
        futures = [pool.submit(in_thread, site) for _ in range(2)]
        wait_for_waiters(1)
        done.set()
        lookups = [future.result(20) for future in futures]
    assert [lookup.item for lookup in lookups] == [ITEM, ITEM]
    assert site.calls == (0, 0)


def test_waiters_look_every_5_to_20_ms() -> None:
    """At random, so that processes that wait for the same flight do not look in step."""
    pauses = {waiting.pause() for _ in range(100)}
    assert 0.005 <= min(pauses) < max(pauses) <= 0.02


#: What this process leaves for others to read, by how its search ended: state, reason and wait.
LEFT: dict[str, tuple[wire.Script, tuple[str, str, float | None] | None]] = {
    "found": (FOUND, None),
    "not found": (NOT_FOUND, ("not_found", "all_not_found", None)),
    "temporary": (TEMPORARY, ("unavailable", "incomplete_search", None)),
    "stop": (wire.reply(403), ("unavailable", "http_403", None)),
    "busy": (wire.reply(429, headers={"Retry-After": "7"}), ("unavailable", "http_429", 7.0)),
    "not to be stored": (wire.ok({"item": ITEM}, {"Cache-Control": "no-store"}), ("found", "ok", None)),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_this_process_leaves(site: Site, elsewhere: Elsewhere, case: str) -> None:
    """A record where there is no entry to read, without the item itself; and no lease (rueidis 1014)."""
    script, told = LEFT[case]
    elsewhere.lets_go()
    site.say(script)
    site.find()
    left = elsewhere.entries.store.get_many((elsewhere.entries.record_key(elsewhere.query), elsewhere.key))
    assert [tuple(value[2:5]) for value in left.values()] == ([] if told is None else [told])
    assert "Tea" not in repr(left)
    assert None not in [life for _key, life in elsewhere.shelf.lives]


@pytest.mark.parametrize(
    "body", [b'{"item": {"id": "P001", "name": "Tea"}}', b'{"item": null}'], ids=["kept", "not kept"]
)
def test_go_31420_a_lease_that_another_has_by_now_is_left_alone(
    site: Site, elsewhere: Elsewhere, moving: MovableClock, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    """A call outlived its lease: its answer is as good (v6_api 368), and the next owner keeps what is his."""
    store = elsewhere.entries.store

    def slow(timeout: float) -> Reply:
        moving.move(timeout + 2 * leases.MARGIN)
        assert store.add(elsewhere.key, "the next owner", 60)
        return Reply(200, {}, body)

    monkeypatch.setattr(Programmed, "program", staticmethod(slow))
    elsewhere.lets_go()
    site.configure({"BACKEND": PATH + "Programmed", "TIMEOUT": 3}, {"ENABLED": False}, BUDGET=60)
    assert str(site.find().state) == ("found" if b"Tea" in body else "not_found")
    assert store.get_many((elsewhere.key,)) == {elsewhere.key: "the next owner"}


def test_openclaw_100176_the_lease_is_touched_before_each_further_call(
    site: Site, elsewhere: Elsewhere, moving: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its life is that of the next call, so a killed process blocks nobody for longer."""

    def slow(timeout: float) -> NoReply:
        moving.move(timeout)
        return NoReply("timeout")

    monkeypatch.setattr(Programmed, "program", staticmethod(slow))
    elsewhere.lets_go()
    programmed = {"BACKEND": PATH + "Programmed"}
    site.configure({**programmed, "TIMEOUT": 3}, {**programmed, "TIMEOUT": 4}, BUDGET=20)
    elsewhere.shelf.lives.clear()
    site.find()
    key = f":1:{elsewhere.key}"
    lives = [life for name, life in elsewhere.shelf.lives if name == key]
    assert lives == [3 + leases.MARGIN, 4 + leases.MARGIN]


def test_a_gate_that_is_lost_at_once_means_no_sharing(site: Site, elsewhere: Elsewhere) -> None:
    """The second look finds none: the item is fetched for this caller alone, and not kept."""
    elsewhere.lets_go()

    def lose(name: str, keys: tuple[str, ...], effect: stores.Effect) -> Any:
        answer = effect()
        if name == "add":
            elsewhere.shelf.values.clear()
        return answer

    elsewhere.shelf.fault = lose
    assert [site.find().cache for _ in range(2)] == ["miss", "miss"]
    assert site.calls[0] == 2


def test_a_gate_that_changes_at_once_means_starting_again(site: Site, elsewhere: Elsewhere) -> None:
    """An invalidation between the first look and the second: nothing older is used."""
    elsewhere.lets_go()
    changes = iter([True])

    def change(name: str, keys: tuple[str, ...], effect: stores.Effect) -> Any:
        answer = effect()
        if name == "add" and next(changes, False):
            elsewhere.shelf.write(f":1:{elsewhere.query.gate_key}", new_token(), 300)
        return answer

    elsewhere.shelf.fault = change
    assert [site.find().cache for _ in range(2)] == ["miss", "hit"]
    assert site.calls[0] == 1


def test_a_flight_begun_too_late_is_given_up(site: Site, moving: MovableClock) -> None:
    """The time is over between beginning a flight and flying it: nobody else waits for one that nobody flies."""
    entries = entries_of["default"]
    query = entries.query("P001")
    entries.open_gate(query)
    trip = Trip(query, entries.look(query), Deadline(clock.monotonic() + 1))
    assert trip.join() is None
    assert len(flight_table.table) == 1
    moving.move(2)
    late = trip.take_up()
    assert late is not None
    assert words(late) == ("unavailable", "deadline")
    assert len(flight_table.table) == 0
