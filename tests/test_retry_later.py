"""RETRY_LATER: is what nobody could answer noted once, forgotten when it is answered, and never at a lookup's cost?"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import OperationalError

from catalog_fallback import clock, services, unanswered
from catalog_fallback.models import UnansweredItem
from catalog_fallback.results import Lookup
from tests.shops import Shop, later
from tests.sites import SIMULATED, MovableClock

FAILING = {"BUSY": 503, "SLOW": "timeout", "SHUT": 403, "LOST": 404}

VERBS: dict[str, Callable[..., Lookup]] = {
    "find_item": services.find_item,
    "find_items": lambda item_id, **kwargs: services.find_items([item_id], **kwargs)[item_id],
    "afind_item": lambda item_id, **kwargs: asyncio.run(services.afind_item(item_id, **kwargs)),
}
every_verb = pytest.mark.parametrize("find", VERBS.values(), ids=VERBS)


def configure(settings: Any, failing: Any = None, **keys: Any) -> Shop:
    """A site that notes what nobody could answer; four IDs fail in different ways."""
    options = {"items": {"P001": "Tea", "BUSY": "Coffee"}, "failing": FAILING if failing is None else failing}
    source = {"BACKEND": SIMULATED, "OPTIONS": options, "BREAKER": None}
    return Shop(settings, **{"RETRY_LATER": True, "SOURCES": {"only": source}, **keys})


@pytest.fixture
def shop(settings: Any, transactional_db: None) -> Shop:
    """That site."""
    return configure(settings)


def noted() -> dict[str, str]:
    """What is noted: ID → reason."""
    return dict(UnansweredItem.objects.values_list("item_id", "reason"))


# --- what is noted --------------------------------------------------------------------------------------------------


@every_verb
def test_what_nobody_could_answer_is_noted(shop: Shop, find: Callable[..., Lookup]) -> None:
    """Whatever the reason; what was answered is not."""
    for item_id in (*FAILING, "P001", "NONE"):
        find(item_id)
    assert noted() == {
        "BUSY": "incomplete_search",
        "SLOW": "incomplete_search",
        "SHUT": "http_403",
        "LOST": "http_404",
    }


def test_what_a_row_says(shop: Shop, moving: MovableClock) -> None:
    """Enough to ask again, in half a minute to a minute."""
    services.find_item("BUSY", language="de")
    row = UnansweredItem.objects.get()
    assert (row.catalog, row.item_id, row.language, row.vary, row.attempts) == ("default", "BUSY", "de", "", 0)
    assert row.created_at.timestamp() == pytest.approx(clock.wall(), abs=5)
    assert 25 <= row.next_try_at.timestamp() - clock.wall() <= 61
    assert (row.given_up_at, str(row)) == (None, "default:BUSY")


def test_another_language_or_variant_is_another_question(settings: Any, transactional_db: None) -> None:
    """The variant is canonical: the order of its names is not part of it."""
    url = "https://example.com/{id}?a={a}&b={b}"
    source = {"BACKEND": SIMULATED, "URL": url, "OPTIONS": {"failure": 503}, "BREAKER": None}
    configure(settings, SOURCES={"only": source})
    for vary in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {"a": "1", "b": "é"}):
        services.find_item("BUSY", vary=vary)
    services.find_item("BUSY", vary={"a": "1", "b": "2"}, language="de")
    rows = sorted(UnansweredItem.objects.values_list("language", "vary"))
    assert [(language, json.loads(vary)) for language, vary in rows] == [
        ("", {"a": "1", "b": "2"}),
        ("", {"a": "1", "b": "é"}),
        ("de", {"a": "1", "b": "2"}),
    ]


def test_an_outage_costs_one_write_an_item(shop: Shop, django_assert_num_queries: Any) -> None:
    """The second lookup reads the row and leaves it as it is."""
    services.find_item("BUSY")
    row = UnansweredItem.objects.values().get()
    with django_assert_num_queries(4) as asked:  # the stop list; a savepoint around the row
        services.find_item("BUSY")
    assert not [query for query in asked.captured_queries if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert UnansweredItem.objects.values().get() == row


def test_without_it_nothing_is_noted_or_asked(
    settings: Any, transactional_db: None, django_assert_num_queries: Any
) -> None:
    """Off is off."""
    configure(settings, RETRY_LATER=False)
    services.find_item("P001")
    with django_assert_num_queries(1):
        services.find_item("BUSY")
    assert noted() == {}


@every_verb
def test_a_time_that_was_over_before_anybody_was_asked(
    shop: Shop, find: Callable[..., Lookup], moving: MovableClock
) -> None:
    """That is the caller's own business: nobody failed to answer."""
    with services.time_budget(1):
        moving.move(2)
        assert find("P001").reason == "deadline"
    assert noted() == {}


