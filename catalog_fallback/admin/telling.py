"""What is a person told once it is committed? Whether the cache has confirmed what they changed.

The admin's views run in a transaction, and publishing follows its commit. So what is told here is found out after the
commit too; the message still gets into the response, since messages are stored when the response leaves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from django.contrib import messages
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from catalog_fallback import conf, services, stop_list
from catalog_fallback.cache import SHORT_LIFE
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import CatalogError
from catalog_fallback.models import StoppedItem, StoppedItemQuerySet, chunks
from catalog_fallback.told_errors import told

if TYPE_CHECKING:
    from django.http import HttpRequest


def tell_whether_confirmed(request: HttpRequest, keys: Collection[int]) -> None:
    """After the commit, say how many of these rows the cache has not confirmed; nothing when it has confirmed all."""

    def tell() -> None:
        _tell_unconfirmed(request, _unconfirmed().filter(pk__in=list(keys)).values_list("catalog", "is_active"))

    transaction.on_commit(tell, using=stop_list.database(), robust=True)


def tell_whether_event_is_confirmed(request: HttpRequest, catalog: str, event_at: datetime) -> None:
    """The same for all rows of one stop or release; its moment is as the columns take it."""

    def tell() -> None:
        rows = _unconfirmed().filter(catalog=catalog, event_at=event_at)
        _tell_unconfirmed(request, rows.values_list("catalog", "is_active"))

    transaction.on_commit(tell, using=stop_list.database(), robust=True)


def _unconfirmed() -> StoppedItemQuerySet:
    return StoppedItem.objects.using(stop_list.database()).filter(published_at=None).order_by()


def _tell_unconfirmed(request: HttpRequest, waiting: Iterable[tuple[str, bool]]) -> None:
    counts = Counter(waiting)
    for is_active, text in ((True, _stopped_text), (False, _released_text)):
        catalogs = [catalog for catalog, is_stopped in counts if is_stopped is is_active]
        if count := sum(counts[catalog, is_active] for catalog in catalogs):
            messages.warning(request, text(count, catalogs))


def tell_after_deletion(request: HttpRequest, items: Iterable[tuple[str, str]]) -> None:
    """After the commit, make sure that the cache forgot these (catalog, ID) too, and say so where it did not."""
    by_catalog = grouped(items)

    def tell() -> None:
        for catalog, item_ids in by_catalog.items():
            republish(request, catalog, item_ids)

    transaction.on_commit(tell, using=stop_list.database(), robust=True)


def republish(request: HttpRequest, catalog: str, item_ids: Collection[str]) -> int:
    """Publish items of one catalog again; return how many were confirmed, and tell what went wrong."""
    confirmed = 0
    for chunk in chunks(list(item_ids)):
        try:
            confirmed += services.invalidate_items(chunk, catalog=catalog, reason="published again")
        except CatalogError as error:  # it is not confirmed, or the settings have changed: nobody can look these up
            messages.warning(request, told(error))
            return confirmed
    return confirmed


def tell_left(request: HttpRequest, *, unusable: int = 0, idle: int = 0, later: int = 0) -> None:
    """Say how many items of a stop or a release stay as they were, and why; nothing of those that are 0."""
    if idle:
        text = ngettext(
            "%(count)d item was not stopped: there was nothing to release.",
            "%(count)d items were not stopped: there was nothing to release.",
            idle,
        )
        messages.info(request, text % {"count": idle})
    if unusable:
        text = _("Left as they are, because the settings no longer have their catalog or take their ID: {count}.")
        messages.warning(request, text.format(count=unusable))
    if later:
        text = _(
            "Left as they are, because of a later event (a notice dated ahead): {count}. Open them to change them."
        )
        messages.warning(request, text.format(count=later))


def grouped(items: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the IDs of each catalog."""
    by_catalog: dict[str, list[str]] = {}
    for catalog, item_id in items:
        by_catalog.setdefault(catalog, []).append(item_id)
    return by_catalog


def seconds_until_gone(catalogs: Iterable[str]) -> int:
    """Return after how many seconds a stop that only the database knows holds everywhere, at the latest.

    A lookup that began before the stop may still keep what it fetches; after that an entry answers for TTL, and for
    STALE_IF_ERROR more when no source does. With STOP_CHECK "database" every lookup asks the database: 0.
    """
    return _longest(
        config.budget + config.ttl + config.stale_if_error
        for config in _known(catalogs)
        if config.stop_check == "cache"
    )


def seconds_until_back(catalogs: Iterable[str]) -> int:
    """Return after how many seconds a release that only the database knows holds everywhere, at the latest.

    What is kept of a stopped item is the answer "stopped", for a life of its own.
    """
    return _longest(config.budget + max(SHORT_LIFE, config.negative_ttl) for config in _known(catalogs))


def _known(catalogs: Iterable[str]) -> list[CatalogConfig]:
    """The catalogs that the settings still have: nobody looks anything up in the others."""
    known = conf.catalogs()
    return [known[catalog] for catalog in catalogs if catalog in known]


def _longest(durations: Iterable[float]) -> int:
    return math.ceil(max(durations, default=0.0))


def _stopped_text(count: int, catalogs: Iterable[str]) -> str:
    text = ngettext(
        "%(count)d item is stopped in the database, but not confirmed by the cache.",
        "%(count)d items are stopped in the database, but not confirmed by the cache.",
        count,
    ) % {"count": count}
    if seconds := seconds_until_gone(catalogs):
        rest = _("It takes at most {seconds} seconds until that holds everywhere.").format(seconds=seconds)
    else:
        rest = _("Lookups ask the database too (STOP_CHECK), so it holds already.")
    return f"{text} {rest} {_publish_again()}"


def _released_text(count: int, catalogs: Iterable[str]) -> str:
    text = ngettext(
        "%(count)d item is released in the database, but not confirmed by the cache.",
        "%(count)d items are released in the database, but not confirmed by the cache.",
        count,
    ) % {"count": count}
    rest = _("Pages may go on hiding what was released for at most {seconds} seconds.")
    return f"{text} {rest.format(seconds=seconds_until_back(catalogs))} {_publish_again()}"


def _publish_again() -> str:
    return _("Use the action “Publish again to the cache” when the cache can be reached.")
