"""What does a lookup do when guards refuse? It says so in the trace, goes on or ends, and costs next to nothing."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from catalog_fallback import operating, services, signals
from catalog_fallback.exceptions import ItemUnavailable
from catalog_fallback.models import CatalogSource
from catalog_fallback.services import explain_item
from tests import loopback as wire
from tests.guard_scenes import CACHES, EASY, REFUSALS, caller, over, over_memory, refuse, set_up, spent, trace
from tests.sites import ALSO_FOUND, FOUND, NOT_FOUND, STOP, TEMPORARY, MovableClock, Site, words
from tests.test_signals import listening

BUSY = wire.reply(429)
BUSY_FOR_A_MINUTE = wire.reply(429, headers={"Retry-After": "60"})
DOWN_FOR_A_MINUTE = wire.reply(503, headers={"Retry-After": "60"})


@pytest.fixture(params=CACHES)
def shop(request: pytest.FixtureRequest, site: Site, redis_url: str) -> Site:
    """A site whose guards are easy to exhaust, over LocMem and over a real Valkey."""
    over(site, request.param, redis_url)
    set_up(site)
    return site


# --- one source refuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", [name for name, outcome in REFUSALS.items() if outcome == "temporary"])
def test_a_refusal_is_an_attempt_that_was_not_made(shop: Site, what: str) -> None:
    """It has the guard's reason and no call, and the next source is asked."""
    shop.say(FOUND, ALSO_FOUND)
    refuse("primary", what)
    lookup = shop.find()
    assert trace(lookup) == [("primary", "temporary", what, False), ("secondary", "found", "ok", True)]
    assert (lookup.source, lookup.trace[0].elapsed_ms, shop.calls) == ("secondary", 0.0, (0, 1))


@pytest.mark.parametrize("what", [name for name, outcome in REFUSALS.items() if outcome == "temporary"])
def test_a_refusal_is_no_not_found(shop: Site, what: str) -> None:
    """The second source has no such item; the first could not be asked: nobody knows."""
    shop.say(FOUND, NOT_FOUND)
    refuse("primary", what)
    assert words(shop.find()) == ("unavailable", "incomplete_search")


def test_a_cool_down_after_429_ends_the_lookup(shop: Site) -> None:
    """A source that says "too many" must not be papered over: the second one is not asked."""
    shop.say(FOUND, ALSO_FOUND)
    refuse("primary", "cooling_down")
    lookup = shop.find()
    assert trace(lookup) == [("primary", "stop", "cooling_down", False)]
    assert (words(lookup), shop.calls) == (("unavailable", "cooling_down"), (0, 0))


@pytest.mark.parametrize("what", REFUSALS)
def test_explain_says_what_a_lookup_meets_and_takes_nothing(shop: Site, what: str) -> None:
    """However often it is asked (resilience4j 858)."""
    shop.say(FOUND, ALSO_FOUND)
    refuse("primary", what)
    in_use = [caller(source).guard.bulkhead.in_use for source in ("primary", "secondary")]
    for _ in range(5):
        primary, secondary = explain_item("P001").sources
        assert (primary.source, primary.may_call, primary.reason) == ("primary", False, what)
        assert (secondary.source, secondary.may_call, secondary.reason) == ("secondary", True, "ok")
    assert [caller(source).guard.bulkhead.in_use for source in ("primary", "secondary")] == in_use
    assert shop.calls == (0, 0)
    attempt = shop.find().trace[0]
    assert (attempt.reason, attempt.called) == (what, False)


def test_explain_names_the_wait_that_the_lookup_returns(shop: Site) -> None:
    """Both say the same seconds."""
    refuse("primary", "cooling_down")
    wait = explain_item("P001").sources[0].retry_after
    assert wait == pytest.approx(shop.find().retry_after, abs=1)
    assert wait == pytest.approx(60, abs=2)


def test_a_refused_call_is_told_to_listeners(shop: Site) -> None:
    """``source_called`` has every attempt, those that were not made too, in the order of the trace."""
    shop.say(FOUND, ALSO_FOUND)
    refuse("primary", "circuit_open")
    with listening(signals.source_called) as heard:
        lookup = shop.find()
    assert [each["attempt"] for each in heard] == list(lookup.trace)


# --- every source refuses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", REFUSALS)
def test_all_refused_costs_two_reads_and_one_query(site: Site, what: str) -> None:
    """No gate, no lease, no record, no thread and no socket; the database says whether the ID is stopped."""
    shelf = over_memory(site)
    set_up(site)
    for source in ("primary", "secondary"):
        refuse(source, what)
    site.find("P009")
    threads = threading.active_count()
    with spent(shelf) as cost:
        lookup = site.find()
    assert cost.operations == ["get_many", "get_many"]
    assert ["stoppeditem" in query for query in cost.queries] == [True]
    assert (threading.active_count(), site.primary.connections, site.secondary.connections) == (threads, 0, 0)
    reason = "cooling_down" if what == "cooling_down" else "incomplete_search"
    assert (words(lookup), site.calls) == (("unavailable", reason), (0, 0))
    assert not any(attempt.called for attempt in lookup.trace)


