"""Does every change of the stop list reach the cache, whoever makes it, and only the changes that are committed?"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from catalog_fallback import publishing, services, signals, stop_list
from catalog_fallback.exceptions import InvalidationFailed, InvalidItemID
from catalog_fallback.models import StoppedItem
from catalog_fallback.testing import FrozenClock
from tests import stores
from tests.shops import Shop, rolled_back
from tests.sites import MovableClock, Site

pytestmark = pytest.mark.django_db(transaction=True)
DOWN = stores.raising(ConnectionError("down"))


@pytest.fixture
def shop(settings: Any, frozen_clock: FrozenClock) -> Shop:
    """A catalog whose items have been looked up once."""
    shop = Shop(settings)
    shop.find("P001"), shop.find("P002")
    return shop


def row(item_id: str = "P001", catalog: str = "default", **fields: Any) -> StoppedItem:
    """A row that is not saved."""
    return StoppedItem(item_id=item_id, catalog=catalog, **fields)


def quiet_row(item_id: str = "P001", **fields: Any) -> StoppedItem:
    """A row that is in the database, as confirmed, without anybody having been told."""
    made = row(item_id, published_at=timezone.now(), **fields)
    QuerySet(StoppedItem).bulk_create([made])
    return StoppedItem.objects.get(item_id=item_id)


def load(tmp_path: Path, **fields: Any) -> None:
    """Load a fixture with one row."""
    values = {"catalog": "default", "item_id": "P001", "created_at": "2026-01-01T00:00:00Z", **fields}
    values.setdefault("updated_at", "2026-01-01T00:00:00Z")
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([{"model": "catalog_fallback.stoppeditem", "pk": 77, "fields": values}]))
    call_command("loaddata", str(path), verbosity=0)


def changed(item: StoppedItem, **fields: Any) -> StoppedItem:
    """The row with other values, not saved."""
    for name, value in fields.items():
        setattr(item, name, value)
    return item


#: Ways to put P001 on the list.
STOPS: dict[str, Callable[[Path], Any]] = {
    "stop_item": lambda path: services.stop_item("P001"),
    "save": lambda path: row().save(),
    "create": lambda path: StoppedItem.objects.create(item_id="P001", catalog="default"),
    "update_or_create": lambda path: StoppedItem.objects.update_or_create(item_id="P001", catalog="default"),
    "bulk_create": lambda path: StoppedItem.objects.bulk_create([row()]),
    "bulk_create over a released row": lambda path: (
        quiet_row(is_active=False),
        StoppedItem.objects.bulk_create(
            [row()], update_conflicts=True, unique_fields=["item_id", "catalog"], update_fields=["is_active"]
        ),
    ),
    "update": lambda path: (quiet_row(is_active=False), StoppedItem.objects.all().update(is_active=True)),
    "bulk_update": lambda path: StoppedItem.objects.bulk_update(
        [changed(quiet_row(is_active=False), is_active=True)], ["is_active"]
    ),
    "save with update_fields": lambda path: changed(quiet_row(is_active=False), is_active=True).save(
        update_fields=["is_active"]
    ),
    "loaddata": load,
}

#: Ways to take P001 off the list, as it is stopped.
RELEASES: dict[str, Callable[[], Any]] = {
    "release_item": lambda: services.release_item("P001"),
    "delete": lambda: StoppedItem.objects.get().delete(),
    "delete many": lambda: StoppedItem.objects.all().delete(),
    "update": lambda: StoppedItem.objects.update(is_active=False),
    "save": lambda: changed(StoppedItem.objects.get(), is_active=False).save(),
    "save under another id": lambda: changed(StoppedItem.objects.get(), item_id="P009").save(),
    "save in another catalog": lambda: changed(StoppedItem.objects.get(), catalog="other").save(),
    "update to another id": lambda: StoppedItem.objects.update(item_id="P009"),
    "update to another catalog": lambda: StoppedItem.objects.update(catalog="other"),
    "bulk_update": lambda: StoppedItem.objects.bulk_update(
        [changed(StoppedItem.objects.get(), is_active=False)], ["is_active"]
    ),
    "bulk_update to another id": lambda: StoppedItem.objects.bulk_update(
        [changed(StoppedItem.objects.get(), item_id="P009")], ["item_id"]
    ),
}


@pytest.mark.parametrize("way", STOPS)
def test_every_way_to_stop_is_published(shop: Shop, way: str, tmp_path: Path) -> None:
    """The gate is new and marked, the row confirmed, and the cached item is not shown any more."""
    gate = shop.gate()
    STOPS[way](tmp_path)
    assert shop.gate() != gate
    assert shop.gate().startswith("s")
    assert StoppedItem.objects.get().published_at is not None
    assert shop.find().is_stopped


@pytest.mark.parametrize("way", RELEASES)
def test_every_way_to_release_is_published(shop: Shop, way: str) -> None:
    """The gate is new and open, and what was kept as stopped is fetched again; a new ID is stopped instead."""
    services.stop_item("P001")
    assert shop.find().is_stopped
    RELEASES[way]()
    assert shop.gate().startswith("o")
    assert shop.find().is_found
    if "another id" in way:
        assert shop.find("P009").is_stopped
    if "another catalog" in way:
        assert shop.find(catalog="other").is_stopped
    assert not StoppedItem.objects.filter(published_at=None).exists()


def test_loading_a_fixture_over_another_row_releases_that_one(shop: Shop, tmp_path: Path) -> None:
    """A fixture that gives a row's primary key to another ID publishes both."""
    load(tmp_path)
    assert shop.find().is_stopped
    load(tmp_path, item_id="P002")
    assert shop.find().is_found
    assert shop.find("P002").is_stopped


