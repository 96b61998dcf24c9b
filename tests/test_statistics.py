"""Are a source's calls counted: right, by all processes together, cheaply, and within bounds?"""

from __future__ import annotations

import threading
import uuid
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback import classify
from catalog_fallback.calling import OVERRUN
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.store import ProcessStore
from catalog_fallback.results import NoReply
from catalog_fallback.statistics import BOUNDS, WINDOW, Failure, Figures, Statistics
from catalog_fallback.testing import FrozenClock
from tests import stores
from tests.crew import DJANGO_REDIS
from tests.guard_scenes import caller, over_memory, refuse, set_up, spent
from tests.resilience.worlds import FaultyStore
from tests.scripted import PATH, Programmed
from tests.sites import ALSO_FOUND, FOUND, NOT_FOUND, TEMPORARY, MovableClock, Site

GOOD, NOTHING = classify.verdict("ok"), classify.verdict("empty_result")
SLOW, BUSY = classify.verdict("timeout"), classify.verdict("http_429")
NAMES = Names("default", "primary")


def counted(store: ProcessStore, *latencies: float) -> Statistics:
    """Calls that went well, written."""
    made = Statistics(store, NAMES)
    for seconds in latencies:
        made.note(GOOD, seconds)
    made.write()
    return made


# --- what is counted ------------------------------------------------------------------------------------------------


def test_calls_failures_and_time_outs_are_told_apart(frozen_clock: FrozenClock) -> None:
    """ "No such item" is an answer; 429 is a failure, but no time-out."""
    made = Statistics(ProcessStore(), NAMES)
    for verdict, timed_out in ((GOOD, False), (NOTHING, False), (BUSY, False), (SLOW, True), (SLOW, True)):
        made.note(verdict, 0.02, timed_out=timed_out)
    made.write()
    figures = made.read()
    assert (figures.calls, figures.failures, figures.timeouts) == (5, 3, 2)
    assert figures.last_failure is not None
    assert figures.last_failure.reason == "timeout"


def test_nothing_is_known_before_the_first_call() -> None:
    """Making one writes nothing, and reading neither."""
    store = FaultyStore()
    figures = Statistics(store, NAMES).read()
    assert figures == Figures()
    assert figures.percentile(50) is None
    assert {name for name, _ in store.commands} == {"get_many"}


@given(
    latencies=st.lists(st.floats(0.0001, 9.9), min_size=1, max_size=60), percent=st.sampled_from([1, 50, 95, 99, 100])
)
def test_a_percentile_is_within_its_class(latencies: list[float], percent: int) -> None:
    """Not further from the truth than the bounds of the class that it is in."""
    ordered = sorted(latencies)
    truth = ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
    told = counted(ProcessStore(), *latencies).read().percentile(percent)
    assert told is not None
    bounds = (0.0, *BOUNDS)
    upper = next(place for place, bound in enumerate(bounds) if truth <= bound)
    assert bounds[upper - 1] <= told <= bounds[upper]


def test_what_takes_longer_than_every_class_is_told_as_the_last_bound() -> None:
    """At least ten seconds."""
    assert counted(ProcessStore(), 60.0).read().percentile(99) == 10.0


@given(
    latencies=st.lists(st.floats(0.0001, 2.5), min_size=1, max_size=60),
    limit=st.sampled_from([2.5, 2.75, 3.0]),
    percent=st.sampled_from([50, 95, 99, 100]),
)
def test_no_percentile_is_beyond_the_limit_of_a_call(latencies: list[float], limit: float, percent: int) -> None:
    """The class that the limit is in ends with it, for all calls together and for each half minute."""
    made = Statistics(ProcessStore(), NAMES, limit)
    for seconds in latencies:
        made.note(GOOD, seconds)
    made.write()
    figures = made.read()
    told = [each.percentile(percent) for each in (figures, *figures.pieces) if each.calls]
    assert max(seconds for seconds in told if seconds is not None) <= limit


def test_old_calls_are_forgotten(frozen_clock: FrozenClock) -> None:
    """After the window; the last failure is remembered for a day."""
    made = Statistics(ProcessStore(), NAMES)
    made.note(SLOW, 2.0, timed_out=True)
    made.write()
    frozen_clock.advance(WINDOW - 31)
    assert made.read().calls == 1
    frozen_clock.advance(WINDOW)
    figures = made.read()
    assert figures.calls == 0
    assert figures.last_failure is not None
    frozen_clock.advance(86_400)
    assert made.read().last_failure is None


@pytest.mark.parametrize("value", ["text", [1, 2], ["timeout"], None, {"reason": "x"}, ["a", "b"]], ids=repr)
def test_garbage_in_the_cache_is_nothing(value: object) -> None:
    """Counters that are no numbers, a failure that is none."""
    made = counted(ProcessStore(), 0.02)
    store = made._store
    for key in dict(made._keys()):
        store.set(key, "garbage", 60)
    store.set(f"{made._head}:last", value, 60)
    assert made.read() == Figures()


# --- cheap and bounded ----------------------------------------------------------------------------------------------


def test_a_process_writes_once_a_second(frozen_clock: FrozenClock) -> None:
    """Whatever the traffic; what it has not written yet is written with the next call after that second."""
    store = FaultyStore()
    made = Statistics(store, NAMES)
    for _ in range(1000):
        made.note(GOOD, 0.02)
        made.write_if_due()
    first = len(store.commands)
    assert first <= 3
    assert made.read().calls == 1
    frozen_clock.advance(1)
    made.note(GOOD, 0.02)
    made.write_if_due()
    assert made.read().calls == 1001
    assert len(store.commands) - first <= 3