@pytest.mark.parametrize("what", REFUSALS)
def test_nginx_2c55914a9_refused_sources_let_a_stale_entry_serve(site: Site, moving: MovableClock, what: str) -> None:
    """C14: breaker open, limited, cooling, full or isolated everywhere is a reason to show what is expired."""
    over_memory(site)
    set_up(site, STALE_IF_ERROR=600)
    site.say(FOUND)
    site.find()
    moving.move(61)
    for source in ("primary", "secondary"):
        refuse(source, what)
    lookup = site.find()
    assert (words(lookup), str(lookup.cache), lookup.source) == (("found", "ok"), "stale", "primary")
    assert not any(attempt.called for attempt in lookup.trace)


@pytest.mark.parametrize("what", REFUSALS)
def test_stopped_wins_over_refused_sources_and_a_stale_entry(site: Site, moving: MovableClock, what: str) -> None:
    """The stop list is asked although nobody is called."""
    over_memory(site)
    set_up(site, STALE_IF_ERROR=600)
    site.say(FOUND)
    site.find()
    moving.move(61)
    for source in ("primary", "secondary"):
        refuse(source, what)
    services.stop_item("P001")
    assert words(site.find()) == ("stopped", "stopped")


def test_retry_after_is_the_earliest_moment_at_which_something_changes(site: Site, moving: MovableClock) -> None:
    """Of two sources the one that is free first."""
    over_memory(site)
    source = {"BREAKER": {"CONSECUTIVE_FAILURES": 1, "OPEN_FOR": 45}}
    site.configure(source, source)
    site.say(TEMPORARY, wire.reply(503, headers={"Retry-After": "20"}))
    assert site.find().retry_after == 20
    for passed, left in ((5, 15), (13, 2)):
        moving.move(passed)
        lookup = site.find()
        assert [attempt.reason for attempt in lookup.trace] == ["circuit_open", "cooling_down"]
        assert lookup.retry_after == pytest.approx(left, abs=0.5)
        with pytest.raises(ItemUnavailable) as caught:
            lookup.raise_for_state()
        assert caught.value.retry_after == lookup.retry_after


def test_a_found_item_has_no_retry_after(shop: Site) -> None:
    """Although a source refused on the way."""
    shop.say(FOUND, ALSO_FOUND)
    refuse("primary", "circuit_open")
    assert shop.find().retry_after is None


# --- 429 and 503 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("script", "seconds"), [(BUSY, 30), (BUSY_FOR_A_MINUTE, 60)], ids=["no header", "a minute"])
def test_429_stops_the_lookup_and_cools_the_source_down(
    site: Site, moving: MovableClock, script: wire.Script, seconds: int
) -> None:
    """Now a stop, then a stop without a call, for as long as it asked, else for half a minute; nobody sleeps (F15)."""
    over_memory(site)
    site.say(script, ALSO_FOUND)
    assert trace(site.find()) == [("primary", "stop", "http_429", True)]
    site.primary.otherwise(FOUND)
    moving.move(seconds - 1)
    assert trace(site.find()) == [("primary", "stop", "cooling_down", False)]
    assert site.calls == (1, 0)
    moving.move(1.5)
    assert trace(site.find()) == [("primary", "found", "ok", True)]


def test_503_with_retry_after_leaves_the_source_alone_and_asks_the_next(site: Site, moving: MovableClock) -> None:
    """Temporary now and while it cools down; the second source answers both times."""
    over_memory(site)
    site.say(DOWN_FOR_A_MINUTE, ALSO_FOUND)
    assert trace(site.find("P001"))[0] == ("primary", "temporary", "http_503", True)
    services.invalidate_item("P001")
    site.primary.otherwise(FOUND)
    moving.move(59)
    assert trace(site.find()) == [("primary", "temporary", "cooling_down", False), ("secondary", "found", "ok", True)]
    services.invalidate_item("P001")
    moving.move(1.5)
    assert trace(site.find()) == [("primary", "found", "ok", True)]


def test_503_without_retry_after_cools_nothing_down(shop: Site) -> None:
    """It counts against the breaker, and that is all."""
    shop.say(TEMPORARY, NOT_FOUND)
    shop.find()
    assert explain_item("P001").sources[0].may_call