@pytest.mark.parametrize("name", ["note", "published_at"])
def test_a_note_is_no_change(shop: Shop, name: str) -> None:
    """What nobody shows does not invalidate anything."""
    services.stop_item("P001")
    gate = shop.gate()
    StoppedItem.objects.update(**{name: "a note" if name == "note" else None})
    assert shop.gate() == gate


BAD = "no id!"
INVALID: dict[str, Callable[[Path], Any]] = {
    "stop_item": lambda path: services.stop_items(["P002", BAD]),
    "release_item": lambda path: services.release_items(["P002", BAD]),
    "save": lambda path: row(BAD).save(),
    "update_or_create": lambda path: StoppedItem.objects.update_or_create(item_id=BAD, catalog="default"),
    "bulk_create": lambda path: StoppedItem.objects.bulk_create([row("P002"), row(BAD)]),
    "update": lambda path: StoppedItem.objects.update(item_id=BAD),
    "bulk_update": lambda path: StoppedItem.objects.bulk_update(
        [changed(StoppedItem.objects.get(), item_id=BAD)], ["item_id"]
    ),
    "loaddata": lambda path: load(path, item_id=BAD),
}


@pytest.mark.parametrize("way", INVALID)
def test_an_invalid_id_is_refused_everywhere(shop: Shop, way: str, tmp_path: Path) -> None:
    """Nothing is written, in the database or in the cache."""
    services.stop_item("P001")
    before = list(StoppedItem.objects.values()), shop.gate(), shop.gate("P002")
    with pytest.raises(InvalidItemID):
        INVALID[way](tmp_path)
    assert (list(StoppedItem.objects.values()), shop.gate(), shop.gate("P002")) == before


# ------------------------------------------------------------------------------------------------ transactions


def test_a_change_is_published_after_its_commit(shop: Shop) -> None:
    """Before it, the gate is the old one; a second change of the transaction goes with it."""
    gates = shop.gate(), shop.gate("P002")
    with transaction.atomic():
        services.stop_item("P001")
        services.stop_item("P002", reason="legal")
        assert (shop.gate(), shop.gate("P002")) == gates
    assert shop.gate().startswith("s")
    assert shop.gate("P002").startswith("s")


def test_a_rollback_publishes_nothing(shop: Shop) -> None:
    """Neither of a transaction nor of a savepoint; what was changed around the savepoint goes out."""
    gates = {item_id: shop.gate(item_id) for item_id in ("P001", "P002")}
    with transaction.atomic():
        services.stop_item("P003")
        with rolled_back():
            services.stop_item("P001")
        assert stop_list.sees_old_state()
        services.stop_item("P004")
    assert {item_id: shop.gate(item_id) for item_id in gates} == gates
    assert [shop.gate(item_id)[0] for item_id in ("P003", "P004")] == ["s", "s"]
    with rolled_back():
        services.stop_item("P001")
    assert shop.gate() == gates["P001"]


def test_a_failure_after_the_commit_is_logged_and_shown(
    shop: Shop, caplog: pytest.LogCaptureFixture, frozen_clock: FrozenClock
) -> None:
    """The caller has his commit; the row says that the cache has not confirmed it; the next publish takes it along."""
    shop.shelf.fault = DOWN
    with caplog.at_level(logging.ERROR, "catalog_fallback"), transaction.atomic():
        services.stop_item("P001")
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert StoppedItem.objects.get().published_at is None
    shop.shelf.fault = None
    frozen_clock.advance(10)
    services.invalidate_item("P002")
    assert StoppedItem.objects.get().published_at is not None
    assert shop.find().is_stopped