def test_a_source_that_used_all_the_time_up(settings: Any, transactional_db: None, moving: MovableClock) -> None:
    """Somebody was asked and did not answer in time."""
    source = {"BACKEND": SIMULATED, "OPTIONS": {"items": {"P001": "Tea"}, "delay": 1.5}, "TIMEOUT": 2}
    configure(settings, SOURCES={"only": source})
    assert services.find_item("P001", budget=1).reason in {"deadline", "incomplete_search"}
    assert set(noted()) == {"P001"}


def test_what_a_guard_refused_is_noted(settings: Any, transactional_db: None) -> None:
    """Nobody could be called."""
    source = {"BACKEND": SIMULATED, "OPTIONS": {"items": {"P001": "Tea", "P002": "Tea"}}}
    configure(settings, SOURCES={"only": {**source, "RATE_LIMIT": {"CALLS": 1, "PER": 3600}}})
    assert services.find_item("P001").is_found
    assert services.find_item("P002").is_unavailable
    assert set(noted()) == {"P002"}


def test_own_data_are_no_answer(settings: Any, transactional_db: None) -> None:
    """The caller has something to show; the question is still open."""
    configure(settings, FALLBACK={"name": "Tea?"})
    assert services.find_item("BUSY").degraded
    assert set(noted()) == {"BUSY"}


def test_a_stale_item_leaves_all_as_it_is(settings: Any, transactional_db: None, moving: MovableClock) -> None:
    """It is shown, so nothing is noted; it is old, so a note stays."""
    shop = configure(settings, failing={}, STALE_IF_ERROR=600)
    services.find_item("P001")
    moving.move(61)
    catalog = settings.CATALOG_FALLBACK["default"]
    options = {"failure": 503}
    source = {"BACKEND": SIMULATED, "OPTIONS": options, "BREAKER": None}
    settings.CATALOG_FALLBACK = {"default": {**catalog, "SOURCES": {"only": source}}}
    assert shop.find().is_stale
    assert noted() == {}
    UnansweredItem.objects.create(catalog="default", item_id="P001", reason="http_403")
    assert shop.find().is_stale
    assert noted() == {"P001": "http_403"}


def test_a_batch_is_noted_with_one_write(shop: Shop, django_assert_max_num_queries: Any) -> None:
    """And what is answered in it is forgotten."""
    UnansweredItem.objects.create(catalog="default", item_id="P001", reason="http_403")
    with django_assert_max_num_queries(8) as asked:
        services.find_items([*FAILING, "P001", "NONE"])
    assert set(noted()) == set(FAILING)
    writes = [query["sql"].split()[0] for query in asked.captured_queries]
    assert (writes.count("INSERT"), writes.count("DELETE")) == (1, 1)


# --- forgetting -----------------------------------------------------------------------------------------------------