# --- breaker and limits through lookups -----------------------------------------------------------------------------


def test_a_breaker_opens_probes_and_closes(site: Site, moving: MovableClock) -> None:
    """Five failures in a row, half a minute without calls, one good probe; each change is told once."""
    over_memory(site)
    site.configure()
    site.say(TEMPORARY, NOT_FOUND)
    with listening(signals.breaker_changed) as heard:
        for _ in range(5):
            site.find()
        assert [trace(site.find())[0] for _ in range(3)] == [("primary", "temporary", "circuit_open", False)] * 3
        assert site.calls[0] == 5
        site.primary.otherwise(FOUND)
        moving.move(30.5)
        assert trace(site.find()) == [("primary", "found", "ok", True)]
        assert words(site.find("P002")) == ("unavailable", "invalid_item")
    told = [(each["catalog"], each["source"], each["old"], each["new"], each["reason"]) for each in heard]
    assert told == [
        ("default", "primary", "closed", "open", "consecutive_failures"),
        ("default", "primary", "open", "half_open", "consecutive_failures"),
        ("default", "primary", "half_open", "closed", "probes_succeeded"),
    ]


def test_a_failed_probe_opens_for_twice_as_long(site: Site, moving: MovableClock) -> None:
    """And the lookup goes on to the second source meanwhile."""
    over_memory(site)
    site.configure({"BREAKER": {"CONSECUTIVE_FAILURES": 1, "OPEN_FOR": 10}})
    site.say(TEMPORARY, NOT_FOUND)
    site.find()
    moving.move(10.5)
    assert trace(site.find())[0] == ("primary", "temporary", "http_503", True)
    moving.move(15)
    assert trace(site.find())[0] == ("primary", "temporary", "circuit_open", False)
    assert site.calls[0] == 2


def test_answers_of_a_healthy_source_never_open_its_breaker(shop: Site) -> None:
    """403, 404, garbage and "no such item" prove that it is there (circuitbox 45, smg 2565)."""
    for script in (STOP, wire.reply(404), wire.ok(b"garbage"), NOT_FOUND) * 3:
        shop.say(script)
        shop.configure({**EASY, "RATE_LIMIT": None})
        shop.find()
    assert explain_item("P001").sources[0].may_call


def test_a_rate_limit_degrades_to_the_next_source(shop: Site) -> None:
    """Three calls a minute, then the second source answers; nobody waits."""
    shop.configure({"RATE_LIMIT": {"CALLS": 3, "PER": 60}}, TTL=0)
    shop.say(FOUND, ALSO_FOUND)
    assert [shop.find().source for _ in range(5)] == ["primary"] * 3 + ["secondary"] * 2
    assert shop.calls == (3, 2)
    assert shop.find().trace[0].reason == "rate_limited"


def test_a_full_bulkhead_degrades_to_the_next_source(shop: Site) -> None:
    """The calls that run keep running; the next lookup does not wait for them."""
    barrier = wire.Barrier()
    shop.configure({"MAX_CONCURRENT": 1, "TIMEOUT": 20}, BUDGET=20)
    shop.primary.otherwise(wire.paused(barrier, at="before the head", body={"item": None}))
    shop.secondary.otherwise(wire.ok({"item": {"id": "P002", "name": "Coffee"}}))
    first = threading.Thread(target=_find_and_close, args=(shop, "P001"))
    first.start()
    barrier.wait_until_reached()
    lookup = shop.find("P002")
    barrier.release()
    first.join()
    assert trace(lookup) == [("primary", "temporary", "bulkhead_full", False), ("secondary", "found", "ok", True)]
    assert caller("primary").guard.bulkhead.in_use == 0


def test_an_isolated_source_is_not_called_until_it_is_restored(shop: Site) -> None:
    """Whatever its results say."""
    shop.say(FOUND, NOT_FOUND)
    operating.isolate_source("default", "primary")
    assert trace(shop.find())[0] == ("primary", "temporary", "isolated", False)
    operating.restore_source("default", "primary")
    assert shop.find().source == "primary"


def test_a_row_that_somebody_saves_isolates_too(shop: Site) -> None:
    """The admin, a fixture, a script: saving and deleting a row is all it takes."""
    shop.say(FOUND, NOT_FOUND)
    shop.find("P002")
    row = CatalogSource.objects.create(catalog="default", source="primary", isolated_at=timezone.now() - timedelta(1))
    assert shop.find("P003").trace[0].reason == "isolated"
    row.delete()
    assert shop.find().source == "primary"


def _find_and_close(site: Site, item_id: str, **arguments: Any) -> None:
    from django.db import connection  # noqa: PLC0415  # that of the thread

    try:
        site.find(item_id, **arguments)
    finally:
        connection.close()