def test_what_waits_to_be_written_is_small(frozen_clock: FrozenClock) -> None:
    """However many calls there are within the second, they are a few numbers, and none is lost."""
    store = ProcessStore()
    made = Statistics(store, Names("head", "default", "only"))
    made.write_if_due()
    for number in range(1000):
        made.note(GOOD, 0.001 * (number % 3))
        made.write_if_due()
        assert len(made._pending) + len(made._sums) < 70
    frozen_clock.advance(1)
    made.write_if_due()
    assert made.read().calls == 1000


def test_keys_are_few_and_live_for_minutes(frozen_clock: FrozenClock) -> None:
    """However many calls there are, and however long they take."""
    store = ProcessStore()
    made = Statistics(store, NAMES)
    for minute in range(120):
        for number in range(100):
            made.note(SLOW, number * 0.11, timed_out=True)
        made.write()
        frozen_clock.advance(60)
        store.get_many(tuple(store._entries))
        assert len(store) <= (len(BOUNDS) + 1) * (2 * WINDOW / 30 + 1) + 1, minute


def test_numbers_do_not_run_into_each_other(frozen_clock: FrozenClock) -> None:
    """A million of each in one class."""
    store = ProcessStore()
    made = Statistics(store, NAMES)
    key = next(key for key, place in made._keys() if place == 3)
    store.add(key, 1_000_000 * (1 + (1 << 21) + (1 << 42)), 60)
    figures = made.read()
    assert (figures.calls, figures.failures, figures.timeouts) == (1_000_000, 1_000_000, 1_000_000)


def test_threads_lose_no_call(frozen_clock: FrozenClock) -> None:
    """Eight of them note and write at the same time."""
    made = Statistics(ProcessStore(), NAMES)
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(200):
            made.note(GOOD, 0.02)
            made.write()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    made.write()
    assert made.read().calls == 1600


# --- in lookups -----------------------------------------------------------------------------------------------------


def test_lookups_are_counted_where_they_called(site: Site, moving: MovableClock) -> None:
    """Hits and refusals are no calls."""
    over_memory(site)
    set_up(site)
    site.say(FOUND, ALSO_FOUND)
    site.find()
    site.find()
    refuse("primary", "circuit_open")
    moving.move(61)
    site.find()
    moving.move(2)
    primary, secondary = (caller(source).statistics for source in ("primary", "secondary"))
    assert (primary.read().calls, secondary.read().calls) == (1, 1)


@pytest.mark.parametrize("timeout", [0.99, 2, 2.5])
@pytest.mark.parametrize(("late", "is_kept"), [(0.004, True), (OVERRUN - 0.01, True), (OVERRUN + 8, False)])
def test_a_call_that_was_cut_off_took_its_limit(
    site: Site, moving: MovableClock, timeout: float, late: float, is_kept: bool
) -> None:
    """A P95 that is TIMEOUT says "too slow"; one beyond it says that the adapter does not keep to its limit."""

    def cut_off(limit: float) -> NoReply:
        moving.move(limit + late)
        return NoReply("timeout")

    site.configure({"BACKEND": f"{PATH}Programmed", "TIMEOUT": timeout}, {"ENABLED": False}, BUDGET=60)
    with mock.patch.object(Programmed, "program", staticmethod(cut_off)):
        for _ in range(4):
            site.find()
    p95 = caller("primary").statistics.read().percentile(95)
    assert p95 is not None
    assert (p95 <= timeout) is is_kept
    assert p95 >= timeout * 0.95


def test_what_opened_a_breaker_is_seen_with_it(site: Site) -> None:
    """The failures of the last second are written as it opens."""
    site.configure()
    site.say(TEMPORARY, NOT_FOUND)
    for _ in range(6):
        site.find()
    figures = caller("primary").statistics.read()
    assert (figures.calls, figures.failures) == (5, 5)
    assert isinstance(figures.last_failure, Failure)
    assert figures.last_failure.reason == "http_503"


def test_a_miss_within_the_second_costs_no_command_more(site: Site) -> None:
    """What is written is written once a second; a hit writes never."""
    shelf = over_memory(site)
    site.say(NOT_FOUND, NOT_FOUND)
    site.find("P001")
    with spent(shelf) as cost:
        site.find("P002")
    assert "incr" not in cost.operations
    assert not any(":stats:" in key for _, keys in shelf.log[-len(cost.operations) :] for key in keys)


def test_the_figures_are_everybodys(site: Site, redis_url: str) -> None:
    """Two processes over one Valkey see the sum."""
    site.cache_in(DJANGO_REDIS, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex)
    site.configure()
    store = caller("primary").guard.stores.shared
    mine, theirs = Statistics(store, NAMES), Statistics(store, NAMES)
    for made in (mine, theirs):
        made.note(SLOW, 2.0, timed_out=True)
        made.write()
    assert (mine.read().timeouts, theirs.read().timeouts) == (2, 2)


def test_a_cache_in_trouble_costs_figures_only(site: Site) -> None:
    """Lookups go on."""
    location = uuid.uuid4().hex
    site.cache_in("tests.stores.MemoryCache", LOCATION=location)
    site.configure()
    site.say(FOUND)
    stores.shelf(location).fault = stores.raising(ConnectionError("down"))
    assert site.find().is_found
    assert caller("primary").statistics.read() == Figures()
