"""What is a person told once it is committed? Whether the cache has confirmed what they changed.

The admin's views run in a transaction, and publishing follows its commit. So what is told here is found out after the
commit too; the message still gets into the response, since messages are stored when the response leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from django.contrib import messages
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from catalog_fallback import services, stop_list
from catalog_fallback.exceptions import CatalogError, InvalidationFailed
from catalog_fallback.models import StoppedItem, chunks

if TYPE_CHECKING:
    from django.http import HttpRequest


def tell_whether_confirmed(request: HttpRequest, keys: Collection[int]) -> None:
    """After the commit, say how many of these rows the cache has not confirmed; nothing when it has confirmed all."""

    def tell() -> None:
        rows = StoppedItem.objects.using(stop_list.database()).filter(published_at=None).order_by()
        waiting = list(rows.filter(pk__in=list(keys)).values_list("is_active", flat=True))
        if stopped := sum(waiting):
            messages.warning(request, _stopped_text(stopped))
        if released := len(waiting) - stopped:
            messages.warning(request, _released_text(released))

    transaction.on_commit(tell, using=stop_list.database(), robust=True)


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
        except InvalidationFailed as error:
            messages.warning(request, _("The cache did not confirm it: {error}").format(error=error))
            return confirmed
        except CatalogError as error:  # the settings have changed since: nobody can look these up
            messages.warning(request, str(error))
            return confirmed
    return confirmed


def grouped(items: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the IDs of each catalog."""
    by_catalog: dict[str, list[str]] = {}
    for catalog, item_id in items:
        by_catalog.setdefault(catalog, []).append(item_id)
    return by_catalog


def _stopped_text(count: int) -> str:
    return ngettext(
        "%(count)d item is stopped in the database, but not confirmed by the cache; pages may go on showing it until "
        "the cache can be reached. Use the action “Publish again” then.",
        "%(count)d items are stopped in the database, but not confirmed by the cache; pages may go on showing them "
        "until the cache can be reached. Use the action “Publish again” then.",
        count,
    ) % {"count": count}


def _released_text(count: int) -> str:
    return ngettext(
        "%(count)d item is released in the database, but not confirmed by the cache; pages may go on hiding it for a "
        "while. Use the action “Publish again” when the cache can be reached.",
        "%(count)d items are released in the database, but not confirmed by the cache; pages may go on hiding them "
        "for a while. Use the action “Publish again” when the cache can be reached.",
        count,
    ) % {"count": count}
