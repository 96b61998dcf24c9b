"""Do workers refresh and warm items, as many a task as they should, and only after the commit?"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction

from catalog_fallback import services
from catalog_fallback.contrib import tasks
from catalog_fallback.exceptions import InvalidItemID, UnknownCatalog
from catalog_fallback.results import CacheStatus
from tests.commands import runner

IDS = [f"P{n:04}" for n in range(1200)]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, shop: None) -> list[tuple[str, list[str], str, str | None]]:
    """What was enqueued, in place of a queue."""
    found: list[tuple[str, list[str], str, str | None]] = []

    def sender(name: str) -> Callable[..., None]:
        return lambda item_ids, catalog, language: found.append((name, item_ids, catalog, language))

    monkeypatch.setattr(tasks, "_sender", sender)
    return found


def test_five_hundred_a_task(sent: list[Any]) -> None:
    """In the order given, each ID once, in its normal form."""
    assert tasks.enqueue_warm([*IDS, "P0001"], language="de") == 3
    assert [len(each[1]) for each in sent] == [500, 500, 200]
    assert [item_id for each in sent for item_id in each[1]] == IDS
    assert {(each[0], each[2], each[3]) for each in sent} == {("warm_items", "default", "de")}


def test_after_the_commit(sent: list[Any]) -> None:
    """A worker must not be faster than the transaction."""
    with transaction.atomic():
        tasks.enqueue_refresh(["P0001"], catalog="slow")
        assert sent == []
    assert sent == [("refresh_items", ["P0001"], "slow", None)]


def test_not_after_a_rollback(sent: list[Any]) -> None:
    """What did not happen needs no task."""
    with transaction.atomic():
        tasks.enqueue_warm(["P0001"])
        transaction.set_rollback(True)
    assert sent == []


def test_nothing_is_enqueued_for_a_bad_argument(sent: list[Any]) -> None:
    """Said at once, not by a worker."""
    with pytest.raises(InvalidItemID):
        tasks.enqueue_warm(["P0001", "no good"])
    with pytest.raises(UnknownCatalog):
        tasks.enqueue_warm(["P0001"], catalog="nowhere")
    assert sent == []


def test_a_queue_that_is_off(shop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a transaction the caller is told; after a commit it is logged, and later callbacks still run."""

    def broken(name: str) -> Callable[..., None]:
        def send(*args: Any) -> None:
            raise ConnectionError("queue is off")

        return send

    monkeypatch.setattr(tasks, "_sender", broken)
    with pytest.raises(ConnectionError):
        tasks.enqueue_warm(["P0001"])
    later = []
    with transaction.atomic():
        tasks.enqueue_warm(["P0001"])
        transaction.on_commit(lambda: later.append(1))
    assert later == [1]


@pytest.mark.parametrize(("name", "is_fetched_anew"), [("warm_items", False), ("refresh_items", True)])
def test_what_a_worker_does(shop: None, name: str, is_fetched_anew: bool) -> None:
    """Warm skips what is fresh, refresh does not."""
    before = services.find_item("P0001").fetched_at
    counts = tasks._JOBS[name](["P0001", "P0002", "NONE", "BUSY"], "default", None)
    assert (counts["found"], counts["fresh"]) == ((2, 0) if is_fetched_anew else (1, 1))
    assert (counts["not_found"], counts["unavailable"]) == (1, 1)
    assert (services.find_item("P0001").fetched_at != before) is is_fetched_anew
    assert services.find_item("P0002").cache is CacheStatus.HIT


