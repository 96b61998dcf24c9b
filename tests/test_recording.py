"""Does a record hold the lookups and calls of its own request, and only those, and does it cost nothing without one?"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import pytest
from django.db import connection

from catalog_fallback import services, signals
from catalog_fallback.recording import Finished, Recording, seconds_of
from tests.sites import FOUND, SIMULATED, TEMPORARY, MovableClock, Site


@pytest.fixture(autouse=True)
def nobody_listens() -> Iterator[None]:
    """Before and after each test."""
    assert not signals.lookup_finished.receivers
    assert not signals.source_called.receivers
    yield
    assert not signals.lookup_finished.receivers
    assert not signals.source_called.receivers


def recorded(recording: Recording) -> tuple[list[str], list[str]]:
    """The IDs of the lookups, and the sources of the calls."""
    return [each.lookup.item_id for each in recording.lookups], [each.attempt.source for each in recording.calls]


def test_lookups_and_calls(site: Site) -> None:
    """A miss with two sources, then a hit; what comes before and after is not there."""
    site.say(TEMPORARY, FOUND)
    site.find("P009")
    with Recording() as recording:
        lookups = [site.find(), site.find()]
    site.find()
    assert [each.lookup for each in recording.lookups] == lookups
    assert tuple(each.attempt for each in recording.calls) == lookups[0].trace
    assert {each.catalog for each in recording.calls} == {"default"}


def test_times_are_those_of_the_lookups(site: Site, moving: MovableClock) -> None:
    """From the monotonic clock."""
    site.simulate(None)
    source = {"BACKEND": SIMULATED, "OPTIONS": {"delay": 1.5, "items": {"P001": "Tea"}}}
    site._settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"only": source}}}
    with Recording() as recording:
        site.find()
    (lookup,), (call,) = recording.lookups, recording.calls
    assert 1.5 <= call.ended_at - call.started_at < 2
    assert 1.5 <= lookup.ended_at - lookup.started_at < 2


def test_opening_and_closing_twice_is_the_same_as_once(site: Site) -> None:
    """Instruments may do so."""
    recording = Recording()
    recording.open()
    recording.open()
    site.find()
    recording.close()
    assert not signals.lookup_finished.receivers
    recording.close()
    with Recording() as other:
        site.find()
    assert (len(recording.lookups), len(other.lookups)) == (1, 1)


def test_two_records_of_one_request(site: Site) -> None:
    """A panel and a header, one inside the other."""
    with Recording() as outer:
        site.find("P001")
        with Recording() as inner:
            site.find("P002")
        site.find("P003")
    assert recorded(outer)[0] == ["P001", "P002", "P003"]
    assert recorded(inner)[0] == ["P002"]


def test_another_request_at_the_same_time_is_another_record(site: Site) -> None:
    """Requests in two threads, whose lookups take turns; a third one records nothing."""
    site.simulate(None)
    turns = threading.Barrier(3, timeout=30)
    records: dict[str, Recording] = {}

    def handle(item_id: str, is_recorded: bool) -> None:
        recording = records[item_id] = Recording()
        if is_recorded:
            recording.open()
        for _ in range(2):
            turns.wait()
            site.find(item_id)
        turns.wait()
        recording.close()
        connection.close()

    threads = [threading.Thread(target=handle, args=each) for each in (("P001", True), ("P002", True), ("P003", False))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {item_id: recorded(each)[0] for item_id, each in records.items()} == {
        "P001": ["P001"] * 2,
        "P002": ["P002"] * 2,
        "P003": [],
    }


def test_a_batch_calls_in_threads_of_its_own(site: Site) -> None:
    """What they do belongs to the request."""
    site.say(FOUND)
    with Recording() as recording:
        services.find_items(["P001", "P002", "P003"])
    ids, sources = recorded(recording)
    assert ids == ["P001", "P002", "P003"]
    assert len(sources) >= 3


def test_tasks_of_one_loop_have_a_record_each(site: Site) -> None:
    """Under asyncio a request is a task."""
    site.simulate(None)

    async def handle(item_id: str) -> Recording:
        with Recording() as recording:
            await services.afind_item(item_id)
            await services.afind_items([item_id])
        return recording

    async def both() -> list[Recording]:
        return await asyncio.gather(handle("P001"), handle("P002"))

    first, second = asyncio.run(both())
    assert recorded(first) == (["P001", "P001"], ["primary"])
    assert recorded(second)[0] == ["P002", "P002"]
    assert set(recorded(second)[1]) == {"primary"}


def test_what_goes_on_after_the_end_is_not_recorded(site: Site) -> None:
    """A task that a request began and did not wait for, while another request records."""
    with Recording() as recording:
        context = copy_context()
    with Recording():
        context.run(site.find)
    assert recorded(recording) == ([], [])


def test_a_record_may_be_closed_in_another_context(site: Site) -> None:
    """A server may end a request elsewhere."""
    recording = Recording()
    context = copy_context()
    context.run(recording.open)
    recording.close()
    context.run(site.find)
    assert recorded(recording) == ([], [])


def spans(*moments: tuple[float, float]) -> list[Finished]:
    """Lookups with these moments."""
    nothing: Any = None
    return [Finished(nothing, *each) for each in moments]


UNIONS: dict[str, tuple[list[tuple[float, float]], float]] = {
    "nothing": ([], 0),
    "one": ([(1, 3)], 2),
    "one after the other": ([(1, 2), (4, 6)], 3),
    "overlapping": ([(1, 3), (2, 5)], 4),
    "one within another": ([(1, 9), (2, 3), (4, 5)], 8),
    "a batch": ([(1, 2), (1, 2), (1, 2)], 1),
    "in any order": ([(4, 6), (1, 5)], 5),
}


@pytest.mark.parametrize("case", UNIONS)
def test_what_overlaps_counts_once(case: str) -> None:
    """A hundred items of one batch do not take a hundred times as long."""
    moments, seconds = UNIONS[case]
    assert seconds_of(spans(*moments)) == seconds


def test_a_broken_view_leaves_nobody_listening(site: Site) -> None:
    """The record ends with the request, however that ends."""
    fail: Callable[[], None] = lambda: 1 / 0  # type: ignore[assignment,return-value]  # noqa: E731
    with pytest.raises(ZeroDivisionError), Recording():
        fail()
