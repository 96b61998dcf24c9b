"""The public verbs: look up, explain, forget, stop, guard.

Lookups return values; only bad arguments raise. Invalidations raise when they are not confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial

from catalog_fallback import (
    aftermath,
    aio,
    batches,
    clock,
    conf,
    explaining,
    refresh_ahead,
    trips,
)
from catalog_fallback.batches import Lookups, past_deadline
from catalog_fallback.cache import EntryCache, entries_of
from catalog_fallback.entry_form import Kept
from catalog_fallback.guarding import guarded
from catalog_fallback.guards import NOT_SET
from catalog_fallback.invalidations import (
    invalidate_item,
    invalidate_items,
    invalidating,
    release_item,
    release_items,
    stop_item,
    stop_items,
)
from catalog_fallback.item_ids import several
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
        await in_thread(partial(_announce, found, started_at), pool=Pool.TELLING)
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


def _entries(catalog: str) -> EntryCache:
    """The entries of a catalog; also refuses what no dict takes as a key, a list say."""
    return entries_of[conf.catalog(catalog).alias]
