"""Are rows that were written many at once what rows written one by one are, on every database?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import QuerySet

from catalog_fallback import stop_events
from catalog_fallback.models import StoppedItem
from catalog_fallback.services import find_item, release_items, stop_items

IDS = [f"P{number:04}" for number in range(1, 1201)]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: What differs from row to row.
OWN = {"id", "item_id"}
#: When it was written.
MOMENTS = {"created_at", "updated_at", "published_at"}


class StopListIn:
    """Sends the stop list, and nothing else, to one database."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return self.alias if model is StoppedItem else None

    db_for_read = db_for_write


@pytest.fixture(params=["default", "postgres", "mariadb"])
def alias(request: pytest.FixtureRequest, settings: Any, transactional_db: None) -> Iterator[str]:
    """The database of the stop list, empty. One that was made for this very test is not emptied after it."""
    alias: str = "default" if request.param == "default" else request.getfixturevalue(request.param)
    settings.DATABASE_ROUTERS = [StopListIn(alias)]
    table: QuerySet[StoppedItem] = QuerySet(StoppedItem, using=alias)
    table.delete()
    yield alias
    table.all().delete()


def rows(alias: str) -> dict[str, dict[str, Any]]:
    """All rows by ID, without what is each row's own."""
    return {
        row["item_id"]: {name: value for name, value in row.items() if name not in OWN}
        for row in QuerySet(StoppedItem, using=alias).values()
    }


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_many_rows_are_like_one_that_was_saved(alias: str) -> None:
    """Every column has what the model would give it; quotes and signs in an ID are an ID's own."""
    odd = ["it's", "100%", 'a"b', "%s", "P;--", "x" * 255]
    note = "Let's 100 % \N{SNOWMAN}"
    event = stop_events.make("default", is_active=True, event_at=NOON, reason="legal", note=note)
    written = stop_events.apply(event, [*IDS, *odd])
    StoppedItem(catalog="default", item_id="SAVED", event_at=NOON, reason="legal", note=note).save()
    found = rows(alias)
    saved = found.pop("SAVED")
    assert written == len(found) == len(IDS) + len(odd)
    assert found.keys() == {*IDS, *odd}
    for row in found.values():
        assert all(abs(row.pop(name) - saved[name]) < timedelta(minutes=1) for name in MOMENTS)
        assert row == {name: value for name, value in saved.items() if name not in MOMENTS}
    assert find_item("P0001").is_stopped


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_events_come_in_their_order(alias: str) -> None:
    """A later event wins over rows that are there, an earlier one changes nothing; new rows are made beside them."""
    stop_items(IDS[:10], event_at=NOON)
    released = stop_events.apply(
        stop_events.make("default", is_active=False, event_at=NOON - timedelta(seconds=1)), IDS[5:15]
    )
    assert released == 5
    found = rows(alias)
    assert [found[each]["is_active"] for each in IDS[:15]] == [True] * 10 + [False] * 5
    assert {found[each]["reason"] for each in IDS[10:15]} == {"other"}
    assert stop_items(IDS[:15], event_at=NOON + timedelta(seconds=1)) == 15
    assert all(row["is_active"] and row["published_at"] is not None for row in rows(alias).values())
    assert {row["event_at"] for row in rows(alias).values()} == {NOON + timedelta(seconds=1)}


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_an_event_of_now_comes_after_what_a_fast_clock_has_dated_ahead(alias: str) -> None:
    """Rows of before, rows dated ahead and new ones are changed in one go; the moment that lies ahead stays."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    release_items(IDS[:5], event_at=NOON)
    release_items(IDS[5:10], event_at=ahead)
    assert stop_items(IDS[:15]) == 15
    found = rows(alias)
    assert all(row["is_active"] and row["published_at"] is not None for row in found.values())
    assert [found[each]["event_at"] == ahead for each in IDS[:15]] == [False] * 5 + [True] * 5 + [False] * 5
    assert len({found[each]["event_at"] for each in [*IDS[:5], *IDS[10:15]]}) == 1
    assert release_items(IDS[:15], event_at=ahead - timedelta(seconds=1)) == 10
