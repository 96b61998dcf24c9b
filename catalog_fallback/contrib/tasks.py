"""How do workers refresh, warm and retry items? As tasks of Django or of Celery, enqueued when the transaction commits.

Django's tasks (Django 6, or the package django-tasks) are used where the setting TASKS is there, else Celery where it
is installed. The workers skip what is fresh, and the sources' shared RATE_LIMIT keeps all of them together in bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from catalog_fallback import conf
from catalog_fallback.retrying import retry
from catalog_fallback.warming import Warming

#: IDs that one task takes.
IDS_A_TASK = 500

_NAME = "catalog_fallback."
_Job = Callable[..., dict[str, Any]]


def _django_task() -> Callable[[_Job], Any] | None:
    """The decorator of Django's tasks, None where there are none."""
    for module in ("django.tasks", "django_tasks"):  # Django 6, and the same for Django 5.2
        with suppress(ImportError):
            decorator: Callable[[_Job], Any] = import_module(module).task
            return decorator
    return None


def _celery_task() -> Callable[..., Any] | None:
    """The decorator of Celery's tasks, None where it is not installed."""
    with suppress(ImportError):
        decorator: Callable[..., Any] = import_module("celery").shared_task
        return decorator
    return None


def _work(item_ids: list[str], catalog: str, language: str | None, *, is_refresh: bool) -> dict[str, int]:
    warming = Warming(conf.catalog(catalog), language=language, is_refresh=is_refresh)
    warming.run(item_ids)
    return asdict(warming.counts)


def warm_items(item_ids: list[str], catalog: str = "default", language: str | None = None) -> dict[str, int]:
    """Fetch those that are not fresh; return what became of how many."""
    return _work(item_ids, catalog, language, is_refresh=False)


def refresh_items(item_ids: list[str], catalog: str = "default", language: str | None = None) -> dict[str, int]:
    """Fetch all of them, fresh or not; return what became of how many."""
    return _work(item_ids, catalog, language, is_refresh=True)


def retry_unavailable_items(catalog: str = "default", limit: int | None = None) -> dict[str, Any]:
    """Make the lookups again that nobody could answer and that are due; return what became of how many."""
    return asdict(retry(conf.catalog(catalog), limit))


_JOBS: dict[str, _Job] = {
    "warm_items": warm_items,
    "refresh_items": refresh_items,
    "retry_unavailable_items": retry_unavailable_items,
}

if (_shared_task := _celery_task()) is not None:
    #: Name of the job → Celery's task, which workers find under ``catalog_fallback.…``.
    CELERY_TASKS = {name: _shared_task(name=_NAME + name, ignore_result=True)(job) for name, job in _JOBS.items()}
else:
    CELERY_TASKS = {}

if (_task := _django_task()) is not None:
    # Workers find them here by their own names.
    warm_items = _task(warm_items)
    refresh_items = _task(refresh_items)
    retry_unavailable_items = _task(retry_unavailable_items)


def enqueue_warm(
    item_ids: Iterable[str], *, catalog: str = "default", language: str | None = None, using: str | None = None
) -> int:
    """Let workers fetch what is not fresh, 500 IDs a task, once the transaction on ``using`` is committed.

    Returns the number of tasks. Raises InvalidItemID and UnknownCatalog at once, ImproperlyConfigured without a queue.
    """
    return _enqueue("warm_items", item_ids, catalog, language, using)


def enqueue_refresh(
    item_ids: Iterable[str], *, catalog: str = "default", language: str | None = None, using: str | None = None
) -> int:
    """Let workers fetch all items anew; otherwise as :func:`enqueue_warm`."""
    return _enqueue("refresh_items", item_ids, catalog, language, using)


def enqueue_retry(*, catalog: str = "default", limit: int | None = None, using: str | None = None) -> None:
    """Let a worker do what the command ``retry_unavailable_items`` does, once the transaction is committed.

    Raises UnknownCatalog at once, ImproperlyConfigured without a queue.
    """
    alias, send = conf.catalog(catalog).alias, _sender("retry_unavailable_items")
    is_for_later = transaction.get_connection(using).in_atomic_block
    transaction.on_commit(_call(send, alias, limit), using=using, robust=is_for_later)


def _enqueue(name: str, item_ids: Iterable[str], catalog: str, language: str | None, using: str | None) -> int:
    config = conf.catalog(catalog)
    clean = list(dict.fromkeys(config.clean_id(item_id) for item_id in item_ids))
    send = _sender(name)
    # After a commit nobody could take an exception any more: it is logged. Outside a transaction the caller gets it.
    is_for_later = transaction.get_connection(using).in_atomic_block
    starts = range(0, len(clean), IDS_A_TASK)
    for start in starts:
        some = clean[start : start + IDS_A_TASK]
        transaction.on_commit(_call(send, some, config.alias, language), using=using, robust=is_for_later)
    return len(starts)


def _call(send: Callable[..., Any], *args: Any) -> Callable[[], None]:
    """Return a function with a name, which Django needs for its log: a partial has none."""

    def enqueue() -> None:
        send(*args)

    return enqueue


def _sender(name: str) -> Callable[..., Any]:
    """Return what enqueues a job: Django's queue where the site has set one, else Celery's."""
    is_wanted = settings.is_overridden("TASKS") or not CELERY_TASKS  # type: ignore[misc]  # the plugin knows settings only
    if _task is not None and is_wanted:
        send: Callable[..., Any] = globals()[name].enqueue
        return send
    if CELERY_TASKS:
        delay: Callable[..., Any] = CELERY_TASKS[name].delay
        return delay
    raise ImproperlyConfigured(
        "There is no task queue: use Django 6 with the setting TASKS, or install django-tasks or Celery."
    )
