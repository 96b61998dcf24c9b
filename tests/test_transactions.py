"""What does a lookup inside a transaction keep and believe? Real databases, each isolation level, two connections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.cache import caches
from django.db import connections, router, transaction
from django.test.utils import CaptureQueriesContext

from catalog_fallback import services, stop_list
from catalog_fallback.models import StoppedItem
from tests.shops import Shop, elsewhere, rolled_back

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")

#: Where a transaction sees the state in which it began → how it is begun there.
SNAPSHOTS = {
    "sqlite": "",
    "postgres repeatable read": "REPEATABLE READ",
    "postgres serializable": "SERIALIZABLE",
    "mariadb repeatable read": "REPEATABLE READ",
}
#: Where each statement sees what is committed.
FRESH = {"postgres read committed": "READ COMMITTED", "mariadb read committed": "READ COMMITTED"}


class OneDatabase:
    """Sends everything to one database."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return self.alias

    db_for_read = db_for_write


class Place:
    """A database at one isolation level, and a shop that has its stop list there."""

    def __init__(self, alias: str, level: str, shop: Shop) -> None:
        self.alias, self.level, self.shop = alias, level, shop

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that has read something, so that it has its snapshot."""
        vendor = connections[self.alias].vendor
        with connections[self.alias].cursor() as cursor:
            if vendor == "mysql":
                cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {self.level}")
        with transaction.atomic(using=self.alias):
            with connections[self.alias].cursor() as cursor:
                if vendor == "postgresql":
                    cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {self.level}")
            assert StoppedItem.objects.using(self.alias).count() >= 0
            yield

    def queries(self) -> CaptureQueriesContext:
        """Counts what is asked of the database."""
        return CaptureQueriesContext(connections[self.alias])


@pytest.fixture
def place(request: pytest.FixtureRequest, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The database and level that the test's parameter names."""
    name, _, _ = request.param.partition(" ")
    alias = "default" if name == "sqlite" else request.getfixturevalue(name)
    monkeypatch.setattr(router, "routers", [OneDatabase(alias)])
    if name == "sqlite":  # as sites with several processes have it: readers do not keep a writer waiting
        with connections["default"].cursor() as cursor:
            cursor.execute("PRAGMA journal_mode=wal")
    StoppedItem.objects.all().delete()
    yield Place(alias, (SNAPSHOTS | FRESH)[request.param], Shop(settings))
    if alias != "default":
        StoppedItem.objects.all()._raw_delete(alias)


everywhere = pytest.mark.parametrize("place", [*SNAPSHOTS, *FRESH], indirect=True)
with_snapshots = pytest.mark.parametrize("place", list(SNAPSHOTS), indirect=True)
without_snapshots = pytest.mark.parametrize("place", list(FRESH), indirect=True)


@with_snapshots
def test_what_an_old_view_fetched_is_unchecked_until_a_fresh_reader_agrees(place: Place) -> None:
    """It is a hit for the next one, who asks the database first and then writes it again as checked."""
    shop = place.shop
    with place.transaction():
        assert shop.find().is_found
        entry = shop.entry()
        assert entry is not None
        assert not entry.is_checked
        assert shop.find().cache == "hit"
    with place.queries() as asked:
        assert shop.find().cache == "hit"
    assert len(asked) == 1
    entry = shop.entry()
    assert entry is not None
    assert entry.is_checked
    with place.queries() as asked:
        assert shop.find().cache == "hit"
    assert (len(asked), shop.asked) == (0, ["P001"])


@with_snapshots
def test_nobody_inherits_an_old_view(place: Place) -> None:
    """The item was stopped after the snapshot and the cache is empty: the old view fetches, the others see the stop."""
    shop = place.shop
    with place.transaction():
        elsewhere(lambda: services.stop_item("P001"))
        caches["default"].clear()
        assert shop.find().is_found
        assert elsewhere(shop.find).is_stopped
    assert shop.find().is_stopped


