"""How are many items looked up at once? Hits in one round trip, misses side by side inside one budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar, overload

from catalog_fallback import refresh_ahead
from catalog_fallback.cache import entries_of
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import InvalidItemID
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


T = TypeVar("T")


class Lookups(dict[str, Lookup]):
    """Lookups by ID in its normal form, in the order asked; an ID as it was typed finds its lookup too."""

    def __init__(self, catalog: CatalogConfig, order: Iterable[str], lookups: Mapping[str, Lookup]) -> None:
        super().__init__((item_id, lookups[item_id]) for item_id in order)
        self._catalog = catalog

    def __missing__(self, item_id: str) -> Lookup:
        lookup = self._as_it_was_typed(item_id)
        if lookup is None:
            raise KeyError(item_id)
        return lookup

    def __contains__(self, item_id: object) -> bool:
        return super().__contains__(item_id) or self._as_it_was_typed(item_id) is not None

    @overload
    def get(self, item_id: str, default: None = None, /) -> Lookup | None: ...
    @overload
    def get(self, item_id: str, default: Lookup | T, /) -> Lookup | T: ...
    def get(self, item_id: str, default: object = None, /) -> object:
        """Return the lookup of an ID, however it was typed, else the default."""
        found = super().get(item_id) or self._as_it_was_typed(item_id)
        return default if found is None else found

    def _as_it_was_typed(self, item_id: object) -> Lookup | None:
        if not isinstance(item_id, str):
            return None
        try:
            return super().get(self._catalog.clean_id(item_id))
        except InvalidItemID:
            return None
