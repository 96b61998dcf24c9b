"""How are many items looked up at once? Hits in one round trip, misses side by side inside one budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from catalog_fallback import refresh_ahead
from catalog_fallback.cache import entries_of
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.misses import Misses
from catalog_fallback.queries import Query
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup, State


def look_up(queries: Mapping[str, Query], deadline: Deadline, *, refresh: bool) -> Mapping[str, Lookup]:
    """Answer queries of one catalog, by ID: hits in one round trip, the others as a batch."""
    if not queries:
        return {}
    asked = list(queries.values())
    catalog = asked[0].catalog
    if deadline.has_passed:
        return {query.item_id: past_deadline(query) for query in asked}
    entries = entries_of[catalog.alias]
    found = entries.look_many(asked) if refresh else entries.read_many(asked)
    lookups = {query.item_id: each for query, each in zip(asked, found, strict=True) if isinstance(each, Lookup)}
    misses = [(query, each) for query, each in zip(asked, found, strict=True) if not isinstance(each, Lookup)]
    if misses:
        batch = Misses(catalog.alias, deadline, refresh=refresh)
        batch.look_up(misses)
        lookups |= batch.lookups
    if catalog.refresh_ahead:
        for query in asked:
            refresh_ahead.notice(query, lookups[query.item_id])
    return lookups


def past_deadline(query: Query) -> Lookup:
    """Return the answer to a lookup whose time was over before it began."""
    return Lookup(query.item_id, query.catalog.alias, State.UNAVAILABLE, "deadline")


class Lookups(dict[str, Lookup]):
    """Lookups by ID in its normal form, in the order asked; an ID as it was typed finds its lookup too."""

    def __init__(self, catalog: CatalogConfig, order: Iterable[str], lookups: Mapping[str, Lookup]) -> None:
        super().__init__((item_id, lookups[item_id]) for item_id in order)
        self._catalog = catalog

    def __missing__(self, item_id: str) -> Lookup:
        clean_id = self._catalog.clean_id(item_id)
        if clean_id == item_id or clean_id not in self:
            raise KeyError(item_id)
        return self[clean_id]