def test_a_failure_after_the_commit_is_not_always_the_caches(
    shop: Shop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line in the log leaves it to the exception to say what failed."""
    unreadable = InvalidationFailed("the stop list could not be read")
    monkeypatch.setattr(publishing, "publish", Mock(side_effect=unreadable))
    with caplog.at_level(logging.ERROR, "catalog_fallback"), transaction.atomic():
        services.stop_item("P001")
    assert [record.getMessage() for record in caplog.records] == [
        "Catalog 'default': a committed change of the stop list is not confirmed."
    ]
    assert "the stop list could not be read" in caplog.text


WRITES: dict[str, Callable[[], Any]] = {
    "stop_item": lambda: services.stop_item("P001"),
    "save": lambda: StoppedItem.objects.get().save(),
    "update": lambda: StoppedItem.objects.update(is_active=True),
    "bulk_update": lambda: StoppedItem.objects.bulk_update(
        [changed(StoppedItem.objects.get(), is_active=True)], ["is_active"]
    ),
}


@pytest.mark.parametrize("way", WRITES)
def test_a_failure_outside_a_transaction_is_raised(shop: Shop, way: str, frozen_clock: FrozenClock) -> None:
    """The row is changed and not confirmed, whatever it was before."""
    quiet_row(is_active=False, event_at=datetime(2020, 1, 1, tzinfo=UTC))
    shop.shelf.fault = DOWN
    with pytest.raises(InvalidationFailed):
        WRITES[way]()
    assert StoppedItem.objects.get().published_at is None
    assert sum(frozen_clock.slept) == pytest.approx(1.0, abs=0.2)


def test_one_catalog_that_fails_keeps_no_other_from_being_published(
    settings: Any, shop: Shop, frozen_clock: FrozenClock
) -> None:
    """A change of rows of two catalogs reaches the one whose cache is there, and is raised for the other."""
    memory = {"BACKEND": "tests.stores.MemoryCache", "LOCATION": shop.location}
    settings.CACHES = {"default": memory, "down": {"BACKEND": "tests.stores.RaisingCache", "LOCATION": "down"}}
    catalogs = settings.CATALOG_FALLBACK
    settings.CATALOG_FALLBACK = {"broken": {**catalogs["default"], "CACHE": "down"}, "default": catalogs["default"]}
    QuerySet(StoppedItem).bulk_create([row("P001", "broken", is_active=False), row("P001", is_active=False)])
    with pytest.raises(InvalidationFailed, match="broken"):
        StoppedItem.objects.update(is_active=True)
    assert shop.find().is_stopped


def test_an_invalidation_in_a_transaction_works_at_once_and_again_after_the_commit(shop: Shop) -> None:
    """It keeps the mark that it finds, since its own view of the stop list may be old."""
    services.stop_item("P002")
    gate = shop.gate()
    with transaction.atomic():
        services.invalidate_items(["P001", "P002"])
        at_once = shop.gate()
        assert at_once != gate
        assert shop.gate("P002").startswith("s")
    assert shop.gate() not in {gate, at_once}


def test_an_invalidation_that_is_rolled_back_was_one_all_the_same(shop: Shop) -> None:
    """Forgetting too much costs a fetch."""
    gate = shop.gate()
    with rolled_back():
        services.invalidate_item("P001")
    assert shop.gate() != gate


def test_a_transaction_by_hand_is_refused_loudly(shop: Shop) -> None:
    """Without a hook for the commit nothing could be published after it."""
    transaction.set_autocommit(False)
    try:
        with pytest.raises(InvalidationFailed, match="by hand"):
            services.stop_item("P001")
        assert services.invalidate_item("P002") == 1
    finally:
        connection.rollback()
        transaction.set_autocommit(True)


def test_a_state_that_changed_meanwhile_is_not_confirmed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Released and stopped again while the gate is written: the mark would be right, but nobody has published that."""
    services.stop_item("P001")
    gates: list[str] = []
    write = publishing._write_gates

    def meanwhile(*arguments: Any, **keywords: Any) -> Any:
        answer = write(*arguments, **keywords)
        gates.append(shop.gate())
        if len(gates) == 1:
            later = {"updated_at": timezone.now() + timedelta(seconds=1), "published_at": None}
            QuerySet(StoppedItem).update(is_active=True, **later)
        return answer

    monkeypatch.setattr(publishing, "_write_gates", meanwhile)
    services.invalidate_item("P001")
    assert len(gates) > 1, "the change was confirmed by a gate that was written before it"


def test_an_error_counts_all_that_are_left(
    site: Site, monkeypatch: pytest.MonkeyPatch, moving: MovableClock, captured: list[Any]
) -> None:
    """Also those of later parts, which are not tried any more; whoever listens hears of those that are confirmed."""
    ids = [f"P{number:05}" for number in range(1200)]
    write, broken = publishing._write_gates, ids[700]

    def written(entries: Any, item_ids: list[str], *arguments: Any, **options: Any) -> set[str]:
        return write(entries, item_ids, *arguments, **options) - {broken}

    monkeypatch.setattr(publishing, "_write_gates", written)
    monkeypatch.setattr(publishing, "PUBLISHED_BETWEEN_CULLS", 500)
    with pytest.raises(InvalidationFailed, match=f"201 of 1200 IDs .first: '{broken}'"):
        services.invalidate_items(ids)
    assert captured == [tuple(each for each in ids[:1000] if each != broken)]


@pytest.fixture
def captured() -> Iterator[list[Any]]:
    """The IDs of which listeners heard."""
    heard: list[Any] = []

    def listen(sender: object, *, item_ids: tuple[str, ...], **_: object) -> None:
        heard.append(item_ids)

    signals.items_invalidated.connect(listen)
    yield heard
    signals.items_invalidated.disconnect(listen)
