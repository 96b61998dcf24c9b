"""What is kept of a search, and for how long?"""

from __future__ import annotations

import random
from collections.abc import Callable

from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.entry_form import Entry
from catalog_fallback.fallback import Search
from catalog_fallback.results import State


def entry_of(
    search: Search, config: CatalogConfig, *, is_checked: bool = True, chance: Callable[[], float] = random.random
) -> Entry | None:
    """Return the entry that keeps a definite result, None when it must not be kept.

    The upstream's ``max-age`` shortens the life and never lengthens it; TTL_JITTER shortens that of a found item by a
    random part of it, so that what was fetched together does not expire together.
    """
    ttl = config.ttl if search.state is State.FOUND else config.negative_ttl
    if search.directives.ttl is not None:
        ttl = min(ttl, search.directives.ttl)
    if search.state is State.UNAVAILABLE or ttl <= 0 or not search.directives.may_store:
        return None
    expires_at = search.fetched_at + ttl
    if search.state is not State.FOUND:
        return Entry(search.state, search.fetched_at, expires_at, expires_at, is_checked=is_checked)
    expires_at -= ttl * config.ttl_jitter * chance()
    stale_until = expires_at + (config.stale_if_error if search.directives.may_serve_stale else 0.0)
    return Entry(State.FOUND, search.fetched_at, expires_at, stale_until, search.source, search.item, is_checked)
