"""What follows when the cache had no answer? A note for later where nobody had one, and the site's own data instead.

The site's own data (FALLBACK) are for this caller alone: they are never kept, and never shown for a stopped item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from catalog_fallback import own_data, stop_list, unanswered
from catalog_fallback.cache import entries_of
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.filling import Fill
from catalog_fallback.queries import Query
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import CacheStatus, Lookup, State

_NO_TIME = Deadline(float("-inf"))


def is_due(config: CatalogConfig, lookup: Lookup) -> bool:
    """Whether anything may follow."""
    return lookup.cache is not CacheStatus.HIT and (config.fallback is not None or config.retry_later)


def of(query: Query, lookup: Lookup) -> Lookup:
    """Do what follows one lookup, and return what its caller gets."""
    if not is_due(query.catalog, lookup):
        return lookup
    return of_many({query.item_id: query}, {query.item_id: lookup})[query.item_id]


def of_many(queries: Mapping[str, Query], lookups: Mapping[str, Lookup]) -> Mapping[str, Lookup]:
    """The same for the lookups of one ``find_items``, by ID."""
    due = [(queries[each], lookup) for each, lookup in lookups.items() if is_due(queries[each].catalog, lookup)]
    if not due:
        return lookups
    config = due[0][0].catalog
    if config.retry_later:
        unanswered.note(due)
    if config.fallback is None:
        return lookups
    helpless = [
        (query, lookup)
        for query, lookup in due
        if lookup.state is State.UNAVAILABLE and lookup.reason != "stop_list_unavailable"
    ]
    return {**lookups, **_degraded(config, helpless)} if helpless else lookups


def _degraded(config: CatalogConfig, helpless: Sequence[tuple[Query, Lookup]]) -> dict[str, Lookup]:
    """Ask the stop list, with one query for all, and give the site's own data to what is not on it."""
    queries = [query for query, _ in helpless]
    is_old_view = stop_list.sees_old_state()
    entries = entries_of[config.alias]
    # Only whoever may not see what is committed has to believe the mark of the gate.
    gates = [kept.gate for kept in entries.look_many(queries)] if is_old_view else [None] * len(queries)
    said = stop_list.ask(config.alias, [query.item_id for query in queries])
    found = {}
    for (query, lookup), gate in zip(helpless, gates, strict=True):
        fill = Fill(query, entries, _NO_TIME, is_old_view)
        refused = fill.refused(gate, is_stopped=said(query.item_id))
        found[query.item_id] = _with_own_data(config, lookup) if refused is None else refused
    return found


def _with_own_data(config: CatalogConfig, lookup: Lookup) -> Lookup:
    item = own_data.of(config, lookup)
    if item is None:
        return lookup
    return Lookup(
        lookup.item_id,
        lookup.catalog,
        lookup.state,
        lookup.reason,
        item,
        trace=lookup.trace,
        degraded=True,
        retry_after=lookup.retry_after,
    )
