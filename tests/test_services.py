"""Do the verbs that explain, forget and stop do what they say, count right, and refuse what is wrong?

Lookups are in ``test_lookup_*.py``; races with fetches under way in ``test_gate_*.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog_fallback import services
from catalog_fallback.exceptions import InvalidationFailed, InvalidItemID
from catalog_fallback.models import MAX_ID_LENGTH, StopOrigin, StoppedItem, StopReason
from catalog_fallback.results import SourceExplanation
from tests import stores
from tests.sites import FOUND, LOCMEM, NOT_FOUND, MovableClock, Site, words

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


# --- explaining -----------------------------------------------------------------------------------------------------


def test_an_explanation_of_nothing(site: Site) -> None:
    """No entry, not stopped, both sources may be called; nobody was."""
    site.say(FOUND)
    explanation = services.explain_item("P001")
    assert (explanation.item_id, explanation.catalog) == ("P001", "default")
    assert (explanation.is_stopped, explanation.entry) == (False, None)
    assert explanation.sources == (
        SourceExplanation("primary", True, "ok", None),
        SourceExplanation("secondary", True, "ok", None),
    )
    assert site.calls == (0, 0)


def test_an_explanation_shows_the_entry(site: Site, moving: MovableClock) -> None:
    """As a hit would, while it is fresh; an expired one is none."""
    site.configure(STALE_IF_ERROR=300)
    site.say(FOUND)
    site.find()
    assert services.explain_item("P001").entry == site.find()
    moving.move(60)
    assert services.explain_item("P001").entry is None


def test_an_explanation_asks_the_database(site: Site) -> None:
    """What is stopped is stopped, whatever the cache holds."""
    services.stop_item("P001")
    assert services.explain_item("P001").is_stopped is True
    services.release_item("P001")
    assert services.explain_item("P001").is_stopped is False


def test_resilience4j_858_an_explanation_takes_nothing(site: Site) -> None:
    """No permit, no gate, no lease: only what the database says of isolated sources may be copied to the cache."""
    site.cache_in("tests.stores.MemoryCache", LOCATION="explaining")
    shelf = stores.shelf("explaining")
    shelf.values.clear()
    for _ in range(3):
        assert all(each.may_call for each in services.explain_item("P001").sources)
    assert [key for key in shelf.values if not key.endswith(":isolated")] == []
    site.say(FOUND)
    assert site.find().cache == "miss"
    assert site.calls == (1, 0)


def test_an_explanation_is_about_one_variant(site: Site) -> None:
    """Language and vary are part of what is asked."""
    site.say(FOUND)
    site.find(language="de")
    assert services.explain_item("P001").entry is None
    entry = services.explain_item("P001", language="de").entry
    assert entry is not None
    assert entry.is_found


# --- forgetting -----------------------------------------------------------------------------------------------------


def test_invalidate_forgets_one_item(site: Site) -> None:
    """And no other."""
    site.simulate(None)
    site.find("P001")
    site.configure()
    site.say(NOT_FOUND)
    site.configure(NEGATIVE_TTL=60)
    site.find("P002")
    assert services.invalidate_item("P001") == 1
    assert site.find("P002").cache == "hit"
    assert site.find("P001").cache == "miss"


COUNTS: dict[str, tuple[Callable[[], Any], int]] = {
    "one": (lambda: services.invalidate_item("P001"), 1),
    "none": (lambda: services.invalidate_items([]), 0),
    "two": (lambda: services.invalidate_items(["P001", "P002"]), 2),
    "duplicates": (lambda: services.invalidate_items(["P001", "P002", "P001"]), 2),
    "a generator": (lambda: services.invalidate_items(f"P{i}" for i in range(1200)), 1200),
    "stop one": (lambda: services.stop_item("P001"), 1),
    "stop none": (lambda: services.stop_items([]), 0),
    "stop duplicates": (lambda: services.stop_items(["P001", "P002", "P001"]), 2),
    "stop many": (lambda: services.stop_items(f"P{i}" for i in range(1200)), 1200),
    "release one that was never stopped": (lambda: services.release_item("P001"), 1),
    "release many": (lambda: services.release_items(("P001", "P002")), 2),
}


@pytest.mark.parametrize("case", COUNTS)
def test_the_number_of_ids_is_returned(site: Site, case: str) -> None:
    """Different IDs, in their normal form."""
    verb, expected = COUNTS[case]
    assert verb() == expected


def test_h40_more_ids_than_a_culling_cache_holds(site: Site) -> None:
    """LocMem keeps 300 keys by default: gates that it throws away again invalidate all the same."""
    site.cache_in(LOCMEM)
    assert services.invalidate_items(f"P{i}" for i in range(700)) == 700
    assert services.stop_items(f"P{i}" for i in range(700)) == 700


def test_normal_forms_are_folded(site: Site) -> None:
    """Two spellings of one item are one ID."""
    site.configure(NORMALIZE_ID="tests.test_lookup_rules.upper")
    assert services.invalidate_items(["p001", "P001"]) == 1
    assert services.stop_items(["p001", "P001", "p002"]) == 2
    assert set(StoppedItem.objects.values_list("item_id", flat=True)) == {"P001", "P002"}


PLURALS = {"invalidate": services.invalidate_items, "stop": services.stop_items, "release": services.release_items}


@pytest.mark.parametrize("verb", PLURALS)
def test_a_string_is_no_list_of_ids(site: Site, verb: str) -> None:
    """Its letters would be IDs."""
    with pytest.raises(TypeError, match="list of IDs"):
        PLURALS[verb]("P001")
    assert not StoppedItem.objects.exists()


@pytest.mark.parametrize("verb", PLURALS)
def test_a_bad_id_is_refused_before_anything_happens(site: Site, verb: str) -> None:
    """All or nothing."""
    site.say(FOUND)
    site.find()
    with pytest.raises(InvalidItemID):
        PLURALS[verb](["P001", "no ID"])
    assert site.find().cache == "hit"
    assert not StoppedItem.objects.exists()


def test_fabric_239_a_new_item_is_not_hidden_after_an_invalidation(site: Site) -> None:
    """A negative entry is forgotten like any other."""
    site.configure(NEGATIVE_TTL=600)
    site.say(NOT_FOUND)
    assert words(site.find()) == words(site.find()) == ("not_found", "all_not_found")
    site.say(FOUND)
    services.invalidate_item("P001")
    assert site.find().is_found


# --- writes that always forget ---------------------------------------------------------------------------------------


def test_invalidating_forgets_on_leaving(site: Site) -> None:
    """Not before: the write has still to happen."""
    site.say(FOUND)
    site.find()
    with services.invalidating("P001", reason="edited"):
        assert site.find().cache == "hit"
    assert site.find().cache == "miss"


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(1), GeneratorExit()], ids=repr)
def test_invalidating_forgets_when_the_write_raised(site: Site, error: BaseException) -> None:
    """It may have been applied; the exception passes on."""
    site.say(FOUND)
    site.find()
    with pytest.raises(type(error)) as caught, services.invalidating("P001"):
        raise error
    assert caught.value is error
    assert site.find().cache == "miss"


def test_invalidating_says_when_it_failed(site: Site, moving: MovableClock) -> None:
    """Chained to what the body raised, so that neither is lost."""
    site.cache_in("tests.stores.RaisingCache")
    with pytest.raises(InvalidationFailed) as caught, services.invalidating("P001"):
        raise KeyError("the write")
    assert isinstance(caught.value.__context__, KeyError)
    with pytest.raises(InvalidationFailed), services.invalidating("P001"):
        pass


def test_invalidating_checks_the_id_before_the_write(site: Site) -> None:
    """Afterwards it would be too late."""
    entered = False
    with pytest.raises(InvalidItemID), services.invalidating("no ID"):
        entered = True
    assert not entered


def test_invalidating_is_a_decorator_too(site: Site) -> None:
    """As every context manager made that way; each call forgets."""
    site.say(FOUND)

    @services.invalidating("P001")
    def write() -> str:
        return "written"

    for _ in range(2):
        site.find()
        assert write() == "written"
        assert site.find().cache == "miss"


# --- the stop list --------------------------------------------------------------------------------------------------


def test_a_stop_has_reason_note_and_origin(site: Site) -> None:
    """What was given is in the row, confirmed by the cache."""
    services.stop_item("P001", reason="legal", note="court order", event_at=NOW)
    row = StoppedItem.objects.get()
    assert (row.catalog, row.item_id, row.is_active) == ("default", "P001", True)
    assert (row.reason, row.note, row.origin) == (StopReason.LEGAL, "court order", StopOrigin.CODE)
    assert row.event_at == NOW
    assert row.published_at is not None


def test_the_default_reason_is_withdrawn(site: Site) -> None:
    """And the time of the event is now."""
    before = datetime.now(UTC)
    services.stop_item("P001")
    row = StoppedItem.objects.get()
    assert row.reason == "withdrawn"
    assert before <= row.event_at <= datetime.now(UTC)


#: Events in the order of their arrival: whether a stop, and seconds → whether the item is stopped afterwards.
ORDERS: dict[str, tuple[list[tuple[bool, int]], bool]] = {
    "stop": ([(True, 0)], True),
    "stop, release": ([(True, 0), (False, 1)], False),
    "release arrives first": ([(False, 1), (True, 0)], False),
    "stop, release, stop": ([(True, 0), (False, 1), (True, 2)], True),
    "the last stop arrives first": ([(True, 2), (True, 0), (False, 1)], True),
    "at the same time, stop last": ([(False, 0), (True, 0)], True),
    "at the same time, release last": ([(True, 0), (False, 0)], False),
    "the same event twice": ([(True, 0), (True, 0)], True),
}


@pytest.mark.parametrize("case", ORDERS)
def test_events_are_ordered_by_their_time(site: Site, case: str) -> None:
    """An older one changes nothing, an equal one is applied."""
    events, expected = ORDERS[case]
    latest = -1
    for is_stop, seconds in events:
        verb = services.stop_item if is_stop else services.release_item
        assert verb("P001", event_at=NOW + timedelta(seconds=seconds)) == (seconds >= latest)
        latest = max(latest, seconds)
    site.say(FOUND)
    assert site.find().is_stopped is expected
    assert StoppedItem.objects.get().is_active is expected


def test_an_older_event_among_many_is_left_out(site: Site) -> None:
    """The number tells how many were changed."""
    services.release_item("P002", event_at=NOW)
    assert services.stop_items(["P001", "P002", "P003"], event_at=NOW - timedelta(days=1)) == 2
    assert set(StoppedItem.objects.active().values_list("item_id", flat=True)) == {"P001", "P003"}


@pytest.mark.parametrize("is_stop", [True, False], ids=["stop", "release"])
def test_what_happens_now_comes_after_all_that_is_known(site: Site, is_stop: bool) -> None:
    """Another host, whose clock is ahead, has said the opposite a second ago: that must not win for an hour."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    verb, other = (services.stop_item, services.release_item)[:: 1 if is_stop else -1]
    other("P001", event_at=ahead)
    assert verb("P001") == 1
    site.say(FOUND)
    assert site.find().is_stopped is is_stop
    row = StoppedItem.objects.get()
    assert row.is_active is is_stop
    assert row.event_at == ahead  # the order of what arrives late stays right
    assert row.published_at is not None


