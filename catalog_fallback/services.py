"""The public verbs: look up, forget, stop.

Lookups return values; only bad arguments raise. Invalidations raise when they are not confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from catalog_fallback import (
    aftermath,
    aio,
    batches,
    clock,
    conf,
    explaining,
    publishing,
    refresh_ahead,
    stop_events,
    trips,
)
from catalog_fallback.batches import Lookups, past_deadline
from catalog_fallback.cache import EntryCache, entries_of
from catalog_fallback.entry_form import Kept
from catalog_fallback.guarding import guarded
from catalog_fallback.guards import NOT_SET
from catalog_fallback.item_ids import clean_ids, several
from catalog_fallback.models import StopOrigin, StopReason
from catalog_fallback.off_loop import Pool, in_thread
from catalog_fallback.resilience.time_budget import Deadline, checked_budget, deadline, is_used_up, time_budget
from catalog_fallback.results import Explanation, Lookup
from catalog_fallback.signals import lookup_finished

__all__ = [
    "NOT_SET",
    "afind_item",
    "afind_items",
    "explain_item",
    "find_item",
    "find_items",
    "guarded",
    "invalidate_item",
    "invalidate_items",
    "invalidating",
    "release_item",
    "release_items",
    "stop_item",
    "stop_items",
    "time_budget",
]


def find_item(
    item_id: str,
    *,
    catalog: str = "default",
    language: str | None = None,
    vary: Mapping[str, str] | None = None,
    budget: float | timedelta | None = None,
    refresh: bool = False,
) -> Lookup:
    """Look one item up: from the cache, else from the catalog's sources in order.

    ``language`` and ``vary`` (names that the sources' URLs use → values) are part of what is asked and of the cache
    key. ``budget`` limits the whole lookup, in seconds; None takes the catalog's BUDGET. ``refresh`` skips the cached
    entry, but not the stop list.

    Returns a :class:`~catalog_fallback.results.Lookup`, whatever an upstream or the cache does. Raises InvalidItemID,
    UnknownCatalog, and ValueError for a bad budget, language or vary.
    """
    started_at = clock.monotonic()
    entries = entries_of[catalog] if type(catalog) is str else _entries(catalog)
    seconds = entries.config.budget if budget is None else checked_budget(budget)
    query = entries.query(item_id, language, vary)
    if is_used_up(started_at):
        found: Lookup | Kept = aftermath.of(query, past_deadline(query))
    else:
        found = entries.look(query) if refresh else entries.read(query)
    if not isinstance(found, Lookup):
        found = aftermath.of(query, trips.look_up(query, found, deadline(seconds, started_at), refresh=refresh))
    entries.note(found)
    if entries.config.refresh_ahead:
        refresh_ahead.notice(query, found)
    if lookup_finished.receivers:
        _announce(found, started_at)
    return found


def find_items(
    item_ids: Iterable[str],
    *,
    catalog: str = "default",
    language: str | None = None,
    vary: Mapping[str, str] | None = None,
    budget: float | timedelta | None = None,
    refresh: bool = False,
) -> dict[str, Lookup]:
    """Look several items up: all hits in one round trip, misses side by side, inside one budget.

    Arguments are those of :func:`find_item`. Returns the lookups by ID in its normal form, in the order asked,
    duplicates folded; asked for an ID as it was given, the dict finds it too. A bad ID raises InvalidItemID before any
    work.
    """
    seconds = _seconds(catalog, budget)
    started_at = clock.monotonic()
    return _find_items(item_ids, catalog, language, vary, refresh, started_at, deadline(seconds, started_at))


async def afind_item(
    item_id: str,
    *,
    catalog: str = "default",
    language: str | None = None,
    vary: Mapping[str, str] | None = None,
    budget: float | timedelta | None = None,
    refresh: bool = False,
) -> Lookup:
    """:func:`find_item` for asyncio: never blocks the event loop, and may be cancelled at any time."""
    started_at = clock.monotonic()
    entries = entries_of[catalog] if type(catalog) is str else _entries(catalog)
    seconds = entries.config.budget if budget is None else checked_budget(budget)
    query = entries.query(item_id, language, vary)
    if is_used_up(started_at):
        found = past_deadline(query)
    else:
        found = await aio.look_up(query, deadline(seconds, started_at), refresh=refresh)
    if aftermath.is_due(entries.config, found):
        found = await in_thread(partial(aftermath.of, query, found), pool=Pool.READING) or found
    entries.note(found)
    if entries.config.refresh_ahead:
        refresh_ahead.notice(query, found)
    if lookup_finished.receivers:
        await in_thread(partial(_announce, found, started_at), pool=Pool.WAITING)
    return found


async def afind_items(
    item_ids: Iterable[str],
    *,
    catalog: str = "default",
    language: str | None = None,
    vary: Mapping[str, str] | None = None,
    budget: float | timedelta | None = None,
    refresh: bool = False,
) -> dict[str, Lookup]:
    """:func:`find_items` for asyncio: never blocks the event loop, and may be cancelled at any time."""
    seconds = _seconds(catalog, budget)
    started_at = clock.monotonic()
    until = deadline(seconds, started_at)
    ids = list(several(item_ids))
    find = partial(_find_items, ids, catalog, language, vary, refresh, started_at, until)
    found = await in_thread(find, until, Pool.WAITING)
    # Without a free thread the time is over now, and it asks nobody any more.
    return await in_thread(find, pool=Pool.READING) or {} if found is None else found


def _seconds(catalog: str, budget: float | timedelta | None) -> float:
    return conf.catalog(catalog).budget if budget is None else checked_budget(budget)


def _find_items(
    item_ids: Iterable[str],
    catalog: str,
    language: str | None,
    vary: Mapping[str, str] | None,
    refresh: bool,
    started_at: float,
    until: Deadline,
) -> dict[str, Lookup]:
    entries = _entries(catalog)
    queries = {query.item_id: query for query in (entries.query(each, language, vary) for each in several(item_ids))}
    found = aftermath.of_many(queries, batches.look_up(queries, until, refresh=refresh))
    lookups = Lookups(entries.config, queries, found)
    for lookup in lookups.values():
        entries.note(lookup)
    for lookup in lookups.values() if lookup_finished.receivers else ():
        _announce(lookup, started_at)
    return lookups


def _announce(lookup: Lookup, started_at: float) -> None:
    lookup_finished.send_robust(Lookup, lookup=lookup, elapsed=clock.monotonic() - started_at)


def explain_item(
    item_id: str,
    *,
    catalog: str = "default",
    language: str | None = None,
    vary: Mapping[str, str] | None = None,
) -> Explanation:
    """Say what a lookup would meet now: stop list, cached entry, sources. Nobody is called and no permit is taken.

    ``is_stopped`` is None when the database cannot be asked. Raises what :func:`find_item` raises for bad arguments.
    """
    return explaining.explain(_entries(catalog).query(item_id, language, vary))


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
    clean_id = clean_ids((item_id,), catalog)[0]
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

    ``event_at`` (aware; None is now) orders events: one that is older than what is known of an ID changes nothing.
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


def _entries(catalog: str) -> EntryCache:
    """The entries of a catalog; also refuses what no dict takes as a key, a list say."""
    return entries_of[conf.catalog(catalog).alias]
