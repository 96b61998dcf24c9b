"""Is a stop whole and sure when others write the same rows at the same moment, where one has to give way?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connections, transaction
from django.db.models import QuerySet

from catalog_fallback import publishing, write_conflicts
from catalog_fallback.models import StoppedItem
from catalog_fallback.services import release_items, stop_items
from catalog_fallback.write_conflicts import TRIES, whole
from tests.sites import MovableClock
from tests.test_stop_events import StopListIn

IDS = [f"P{number:04}" for number in range(1, 401)]


class DriverError(Exception):
    """What a driver raises, with what it calls its number."""

    def __init__(self, *args: Any, **numbers: str) -> None:
        super().__init__(*args)
        for name, value in numbers.items():
            setattr(self, name, value)


def as_django_has_it(cause: Exception) -> OperationalError:
    """Django's own error, which names the driver's as its cause."""
    error = OperationalError(*cause.args)
    error.__cause__ = cause
    return error


CONFLICTS: dict[str, Exception] = {
    "psycopg 3: dead lock": as_django_has_it(DriverError("deadlock detected", sqlstate="40P01")),
    "psycopg 2: dead lock": as_django_has_it(DriverError("deadlock detected", pgcode="40P01")),
    "PostgreSQL: no order": as_django_has_it(DriverError("could not serialize access", sqlstate="40001")),
    "MySQL: dead lock": as_django_has_it(DriverError(1213, "Deadlock found when trying to get lock")),
    "MariaDB: changed": as_django_has_it(DriverError(1020, "Record has changed since last read")),
    "a row that somebody has just created": IntegrityError("UNIQUE constraint failed"),
}
TROUBLES: dict[str, Exception] = {
    "the connection is gone": as_django_has_it(DriverError("server closed the connection", sqlstate=None)),  # type: ignore[arg-type]
    "MySQL: somebody holds a lock for too long": as_django_has_it(DriverError(1205, "Lock wait timeout exceeded")),
    "SQLite: the same": OperationalError("database is locked"),
    "without words": OperationalError(),
}


def failing(error: Exception, times: int) -> tuple[Callable[[], str], list[int]]:
    """Work that fails so many times, and how often it was done."""
    done: list[int] = []

    def work() -> str:
        done.append(1)
        if len(done) <= times:
            raise error
        return "done"

    return work, done


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("case", CONFLICTS)
def test_who_gives_way_begins_anew(moving: MovableClock, case: str) -> None:
    """A few times, with pauses; then it is told."""
    work, done = failing(CONFLICTS[case], TRIES - 1)
    assert whole("default", work) == "done"
    assert (len(done), 0 < moving.ahead < 1) == (TRIES, True)
    work, done = failing(CONFLICTS[case], TRIES)
    with pytest.raises(type(CONFLICTS[case])):
        whole("default", work)
    assert len(done) == TRIES


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("case", TROUBLES)
def test_other_troubles_are_told_at_once(moving: MovableClock, case: str) -> None:
    """Another try would only take as long again."""
    work, done = failing(TROUBLES[case], 1)
    with pytest.raises(OperationalError):
        whole("default", work)
    assert (len(done), moving.ahead) == (1, 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("case", CONFLICTS)
def test_inside_a_transaction_only_its_owner_can_begin_anew(moving: MovableClock, case: str) -> None:
    """But for a row that somebody has just created, which is there when one looks again."""
    work, done = failing(CONFLICTS[case], 1)
    with transaction.atomic():
        if isinstance(CONFLICTS[case], IntegrityError):
            assert whole("default", work) == "done"
            return
        with pytest.raises(OperationalError):
            whole("default", work)
    assert len(done) == 1


def test_whatever_else_is_raised_goes_through(transactional_db: None) -> None:
    """It is no matter of the database's."""
    work, done = failing(KeyError("x"), 1)
    with pytest.raises(KeyError):
        whole("default", work)
    assert len(done) == 1


# --- real databases -------------------------------------------------------------------------------------------------


@pytest.fixture(params=["postgres", "mariadb"])
def shared(request: pytest.FixtureRequest, settings: Any, transactional_db: None) -> Iterator[str]:
    """The database of the stop list, in which several can write at a time; empty."""
    alias: str = request.getfixturevalue(request.param)
    settings.DATABASE_ROUTERS = [StopListIn(alias)]
    table: QuerySet[StoppedItem] = QuerySet(StoppedItem, using=alias)
    table.delete()
    yield alias
    table.all().delete()