def test_what_happens_now_is_one_moment_for_many(site: Site) -> None:
    """Those that nobody knew, those of before and those that were dated ahead: all are changed, and confirmed."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    services.release_item("P001", event_at=ahead)
    services.release_item("P002", event_at=NOW)
    assert services.stop_items(["P001", "P002", "P003"], reason="legal", note="letter") == 3
    rows = list(StoppedItem.objects.order_by("item_id"))
    assert [(row.is_active, row.reason, row.note) for row in rows] == [(True, "legal", "letter")] * 3
    assert rows[0].event_at == ahead
    assert NOW < rows[1].event_at == rows[2].event_at < ahead
    assert all(row.published_at is not None for row in rows)


def test_a_release_keeps_the_row(site: Site) -> None:
    """It orders what comes later; the reason of the stop stays readable."""
    services.stop_item("P001", reason="quality")
    services.release_item("P001", note="checked")
    row = StoppedItem.objects.get()
    assert (row.is_active, row.reason, row.note) == (False, "quality", "checked")
    site.say(FOUND)
    assert site.find().is_found


WRONG: dict[str, dict[str, Any]] = {
    "unknown reason": {"reason": "because"},
    "empty reason": {"reason": ""},
    "naive moment": {"event_at": datetime(2026, 1, 1)},  # noqa: DTZ001
    "longer than the column": {"item_id": "A" * (MAX_ID_LENGTH + 1)},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_stop_writes_nothing(site: Site, case: str) -> None:
    """The message says what it has to be."""
    site.configure(ID_PATTERN="[A-Z0-9]{1,500}")
    with pytest.raises(ValueError, match=r"has to be|takes 255|255 is the limit"):
        services.stop_item(**{"item_id": "P001", **WRONG[case]})
    assert not StoppedItem.objects.exists()


def test_the_verbs_take_keywords_only() -> None:
    """``find_item("P001", "de")`` would be a guess."""
    for name in services.__all__:
        verb = getattr(services, name)
        if inspect.isfunction(verb) and name.endswith(("_item", "_items", "invalidating")):
            positional = [
                each for each in inspect.signature(verb).parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD
            ]
            assert len(positional) == 1, name
