"""Does the app say what happened, with these arguments, and can a broken listener break anything?"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.dispatch import Signal

from catalog_fallback import services, signals
from catalog_fallback.exceptions import InvalidationFailed, InvalidItemID, UnknownCatalog
from catalog_fallback.models import StopOrigin, StoppedItem
from catalog_fallback.results import Lookup
from tests.sites import ALSO_FOUND, FOUND, NOT_FOUND, TEMPORARY, MovableClock, Site

OUTBOUND = ["lookup_finished", "source_called", "items_invalidated"]


@contextmanager
def listening(signal: Signal, answer: Callable[[], Any] = lambda: None) -> Iterator[list[dict[str, Any]]]:
    """What a listener hears; ``answer`` is called each time."""
    heard: list[dict[str, Any]] = []

    def listen(sender: object, signal: Signal, **arguments: Any) -> Any:
        heard.append(arguments)
        return answer()

    signal.connect(listen)
    try:
        yield heard
    finally:
        signal.disconnect(listen)


def fail() -> None:
    """What a broken listener does."""
    raise RuntimeError("broken listener")


# --- outbound -------------------------------------------------------------------------------------------------------


def test_lookup_finished_has_the_lookup_and_its_time(site: Site, moving: MovableClock) -> None:
    """Once for each lookup: a miss, a hit, a stop, one without an answer."""
    site.say(FOUND)
    with listening(signals.lookup_finished) as heard:
        lookups = [site.find(), site.find()]
        services.stop_item("P002")
        lookups.append(site.find("P002"))
        site.say(TEMPORARY)
        lookups.append(site.find("P003"))
        with services.time_budget(1):
            moving.move(2)
            lookups.append(site.find("P003"))
    assert [set(each) for each in heard] == [{"lookup", "elapsed"}] * 5
    assert [each["lookup"] for each in heard] == lookups
    assert all(0 <= each["elapsed"] < 1 for each in heard)


def test_lookup_finished_measures_with_the_monotonic_clock(site: Site, moving: MovableClock) -> None:
    """A lookup that took two seconds says so."""
    site.simulate(None)
    with listening(signals.source_called, lambda: moving.move(2)), listening(signals.lookup_finished) as heard:
        site.find()
    assert 2 <= heard[0]["elapsed"] < 2.5


def test_lookup_finished_is_the_same_under_asyncio(site: Site) -> None:
    """A miss, a hit, and one whose shared budget was used up before it began."""
    site.say(FOUND)

    async def look_up() -> list[Lookup]:
        lookups = [await services.afind_item("P001"), await services.afind_item("P001")]
        with services.time_budget(0.001):
            await asyncio.sleep(0.01)
            return [*lookups, await services.afind_item("P001")]

    with listening(signals.lookup_finished) as heard:
        lookups = asyncio.run(look_up())
    assert [each["lookup"] for each in heard] == lookups
    assert [(str(lookup.cache), lookup.reason) for lookup in lookups] == [
        ("miss", "ok"),
        ("hit", "ok"),
        ("miss", "deadline"),
    ]


def test_bad_arguments_finish_no_lookup(site: Site) -> None:
    """There was none."""
    with listening(signals.lookup_finished) as heard, pytest.raises(InvalidItemID):
        site.find("no ID")
    assert heard == []


def test_source_called_has_catalog_and_attempt(site: Site) -> None:
    """Once for each source that was considered, in the order of the trace; never for a hit."""
    site.say(TEMPORARY, ALSO_FOUND)
    with listening(signals.source_called) as heard:
        lookup = site.find()
        site.find()
    assert heard == [{"catalog": "default", "attempt": attempt} for attempt in lookup.trace]
    assert len(heard) == 2


def test_items_invalidated_has_what_was_confirmed(site: Site) -> None:
    """Invalidations, stops and releases, with their reasons."""
    with listening(signals.items_invalidated) as heard:
        services.invalidate_item("P001", reason="update")
        services.invalidate_items(["P002", "P001", "P002"])
        services.stop_item("P003", reason="legal")
        services.release_item("P003")
        services.invalidate_items([])
    assert [(each["catalog"], each["item_ids"], each["reason"]) for each in heard] == [
        ("default", ("P001",), "update"),
        ("default", ("P002", "P001"), ""),
        ("default", ("P003",), "legal"),
        ("default", ("P003",), "released"),
    ]


def test_nothing_confirmed_is_nothing_said(site: Site, moving: MovableClock) -> None:
    """A failed invalidation is an exception, not an event."""
    site.cache_in("tests.stores.RaisingCache")
    with listening(signals.items_invalidated) as heard, pytest.raises(InvalidationFailed):
        services.invalidate_item("P001")
    assert heard == []


@pytest.mark.parametrize("name", OUTBOUND)
def test_a_broken_listener_breaks_nothing(site: Site, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Lookups and invalidations go on, later listeners hear it too, and Django logs the error."""
    caplog.set_level(logging.ERROR, "django.dispatch")
    site.say(FOUND)
    signal = getattr(signals, name)
    with listening(signal, fail) as broken, listening(signal) as sound:
        assert site.find().is_found
        assert site.find().cache == "hit"
        assert services.invalidate_item("P001") == 1
    assert broken
    assert broken == sound
    assert "broken listener" in caplog.text


@pytest.mark.parametrize("name", OUTBOUND)
def test_polly_2953_a_listener_may_call_back(site: Site, name: str) -> None:
    """It holds no lock: looking up, explaining and invalidating from within a listener is no deadlock."""
    site.say(FOUND)
    answers: list[bool] = []

    def call_back() -> None:
        if not answers:
            answers.append(False)
            answers[0] = site.find(budget=5).is_found and services.explain_item("P001").is_stopped is False

    with listening(getattr(signals, name), call_back):
        assert site.find().is_found
        services.invalidate_item("P001")
    assert answers == [True]


