"""Do many items cost one round trip for the hits and one query for the stop list, and go misses side by side?"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog_fallback import flight_table, services
from catalog_fallback.cache import entries_of
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.models import StoppedItem
from catalog_fallback.results import Lookup, NoReply, Reply
from tests import stores
from tests.many import ANY, MANY, Any_, Many
from tests.sites import MovableClock, Site, words

IDS = [f"P{number:03}" for number in range(30)]
FOUND_, NONE_, INCOMPLETE = ("found", "ok"), ("not_found", "all_not_found"), ("unavailable", "incomplete_search")


@pytest.fixture(autouse=True)
def landed() -> Iterator[None]:
    """Whatever a test does, no flight is left behind."""
    Any_.begin()
    Many.begin()
    yield
    assert len(flight_table.table) == 0


def ask_any(site: Site, primary: dict[str, Any] | None = None, **catalog: Any) -> None:
    """One source that knows every ID."""
    site.configure({"BACKEND": ANY, "TIMEOUT": 20, **(primary or {})}, {"ENABLED": False}, **{"BUDGET": 30, **catalog})


def on_shelf(site: Site) -> stores.Shelf:
    """Use a cache that tells what was done to it."""
    location = f"batches-{id(site)}"
    stores.shelf(location).__init__()  # type: ignore[misc]  # another test's site may have had this address
    site.cache_in("tests.stores.MemoryCache", LOCATION=location)
    return stores.shelf(location)


def states(found: dict[str, Lookup]) -> set[tuple[str, str]]:
    """The different states and reasons."""
    return {words(lookup) for lookup in found.values()}


# --- what comes back ------------------------------------------------------------------------------------------------


def test_the_order_is_the_one_asked_for_and_duplicates_are_folded(site: Site) -> None:
    """Whatever was a hit and whatever was fetched."""
    ask_any(site)
    services.find_items(["P005", "P003"])
    found = services.find_items(iter(["P009", "P003", "P009", "P001", "P005", "P003"]))
    assert list(found) == ["P009", "P003", "P001", "P005"]
    assert [str(lookup.cache) for lookup in found.values()] == ["miss", "hit", "miss", "hit"]
    assert [lookup.item_id for lookup in found.values()] == list(found)
    assert sorted(Any_.asked) == ["P001", "P003", "P005", "P009"]


def test_an_id_as_it_was_typed_finds_its_lookup(site: Site) -> None:
    """By each way in which a dict is asked; it has the normal form alone among its keys."""
    ask_any(site, NORMALIZE_ID=str.upper)
    found = services.find_items(["p001", "P002"])
    assert list(found) == ["P001", "P002"]
    for item_id in ("p001", "P001"):
        assert found[item_id] is found.get(item_id) is found["P001"]
        assert item_id in found
    for item_id in ("p003", "no ID", "", 7, None):
        assert item_id not in found
        assert found.get(item_id) is None  # type: ignore[call-overload]
        assert found.get(item_id, "none") == "none"  # type: ignore[call-overload]
        with pytest.raises(KeyError):
            found[item_id]  # type: ignore[index]


def test_nothing_asked_is_nothing_answered(site: Site) -> None:
    """And nothing is read."""
    shelf = on_shelf(site)
    ask_any(site)
    assert services.find_items([]) == {}
    assert shelf.log == []


def test_a_bad_id_is_refused_before_any_work(site: Site) -> None:
    """Nothing is read, and nobody is called."""
    shelf = on_shelf(site)
    ask_any(site)
    with pytest.raises(InvalidItemID):
        services.find_items(["P001", "no ID"])
    with pytest.raises(TypeError):
        services.find_items("P001")
    assert (shelf.log, Any_.asked) == ([], [])


def test_a_batch_says_of_each_item_what_a_lookup_would(site: Site) -> None:
    """Found, not found, unavailable, stopped: state, reason, item and trace are those of single lookups."""
    ids = ["P001", "P002", "P003", "P004"]
    Many.begin(P001="Tea", P002=None, P003=503)
    site.configure({"BACKEND": MANY}, {"ENABLED": False}, TTL=0)
    services.stop_item("P004")
    together = services.find_items(ids)
    assert [words(each) for each in together.values()] == [FOUND_, NONE_, INCOMPLETE, ("stopped", "stopped")]
    for item_id in ids:
        alone = services.find_item(item_id)
        assert (words(alone), alone.item, alone.source) == (
            words(together[item_id]),
            together[item_id].item,
            together[item_id].source,
        )


# --- hits -----------------------------------------------------------------------------------------------------------


def test_all_hits_cost_one_round_trip_and_no_query(site: Site) -> None:
    """However many there are."""
    shelf = on_shelf(site)
    ask_any(site)
    services.find_items(IDS)
    shelf.log.clear()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = services.find_items(IDS)
    assert {str(lookup.cache) for lookup in found.values()} == {"hit"}
    assert [name for name, _ in shelf.log] == ["get_many"]
    assert len(queries) == 0


def test_hits_that_the_database_has_to_confirm_cost_one_query(site: Site) -> None:
    """STOP_CHECK="database": one query for all, and what is stopped there is not shown."""
    shelf = on_shelf(site)
    ask_any(site, STOP_CHECK="database")
    services.find_items(IDS)
    shelf.log.clear()
    with CaptureQueriesContext(connection) as queries:
        found = services.find_items(IDS)
    assert {str(lookup.cache) for lookup in found.values()} == {"hit"}
    assert ([name for name, _ in shelf.log], len(queries)) == (["get_many"], 1)
    with connection.cursor() as cursor:  # nobody publishes this
        columns = "catalog, item_id, reason, note, is_active, origin, event_at, created_at, updated_at"
        values = ("default", IDS[3], "legal", "", True, "code", *["2026-01-01"] * 3)
        cursor.execute(f"INSERT INTO {StoppedItem._meta.db_table} ({columns}) VALUES ({', '.join(['%s'] * 9)})", values)  # noqa: S608
    assert words(services.find_items(IDS)[IDS[3]]) == ("stopped", "stopped")


# --- misses ---------------------------------------------------------------------------------------------------------


def test_misses_are_fetched_side_by_side(site: Site) -> None:
    """MAX_PARALLEL calls at a time, no more and no fewer."""
    all_there = threading.Barrier(6)

    def during(item_id: str) -> None:
        if item_id in IDS[:6]:
            all_there.wait(20)

    Any_.begin(during)
    ask_any(site, MAX_PARALLEL=6)
    assert states(services.find_items(IDS)) == {FOUND_}
    assert (sorted(Any_.asked), Any_.most) == (IDS, 6)


def test_a_small_bulkhead_refuses_nobody(site: Site) -> None:
    """A batch does not call a source more often at a time than MAX_CONCURRENT lets it."""
    ask_any(site, {"MAX_CONCURRENT": 2}, MAX_PARALLEL=8)
    assert states(services.find_items(IDS)) == {FOUND_}
    assert Any_.most <= 2


def test_a_batch_waits_for_its_own_calls_before_it_gives_up(site: Site) -> None:
    """While its own call has the last seat, the others are not refused for it."""
    inside, go_on = threading.Event(), threading.Event()

    def during(item_id: str) -> None:
        if item_id == "OTHER":
            inside.set()
            go_on.wait(20)

    Any_.begin(during)
    ask_any(site, {"MAX_CONCURRENT": 2}, MAX_PARALLEL=2)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(find_and_close, "OTHER")
        assert inside.wait(20)
        found = services.find_items(IDS)
        go_on.set()
        assert other.result(20).is_found
    answered = [lookup for lookup in found.values() if lookup.is_found]
    assert len(answered) >= len(IDS) - 1


def find_and_close(item_id: str, **arguments: Any) -> Lookup:
    """A lookup in a thread of its own."""
    try:
        return services.find_item(item_id, **arguments)
    finally:
        connection.close()


def test_the_budget_is_that_of_the_whole_batch(site: Site, moving: MovableClock) -> None:
    """What was found until then is there, everything else is unavailable/deadline."""

    def during(item_id: str) -> None:
        moving.move(0.6)

    Any_.begin(during)
    ask_any(site, MAX_PARALLEL=1)
    found = services.find_items(IDS[:5], budget=1)
    assert [words(lookup) for lookup in found.values()] == [
        FOUND_,
        ("unavailable", "deadline"),
        ("unavailable", "deadline"),
        ("unavailable", "deadline"),
        ("unavailable", "deadline"),
    ]
    assert len(Any_.asked) == 2


def test_workers_inherit_the_callers_context(site: Site) -> None:
    """Context variables (a shared time budget, a tracer's span) reach the calls."""
    variable = contextvars.ContextVar("variable", default="nothing")
    seen: list[str] = []
    Any_.begin(lambda item_id: seen.append(variable.get()))
    ask_any(site)
    variable.set("the caller's")
    services.find_items(IDS[:3])
    assert seen == ["the caller's"] * 3


def test_one_query_for_the_stop_list_a_group(site: Site) -> None:
    """Sixteen misses for which there are workers: one query, not sixteen."""
    ask_any(site, {"MAX_CONCURRENT": 30}, MAX_PARALLEL=30)
    with CaptureQueriesContext(connection) as queries:
        services.find_items(IDS[:16])
    assert len([query for query in queries if "stoppeditem" in query["sql"]]) == 1


def test_stopped_items_are_not_called(site: Site) -> None:
    """They are answered by the group's query, and that is kept."""
    ask_any(site)
    services.stop_items(IDS[::2])
    found = services.find_items(IDS)
    assert [words(found[item_id]) for item_id in IDS[:2]] == [("stopped", "stopped"), FOUND_]
    assert sorted(Any_.asked) == IDS[1::2]
    assert {str(lookup.cache) for lookup in services.find_items(IDS).values()} == {"hit"}


def test_an_answer_older_than_the_token_is_asked_again(site: Site) -> None:
    """Stopped while the batch fetches it: the database's last word counts, for this caller too."""

    def during(item_id: str) -> None:
        if item_id == IDS[1]:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(stop_and_close, item_id).result(20)

    Any_.begin(during)
    ask_any(site, MAX_PARALLEL=4)
    found = services.find_items(IDS[:4])
    assert [words(lookup) for lookup in found.values()] == [FOUND_, ("stopped", "stopped"), FOUND_, FOUND_]
    assert services.find_item(IDS[1]).is_stopped


def stop_and_close(item_id: str) -> None:
    """A stop in a thread of its own."""
    try:
        services.stop_item(item_id)
    finally:
        connection.close()


def test_an_invalidation_meanwhile_is_not_undone(site: Site) -> None:
    """What was fetched before it is handed out, and not kept."""
    once = ["P001"]

    def during(item_id: str) -> None:
        if once:
            services.invalidate_item(once.pop())

    Any_.begin(during)
    ask_any(site, MAX_PARALLEL=1)
    assert states(services.find_items(["P001", "P002"])) == {FOUND_}
    found = services.find_items(["P001", "P002"])
    assert [str(lookup.cache) for lookup in found.values()] == ["miss", "hit"]


def test_without_a_cache_everything_is_still_fetched(site: Site) -> None:
    """No gate, no lease, no sharing, and every item."""
    site.cache_in("tests.stores.RaisingCache")
    ask_any(site)
    assert states(services.find_items(IDS)) == {FOUND_}
    assert sorted(Any_.asked) == IDS


def test_refresh_fetches_what_is_there(site: Site) -> None:
    """Every item anew, and the new entries are kept."""
    ask_any(site)
    services.find_items(IDS)
    assert {str(lookup.cache) for lookup in services.find_items(IDS, refresh=True).values()} == {"miss"}
    assert len(Any_.asked) == 2 * len(IDS)
    assert {str(lookup.cache) for lookup in services.find_items(IDS).values()} == {"hit"}


def test_inside_an_old_view_nothing_is_shared(site: Site) -> None:
    """In a transaction on SQLite what was fetched is kept as unchecked, and the next reader asks the database once."""
    from django.db import transaction  # noqa: PLC0415  # next to its use

    shelf = on_shelf(site)
    ask_any(site)
    with transaction.atomic():
        assert states(services.find_items(IDS)) == {FOUND_}
    assert not any(":l:" in key for key, _ in shelf.lives), "a lease"
    with CaptureQueriesContext(connection) as queries:
        found = services.find_items(IDS)
    assert ({str(lookup.cache) for lookup in found.values()}, len(queries)) == ({"hit"}, 1)


def test_all_refused_is_one_query_and_no_thread(site: Site) -> None:
    """An open breaker: one look at the guards, one query, nothing written, nobody started."""
    shelf = on_shelf(site)
    ask_any(site, {"RATE_LIMIT": {"CALLS": 1, "PER": 60}})
    services.find_item("P900")
    shelf.log.clear()
    before = threading.active_count()
    with CaptureQueriesContext(connection) as queries:
        found = services.find_items(IDS)
    assert states(found) == {INCOMPLETE}
    assert ([name for name, _ in shelf.log], len(queries)) == (["get_many", "get_many"], 1)
    assert threading.active_count() == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_whatever_ends_a_batch_everything_is_given_back(site: Site, error: type[BaseException]) -> None:
    """Flights land and leases go; the next batch finds everything (FusionCache 218, pybreaker)."""
    shelf = on_shelf(site)

    def during(item_id: str) -> None:
        if item_id == IDS[3]:
            raise error

    Any_.begin(during)
    ask_any(site, MAX_PARALLEL=2)
    with pytest.raises(error):
        services.find_items(IDS)
    assert len(flight_table.table) == 0
    assert not [key for key in list(shelf.values) if ":l:" in key]
    Any_.begin()
    assert states(services.find_items(IDS)) == {FOUND_}


# --- what others fetch ----------------------------------------------------------------------------------------------


def held() -> tuple[Callable[[str], None], threading.Event, threading.Event]:
    """A call for P001 that says when it has begun, and goes on when it is let."""
    inside, go_on = threading.Event(), threading.Event()

    def during(item_id: str) -> None:
        if item_id == "P001" and not inside.is_set():
            inside.set()
            go_on.wait(20)

    return during, inside, go_on


def test_what_another_thread_fetches_is_waited_for_last(site: Site) -> None:
    """The batch's own are fetched before it waits, and the other's is not fetched again."""
    during, inside, go_on = held()

    def and_let_go(item_id: str) -> None:
        if item_id == "P003":
            go_on.set()
        during(item_id)

    Any_.begin(and_let_go)
    ask_any(site, MAX_PARALLEL=1)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(find_and_close, "P001", budget=30)
        assert inside.wait(20)
        assert states(services.find_items(["P001", "P002", "P003"])) == {FOUND_}
        assert other.result(20).is_found
    assert sorted(Any_.asked) == ["P001", "P002", "P003"]


def test_a_batch_and_a_lookup_share_a_flight(site: Site) -> None:
    """A lookup that comes while a batch fetches its item waits for it."""
    during, inside, go_on = held()
    Any_.begin(during)
    ask_any(site, MAX_PARALLEL=2)
    with ThreadPoolExecutor(2) as pool:
        batch = pool.submit(find_many_and_close, ["P001", "P002"])
        assert inside.wait(20)
        single = pool.submit(find_and_close, "P001", budget=30)
        go_on.set()
        assert states(batch.result(20)) == {FOUND_}
        assert single.result(20).is_found
    assert sorted(Any_.asked) == ["P001", "P002"]


def find_many_and_close(item_ids: list[str], **arguments: Any) -> dict[str, Lookup]:
    """A batch in a thread of its own."""
    try:
        return services.find_items(item_ids, **arguments)
    finally:
        connection.close()


def test_what_others_fetch_too_long_is_unavailable(site: Site) -> None:
    """The batch's own budget counts; it harms nobody."""
    during, inside, go_on = held()
    Any_.begin(during)
    ask_any(site)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(find_and_close, "P001", budget=30)
        assert inside.wait(20)
        found = services.find_items(["P001", "P002"], budget=0.3)
        go_on.set()
        assert other.result(20).is_found
    assert [words(lookup) for lookup in found.values()] == [("unavailable", "deadline"), FOUND_]
    assert services.find_item("P001").cache == "hit"


def test_an_owner_whose_time_is_over_leaves_the_item_to_the_batch(site: Site) -> None:
    """What nobody may share is fetched after all."""
    during, inside, go_on = held()

    def until_the_end(item_id: str) -> NoReply | None:
        is_first = item_id == "P001" and not inside.is_set()
        during(item_id)
        return NoReply("timeout") if is_first else None

    Any_.begin(until_the_end)
    ask_any(site)
    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(find_and_close, "P001", budget=0.05)
        assert inside.wait(20)
        batch = pool.submit(find_many_and_close, ["P001", "P002"])
        threading.Event().wait(0.1)  # the owner's budget is over
        go_on.set()
        assert other.result(20).reason == "deadline"
        assert states(batch.result(20)) == {FOUND_}


def test_a_lease_that_nobody_can_read_blocks_nobody(site: Site) -> None:
    """Garbage in its place looks free and cannot be taken: the items are fetched without it."""
    shelf = on_shelf(site)
    ask_any(site)
    services.invalidate_items(IDS[:3])
    entries = entries_of["default"]
    for item_id in IDS[:3]:
        query = entries.query(item_id)
        gate = entries.read_gate(query)
        assert gate is not None
        shelf.write(f":1:{entries.lease_key(query, gate)}", ["garbage"], 300)
    assert states(services.find_items(IDS[:2])) == {FOUND_}
    assert services.find_item(IDS[2]).is_found


# --- adapters that answer many IDs in one call ------------------------------------------------------------------------


def test_fetch_many_is_used_where_there_is_one(site: Site) -> None:
    """Thirty misses in three calls of ten."""
    Many.begin(**{item_id: f"Item {item_id}" for item_id in IDS})
    site.configure({"BACKEND": MANY}, {"ENABLED": False})
    assert states(services.find_items(IDS)) == {FOUND_}
    assert [len(call) for call in Many.calls] == [10, 10, 10]
    # The calls are made side by side: which comes first is nobody's promise.
    assert [item_id for call in sorted(Many.calls) for item_id in call] == IDS


def test_partial_answers_count_for_each_id(site: Site) -> None:
    """What the first source has is kept; only the others go on to the next."""
    Many.begin(P000="Tea", P001=None, P002=503, P003=403)
    site.configure({"BACKEND": MANY}, {"BACKEND": ANY})
    found = services.find_items(IDS[:4])
    assert [(lookup.source, words(lookup)) for lookup in found.values()] == [
        ("primary", FOUND_),
        ("secondary", FOUND_),
        ("secondary", FOUND_),
        (None, ("unavailable", "http_403")),
    ]
    assert sorted(Any_.asked) == ["P001", "P002"]


@pytest.mark.parametrize("failure", [NoReply("timeout"), Reply(503)], ids=["timeout", "503"])
def test_a_failed_call_is_one_failure_for_all_its_items(site: Site, failure: Reply | NoReply) -> None:
    """They all go on to the next source, and the breaker counts one."""
    Many.begin()
    Many.failure = failure
    site.configure({"BACKEND": MANY, "BREAKER": {"CONSECUTIVE_FAILURES": 2}}, {"BACKEND": ANY})
    found = services.find_items(IDS[:10])
    assert {(lookup.source, words(lookup)) for lookup in found.values()} == {("secondary", FOUND_)}
    assert len(Many.calls) == 1
    services.find_items(IDS[10:20])
    assert len(Many.calls) == 2
    services.find_items(IDS[20:])
    assert len(Many.calls) == 2


def test_an_adapter_that_forgets_an_id_spoils_only_that(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """It says nothing of one: that is our bug for one item, never "not found"."""
    Many.begin(P000="Tea", P002="Mug")
    site.configure({"BACKEND": MANY}, {"ENABLED": False})
    found = services.find_items(IDS[:3])
    assert [words(lookup) for lookup in found.values()] == [FOUND_, ("unavailable", "source_error"), FOUND_]
    assert "said nothing of 1 of 3" in caplog.text
