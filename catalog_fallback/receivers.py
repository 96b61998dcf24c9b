"""Who listens? Changed rows of the stop list and of isolated sources, and the site's deletion notices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models.signals import post_delete, post_save, pre_save
from django.dispatch import receiver

from catalog_fallback import invalidations, operating, publishing
from catalog_fallback.models import CatalogSource, StopOrigin, StoppedItem
from catalog_fallback.signals import deletion_notice, stop_list_changed


@receiver(pre_save, sender=StoppedItem, dispatch_uid="catalog_fallback.clean")
def clean_row(instance: StoppedItem, using: str, **_: Any) -> None:
    """Every row, of a fixture too, is stored under the normal form of its ID; what it was before is remembered."""
    instance.clean_identity()
    rows = StoppedItem.objects.using(using).filter(pk=instance.pk)
    instance.identity_before = rows.values_list("catalog", "item_id").first() if instance.pk is not None else None


@receiver(post_save, sender=StoppedItem, dispatch_uid="catalog_fallback.saved")
@receiver(post_delete, sender=StoppedItem, dispatch_uid="catalog_fallback.deleted")
def publish_row(instance: StoppedItem, using: str, **_: Any) -> None:
    """A saved or deleted row goes to the cache; one that changed its ID, with the old one too."""
    identities = {
        (instance.catalog, instance.item_id),
        instance.identity_before or (instance.catalog, instance.item_id),
    }
    changes: dict[str, list[str]] = {}
    for catalog, item_id in sorted(identities):
        changes.setdefault(catalog, []).append(item_id)
    publishing.publish_changes(changes, using=using)


@receiver(stop_list_changed, sender=StoppedItem, dispatch_uid="catalog_fallback.changed")
def publish_rows(changes: Mapping[str, Sequence[str]], using: str, **_: Any) -> None:
    """Rows that were changed in bulk go to the cache."""
    publishing.publish_changes(changes, using=using)


@receiver(post_save, sender=CatalogSource, dispatch_uid="catalog_fallback.isolated")
@receiver(post_delete, sender=CatalogSource, dispatch_uid="catalog_fallback.restored")
def publish_isolation(instance: CatalogSource, using: str, **_: Any) -> None:
    """A source was taken out or let in again: all processes learn of it."""
    operating.publish_isolation(instance.catalog, using=using)


@receiver(deletion_notice, dispatch_uid="catalog_fallback.notice")
def take_notice(
    sender: object,
    *,
    item_id: str | None = None,
    item_ids: Iterable[str] | None = None,
    catalog: str = "default",
    stop: bool | None = None,
    event_at: datetime | None = None,
    **_: Any,
) -> int:
    """Forget or stop what the site says was deleted; return the number of IDs.

    What is raised goes to the sender, who then knows that the notice was not applied.
    """
    if (item_id is None) == (item_ids is None):
        raise TypeError("deletion_notice takes either item_id or item_ids.")
    ids = (item_id,) if item_id is not None else item_ids or ()
    return invalidations.take_notice(ids, catalog=catalog, stop=stop, event_at=event_at, origin=StopOrigin.NOTICE)