def at_once(*works: Callable[[], object]) -> None:
    """Do all of them at the same moment, each in a thread of its own; what one raises is raised."""
    together = threading.Barrier(len(works))

    def begin(work: Callable[[], object]) -> None:
        try:
            together.wait(20)
            work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as threads:
        for each in [threads.submit(begin, work) for work in works]:
            each.result()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True, databases="__all__")
@pytest.mark.parametrize("are_new", [True, False], ids=["new rows", "rows that are there"])
def test_lists_in_contrary_orders_wait_for_nobody_for_ever(shared: str, *, are_new: bool) -> None:
    """Each is written whole, and the last word is one of theirs."""
    for _ in range(4):
        if are_new:
            QuerySet(StoppedItem, using=shared).delete()
        at_once(lambda: stop_items(IDS), lambda: stop_items(IDS[::-1]), lambda: stop_items(IDS[100:300][::-1]))
        rows = QuerySet(StoppedItem, using=shared)
        assert rows.filter(is_active=True).count() == len(IDS)
        at_once(lambda: release_items(IDS[::-1]), lambda: release_items(IDS))
        assert not rows.filter(is_active=True).exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True, databases="__all__")
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_strict_isolation_level_loses_no_stop(shared: str, monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    """There the database refuses whoever comes second; he comes again."""
    if shared == "mariadb":
        statement = f"SET SESSION TRANSACTION ISOLATION LEVEL {level}"
    else:
        statement = f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}"

    def some(verb: Callable[[list[str]], int]) -> Callable[[], None]:
        def work() -> None:
            with connections[shared].cursor() as cursor:
                cursor.execute(statement)
            for _ in range(8):
                assert verb(["P001", "P002"]) == 2

        return work

    monkeypatch.setattr(write_conflicts, "TRIES", 50)  # four who do nothing else for a while are no site
    at_once(some(stop_items), some(release_items), some(stop_items), some(release_items))
    assert stop_items(["P001", "P002"]) == 2
    assert QuerySet(StoppedItem, using=shared).filter(is_active=True).count() == 2


@pytest.mark.django_db(transaction=True, databases="__all__")
@pytest.mark.parametrize("is_stop", [True, False], ids=["stop", "release"])
@pytest.mark.parametrize("is_dated", [True, False], ids=["a moment of its own", "now"])
def test_a_row_that_appears_in_the_middle_is_seen(
    shared: str, monkeypatch: pytest.MonkeyPatch, *, is_stop: bool, is_dated: bool
) -> None:
    """Somebody else's event creates it between our update, which found nothing, and our look at what there is."""
    verb, other = (stop_items, release_items)[:: 1 if is_stop else -1]
    earlier = datetime.now(UTC) - timedelta(seconds=10)
    update, others = (
        QuerySet.update,
        [threading.Thread(target=at_once, args=(lambda: other(["P001"], event_at=earlier),))],
    )

    def updated(self: Any, **values: Any) -> int:
        count = update(self, **values)
        if "is_active" in values and others and threading.current_thread() is threading.main_thread():
            thread = others.pop()
            thread.start()
            thread.join(20)
        return count

    monkeypatch.setattr(QuerySet, "update", updated)
    assert verb(["P001"], event_at=datetime.now(UTC) if is_dated else None) == 1
    assert not others
    row = QuerySet(StoppedItem, using=shared).get()
    assert (row.is_active, row.published_at is not None) == (is_stop, True)


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_what_a_thread_is_about_to_publish_is_taken_along_by_no_other(
    shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would replace the gate that the other wants to read back, and both would begin again."""
    write, held, go = publishing._write_gates, threading.Event(), threading.Event()
    gates: list[list[str]] = []

    def written(entries: Any, item_ids: list[str], *arguments: Any, **options: Any) -> set[str]:
        gates.append(list(item_ids))
        if item_ids == ["P001"] and not held.is_set():
            held.set()
            assert go.wait(20)
        return write(entries, item_ids, *arguments, **options)

    monkeypatch.setattr(publishing, "_write_gates", written)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(at_once, lambda: stop_items(["P001"]))
        assert held.wait(20)
        stop_items(["P002"])
        go.set()
        first.result()
    assert gates == [["P001"], ["P002"]]
    assert not QuerySet(StoppedItem, using=shared).filter(published_at=None).exists()
    assert not publishing._under_way