def test_without_a_queue(shop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that says what to do."""
    monkeypatch.setattr(tasks, "_task", None)
    monkeypatch.setattr(tasks, "CELERY_TASKS", {})
    with pytest.raises(ImproperlyConfigured, match="no task queue"):
        tasks.enqueue_warm(["P0001"])


@pytest.fixture
def django_tasks(needs: Callable[[str, str], Any]) -> None:
    """Django's own tasks, or the package for older ones."""
    try:
        importlib.import_module("django.tasks")
    except ImportError:
        needs("django_tasks", "django-tasks")


@pytest.fixture
def eager_celery(needs: Callable[[str, str], Any]) -> Iterator[Any]:
    """Celery, whose tasks run at once."""
    celery = needs("celery", "celery")
    app = celery.Celery("tests", set_as_current=True)
    app.conf.task_always_eager = True
    app.conf.task_eager_propagates = True
    yield app
    app.close()


@pytest.mark.usefixtures("shop", "django_tasks")
def test_django_tasks(settings: Any) -> None:
    """The immediate backend runs them at once, after the commit."""
    package = "django.tasks" if "django.tasks" in sys.modules else "django_tasks"
    settings.TASKS = {"default": {"BACKEND": f"{package}.backends.immediate.ImmediateBackend"}}
    with transaction.atomic():
        tasks.enqueue_warm(["P0001", "P0002"])
        assert services.find_item("P0002", refresh=True).cache is CacheStatus.MISS
    assert services.find_item("P0001").cache is CacheStatus.HIT


@pytest.mark.usefixtures("shop", "eager_celery")
def test_celery() -> None:
    """Under names that do not depend on where the code lives."""
    names = {task.name for task in tasks.CELERY_TASKS.values()}
    assert names >= {"catalog_fallback.warm_items", "catalog_fallback.refresh_items"}
    assert tasks.enqueue_warm(["P0001"]) == 1
    assert services.find_item("P0001").cache is CacheStatus.HIT


@pytest.mark.usefixtures("shop", "eager_celery", "django_tasks")
def test_which_queue(settings: Any) -> None:
    """Django's where the site has set TASKS, else Celery's."""
    assert tasks._sender("warm_items") == tasks.CELERY_TASKS["warm_items"].delay
    settings.TASKS = {"default": {"BACKEND": "django_tasks.backends.dummy.DummyBackend"}}
    assert tasks._sender("warm_items") == tasks.warm_items.enqueue  # type: ignore[attr-defined]


def test_the_command_hands_over(sent: list[Any]) -> None:
    """``warm_items --tasks`` enqueues 500 IDs a task and fetches nothing itself."""
    out, err = io.StringIO(), io.StringIO()
    call_command("warm_items", *IDS, "--tasks", stdout=out, stderr=err)
    assert [len(each[1]) for each in sent] == [500, 500, 200]
    assert out.getvalue() == "Catalog default: 1,200 given to the workers.\n"
    assert services.find_item("P0001").cache is CacheStatus.MISS


@pytest.mark.parametrize("kind", ["while-it-enqueues", "while-it-waits"])
def test_ctrl_c_while_it_hands_over(sent: list[Any], monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """What is enqueued is told, and where to go on."""

    class Pipe(io.RawIOBase):
        lines = b"".join(f"{item_id}\n".encode() for item_id in IDS)

        def read1(self, size: int = -1, /) -> bytes:
            piece, self.lines = self.lines[:6000], self.lines[6000:]
            if not piece and kind == "while-it-waits":
                os.kill(os.getpid(), signal.SIGINT)
            return piece

    if kind == "while-it-enqueues":
        enqueue = tasks.enqueue_warm

        def interrupted(*args: Any, **how: Any) -> int:
            os.kill(os.getpid(), signal.SIGINT)
            return enqueue(*args, **how)

        monkeypatch.setattr(tasks, "enqueue_warm", interrupted)
    done = runner(monkeypatch)("warm_items", "-", "--tasks", stdin=Pipe())
    count = 500 if kind == "while-it-enqueues" else 1200
    assert (done.code, sum(len(each[1]) for each in sent)) == (3, count)
    assert f"Interrupted after line {count:,}" in done.message


def test_the_command_without_a_queue(shop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, and what is missing."""
    monkeypatch.setattr(tasks, "_task", None)
    monkeypatch.setattr(tasks, "CELERY_TASKS", {})
    with pytest.raises(CommandError, match="no task queue"):
        call_command("warm_items", "P0001", "--tasks", stdout=io.StringIO(), stderr=io.StringIO())