@every_verb
@pytest.mark.parametrize("item_id", ["P001", "NONE", "P002"], ids=["found", "not found", "stopped"])
def test_an_answer_removes_the_note(shop: Shop, find: Callable[..., Lookup], item_id: str) -> None:
    """Of that very question only; one that was given up, too."""
    services.stop_item("P002")
    for catalog, language in (("default", ""), ("default", "de"), ("other", "")):
        UnansweredItem.objects.create(
            catalog=catalog, item_id=item_id, language=language, reason="http_503", given_up_at=unanswered.now()
        )
    find(item_id)
    left = set(UnansweredItem.objects.values_list("catalog", "language"))
    assert left == {("default", "de"), ("other", "")}


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_the_table_is_bounded(settings: Any, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each catalog by itself; a batch that would pass the bound is cut."""
    configure(settings, failing={f"B{n}": 503 for n in range(9)})
    monkeypatch.setattr(unanswered, "MAX_ROWS", 3)
    services.find_item("B0")
    services.find_items(["B1", "B2", "B3", "B4"])
    services.find_item("B5")
    assert UnansweredItem.objects.count() == 3
    services.find_item("B5", catalog="other")
    assert UnansweredItem.objects.count() == 4
    services.find_item("B0")
    assert UnansweredItem.objects.count() == 4


@pytest.mark.parametrize(("length", "is_noted"), [(255, True), (256, False)])
def test_what_does_not_fit_is_not_noted(settings: Any, transactional_db: None, length: int, is_noted: bool) -> None:
    """A row could not hold it, and half a question is none."""
    source = {"BACKEND": SIMULATED, "OPTIONS": {"failure": 503}, "BREAKER": None}
    configure(settings, SOURCES={"only": source}, ID_PATTERN="A+")
    assert services.find_item("A" * length).is_unavailable
    assert bool(noted()) is is_noted


# --- trouble --------------------------------------------------------------------------------------------------------


def test_the_database_fails(shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The lookup is what it was; one line is logged, without what the database said."""

    def fail(*_: Any) -> None:
        raise OperationalError("secret DSN")

    monkeypatch.setattr(unanswered, "_note", fail)
    with caplog.at_level(logging.WARNING, "catalog_fallback"):
        lookup = services.find_item("BUSY")
    assert lookup.reason == "incomplete_search"
    assert caplog.messages[-1] == "Catalog 'default': unanswered lookups could not be noted (OperationalError)."


def test_a_transaction_goes_on(shop: Shop) -> None:
    """What fails while it is noted does not break the site's own transaction."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE catalog_fallback_unanswereditem RENAME TO elsewhere")
        assert services.find_item("BUSY").is_unavailable
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO catalog_fallback_unanswereditem")
        assert services.find_item("BUSY").is_unavailable
    assert set(noted()) == {"BUSY"}


def test_a_broken_transaction(shop: Shop) -> None:
    """Nothing can be noted, or asked, until it is rolled back; nothing raises."""
    with transaction.atomic():
        transaction.set_rollback(True)
        assert services.find_item("BUSY").is_unavailable
    assert noted() == {}


def test_many_at_once_note_one_row(shop: Shop) -> None:
    """Eight threads, one item."""
    lookups = [later(lambda: services.find_item("BUSY", refresh=True)) for _ in range(8)]
    assert {lookup().reason for lookup in lookups} == {"incomplete_search"}
    assert UnansweredItem.objects.count() == 1


def test_somebody_else_was_faster(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row came between looking and writing: no error, and it is left alone."""
    real = unanswered._row

    def slow(*args: Any) -> UnansweredItem:
        UnansweredItem.objects.create(catalog="default", item_id="BUSY", reason="theirs")
        return real(*args)

    monkeypatch.setattr(unanswered, "_row", slow)
    assert services.find_item("BUSY").is_unavailable
    assert noted() == {"BUSY": "theirs"}


def test_without_time_zones(shop: Shop, settings: Any) -> None:
    """Moments are as the site's database takes them."""
    settings.USE_TZ = False
    services.find_item("BUSY")
    assert UnansweredItem.objects.get().next_try_at.tzinfo is None
