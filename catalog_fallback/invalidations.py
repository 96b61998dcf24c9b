"""How is an item forgotten, stopped or released? The public verbs for it, and what a deletion notice means.

They raise when what they do is not confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from catalog_fallback import conf, publishing, stop_events
from catalog_fallback.item_ids import clean_ids
from catalog_fallback.models import StopOrigin, StopReason


def invalidate_item(item_id: str, *, catalog: str = "default", reason: str = "") -> int:
    """Forget one item, in every language and variant; see :func:`invalidate_items`."""
    return invalidate_items((item_id,), catalog=catalog, reason=reason)


def invalidate_items(item_ids: Iterable[str], *, catalog: str = "default", reason: str = "") -> int:
    """Forget items, in every language and variant; fetches in flight are not kept either.

    Works at once, inside a transaction too. Returns the number of different IDs. Raises InvalidItemID before anything
    is forgotten, UnknownCatalog, and InvalidationFailed when the cache did not confirm or the stop list could not be
    read.
    """
    ids = clean_ids(item_ids, catalog)
    if ids:
        publishing.publish(catalog, ids, reason=reason)
    return len(ids)


@contextmanager
def invalidating(item_id: str, *, catalog: str = "default", reason: str = "") -> Iterator[None]:
    """Forget the item on leaving the block, also when the block raises: the write may have been applied.

    If forgetting fails, InvalidationFailed is raised, chained to the block's own exception.
    """
    clean_id = conf.catalog(catalog).clean_id(item_id)
    try:
        yield
    finally:
        invalidate_item(clean_id, catalog=catalog, reason=reason)


def stop_item(
    item_id: str,
    *,
    catalog: str = "default",
    reason: str = StopReason.WITHDRAWN,
    note: str = "",
    event_at: datetime | None = None,
) -> int:
    """Put one item on the stop list; see :func:`stop_items`."""
    return stop_items((item_id,), catalog=catalog, reason=reason, note=note, event_at=event_at)


def stop_items(
    item_ids: Iterable[str],
    *,
    catalog: str = "default",
    reason: str = StopReason.WITHDRAWN,
    note: str = "",
    event_at: datetime | None = None,
    origin: str = StopOrigin.CODE,
    stopped_by_id: Any = None,
) -> int:
    """Put items on the stop list: they are neither fetched nor shown, whatever a cache or a source still holds.

    ``event_at`` (aware) orders events: one that is older than what is known of an ID changes nothing. None is now, and
    later than all that is known: a host whose clock is ahead cannot keep a stop from being one.
    Published at once outside a transaction, after the commit inside one. Returns how many IDs changed.

    Raises InvalidItemID and ValueError before anything is written, UnknownCatalog, and, outside a transaction,
    InvalidationFailed when the cache did not confirm it; the rows stay and can be published again.
    """
    event = stop_events.make(
        catalog,
        is_active=True,
        reason=reason,
        note=note,
        event_at=event_at,
        origin=origin,
        stopped_by_id=stopped_by_id,
    )
    return stop_events.apply(event, clean_ids(item_ids, catalog))


def release_item(item_id: str, *, catalog: str = "default", note: str = "", event_at: datetime | None = None) -> int:
    """Take one item off the stop list; see :func:`release_items`."""
    return release_items((item_id,), catalog=catalog, note=note, event_at=event_at)


def release_items(
    item_ids: Iterable[str],
    *,
    catalog: str = "default",
    note: str = "",
    event_at: datetime | None = None,
    origin: str = StopOrigin.CODE,
    stopped_by_id: Any = None,
) -> int:
    """Take items off the stop list; their rows stay, inactive, so that older events which arrive late change nothing.

    Arguments, result and exceptions are those of :func:`stop_items`. An ID that was not stopped counts too: its release
    is remembered.
    """
    event = stop_events.make(
        catalog, is_active=False, note=note, event_at=event_at, origin=origin, stopped_by_id=stopped_by_id
    )
    return stop_events.apply(event, clean_ids(item_ids, catalog))


def take_notice(
    item_ids: Iterable[str],
    *,
    catalog: str = "default",
    stop: bool | None = None,
    reason: str = StopReason.WITHDRAWN,
    note: str = "",
    event_at: datetime | None = None,
    origin: str = StopOrigin.NOTICE,
) -> int:
    """Apply a deletion notice: stop the items or forget them. ``stop`` None does what ON_DELETED says.

    ``reason`` and ``note`` are those of a stop. Returns the number of different IDs; raises what :func:`stop_items` and
    :func:`invalidate_items` raise.
    """
    is_stop = conf.catalog(catalog).on_deleted == "stop" if stop is None else stop
    ids = clean_ids(item_ids, catalog)
    if is_stop:
        stop_items(ids, catalog=catalog, reason=reason, note=note, event_at=event_at, origin=origin)
    else:
        invalidate_items(ids, catalog=catalog, reason="deleted")
    return len(ids)