def test_without_a_listener_nothing_is_sent(site: Site) -> None:
    """It costs one attribute read."""
    site.say(FOUND)
    with mock.patch.object(Signal, "send_robust", side_effect=AssertionError("sent")) as send:
        site.find()
        site.find()
        services.invalidate_item("P001")
    assert send.call_count == 0


# --- inbound --------------------------------------------------------------------------------------------------------


def notice(**arguments: Any) -> Any:
    """What a site sends; the answer of our receiver."""
    answers = signals.deletion_notice.send(object(), **arguments)
    return dict(answers)[receiver()]


def receiver() -> Any:
    """Our receiver."""
    from catalog_fallback.receivers import take_notice  # noqa: PLC0415  # the module connects itself

    return take_notice


@pytest.fixture
def kept(site: Site) -> Site:
    """A site with two items in its cache."""
    site.simulate(None)
    site.simulate(None, ON_DELETED="invalidate")
    site.find("P001")
    return site


@pytest.mark.parametrize(
    ("on_deleted", "stop", "state"),
    [
        ("invalidate", None, "found"),
        ("stop", None, "stopped"),
        ("invalidate", True, "stopped"),
        ("stop", False, "found"),
        ("invalidate", False, "found"),
        ("stop", True, "stopped"),
    ],
)
def test_a_notice_invalidates_or_stops(kept: Site, on_deleted: str, stop: bool | None, state: str) -> None:
    """``stop`` decides; None does what ON_DELETED says."""
    kept.simulate(None, ON_DELETED=on_deleted)
    assert kept.find().cache == "hit"
    assert notice(item_id="P001", catalog="default", stop=stop, event_at=None) == 1
    lookup = kept.find()
    assert (str(lookup.state), lookup.cache) == (state, "miss" if state == "found" else lookup.cache)
    assert StoppedItem.objects.filter(item_id="P001", is_active=True).exists() is (state == "stopped")


def test_a_notice_may_leave_out_what_has_a_default(kept: Site) -> None:
    """One ID is enough."""
    assert notice(item_id="P001") == 1
    assert kept.find().cache == "miss"


@pytest.mark.parametrize("kind", [list, tuple, set, iter])
def test_a_notice_may_name_many(kept: Site, kind: Callable[[Any], Any]) -> None:
    """Any iterable; duplicates count once."""
    assert notice(item_ids=kind(["P001", "P002", "P001"]), stop=True) == 2
    assert StoppedItem.objects.active().count() == 2


def test_an_empty_notice_does_nothing(kept: Site) -> None:
    """An empty list of IDs is a list of IDs."""
    assert notice(item_ids=[], stop=True) == 0
    assert kept.find().cache == "hit"


def test_the_origin_of_a_stop_is_the_notice(kept: Site) -> None:
    """The stop list says who said so."""
    notice(item_id="P001", stop=True)
    assert StoppedItem.objects.get().origin == StopOrigin.NOTICE


def test_an_older_notice_changes_nothing(kept: Site) -> None:
    """``event_at`` orders events, not their arrival."""
    now = datetime.now(UTC)
    services.release_item("P001", event_at=now)
    notice(item_id="P001", stop=True, event_at=now - timedelta(seconds=1))
    assert kept.find().is_found
    notice(item_id="P001", stop=True, event_at=now)
    assert kept.find().is_stopped


BAD: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "no ID": ({}, TypeError),
    "both": ({"item_id": "P001", "item_ids": ["P001"]}, TypeError),
    "a string of IDs": ({"item_ids": "P001"}, TypeError),
    "a bad ID": ({"item_id": "p 1"}, InvalidItemID),
    "a bad ID among others": ({"item_ids": ["P001", "p 1"], "stop": True}, InvalidItemID),
    "an unknown catalog": ({"item_id": "P001", "catalog": "other"}, UnknownCatalog),
    "a naive moment": ({"item_id": "P001", "stop": True, "event_at": datetime(2026, 1, 1)}, ValueError),  # noqa: DTZ001
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_notice_is_an_error_of_its_sender(kept: Site, case: str) -> None:
    """He hears of it, and nothing was changed, not even for the IDs that are right."""
    arguments, error = BAD[case]
    with pytest.raises(error):
        notice(**arguments)
    assert kept.find().cache == "hit"
    assert not StoppedItem.objects.exists()


def test_a_notice_that_cannot_be_applied_is_an_error(site: Site, moving: MovableClock) -> None:
    """The sender knows that it has to send it again."""
    site.cache_in("tests.stores.RaisingCache")
    for stop in (False, True):
        with pytest.raises(InvalidationFailed):
            notice(item_id="P001", stop=stop)


def test_our_receiver_is_connected_once(kept: Site) -> None:
    """However often the app is set up."""
    from catalog_fallback import receivers  # noqa: PLC0415

    signals.deletion_notice.connect(receivers.take_notice, dispatch_uid="catalog_fallback.notice")
    assert len(signals.deletion_notice.send(object(), item_id="P001")) == 1


def test_a_lookup_is_what_it_says(site: Site) -> None:
    """The sender of ``lookup_finished`` is the class of its lookup."""
    senders: list[Any] = []

    def listen(sender: Any, **arguments: Any) -> None:
        senders.append(sender)

    signals.lookup_finished.connect(listen, sender=Lookup)
    site.say(NOT_FOUND)
    site.find()
    signals.lookup_finished.disconnect(listen, sender=Lookup)
    assert senders == [Lookup]