@with_snapshots
def test_an_old_view_believes_the_mark(place: Place) -> None:
    """A stop that its own snapshot cannot show is told by the gate, and kept for nobody."""
    shop = place.shop
    shop.find()
    with place.transaction():
        elsewhere(lambda: services.stop_item("P001"))
        assert shop.find().is_stopped
        assert shop.entry() is None
        elsewhere(lambda: services.release_item("P001"))
        assert shop.find().is_found


@with_snapshots
def test_an_old_view_never_keeps_that_an_item_is_stopped(place: Place) -> None:
    """Its stop may have been released long ago."""
    shop = place.shop
    services.stop_item("P001")
    with place.transaction():
        elsewhere(lambda: services.release_item("P001"))
        assert shop.find().is_stopped
        assert shop.entry() is None
        assert elsewhere(shop.find).is_found


@everywhere
def test_only_an_old_view_believes_the_mark(place: Place) -> None:
    """A mark that is out of date (the row went behind everybody's back) hides nothing from a fresh reader."""
    shop = place.shop
    services.stop_item("P001")
    StoppedItem.objects.all()._raw_delete(place.alias)
    assert shop.gate().startswith("s")
    assert shop.find().is_found
    assert shop.find().cache == "hit"


@without_snapshots
def test_read_committed_sees_what_is_committed(place: Place) -> None:
    """Lookups in such a transaction are as good as outside: entries are checked, a stop is seen without a mark."""
    shop = place.shop
    with place.transaction():
        assert not stop_list.sees_old_state()
        assert shop.find().is_found
        entry = shop.entry()
        assert entry is not None
        assert entry.is_checked
        elsewhere(lambda: services.stop_item("P001"))
        caches["default"].clear()
        assert shop.find().is_stopped


@everywhere
def test_outside_a_transaction_everybody_sees_what_is_committed(place: Place) -> None:
    """Autocommit is a fresh view."""
    place.shop.find()
    assert not stop_list.sees_old_state()


@everywhere
def test_an_own_stop_is_for_this_transaction_alone(place: Place) -> None:
    """Whoever wrote it sees it and keeps nothing of it; the others see it after the commit."""
    shop = place.shop
    with place.transaction():
        services.stop_item("P001")
        assert stop_list.sees_old_state()
        assert shop.find().is_stopped
        assert shop.entry() is None
        assert elsewhere(shop.find).is_found
    assert elsewhere(shop.find).is_stopped


@everywhere
def test_an_own_release_is_for_this_transaction_alone(place: Place) -> None:
    """Whoever released it may fetch it, unchecked for all others; who does not roll back has released it."""
    shop = place.shop
    services.stop_item("P001")
    caches["default"].clear()
    with place.transaction(), rolled_back(place.alias):
        services.release_item("P001")
        assert shop.find().is_found
    assert shop.find().is_stopped


@everywhere
def test_a_savepoint_that_is_rolled_back_takes_its_change_along(place: Place) -> None:
    """After it the transaction has changed nothing, and sees what its level shows it."""
    shop = place.shop
    gate = shop.find() and shop.gate()
    with place.transaction():
        before = stop_list.sees_old_state()
        with rolled_back(place.alias):
            services.stop_item("P001")
        assert stop_list.sees_old_state() is before
    assert shop.gate() == gate
    assert shop.find().cache == "hit"


@everywhere
def test_an_invalidation_keeps_the_mark_that_it_cannot_judge(place: Place) -> None:
    """With a snapshot from before the stop, the gate keeps its mark, and after the commit has the right one."""
    shop = place.shop
    shop.find()
    with place.transaction():
        elsewhere(lambda: services.stop_item("P001"))
        stopped = shop.gate()
        services.invalidate_item("P001")
        assert shop.gate() != stopped
        assert shop.gate().startswith("s")
        assert shop.find().is_stopped
        assert elsewhere(shop.find).is_stopped
    assert shop.gate().startswith("s")


@everywhere
def test_ids_are_compared_character_by_character(place: Place, settings: Any) -> None:
    """On every database, whatever its collation takes for equal."""
    shop = Shop(settings, ID_PATTERN="[A-Za-z0-9]+")
    services.stop_item("p001")
    assert shop.find("p001").is_stopped
    assert shop.find("P001").is_found
    assert services.find_items(["P001", "p001"])["P001"].is_found
