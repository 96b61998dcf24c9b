"""What would a lookup meet now? Looking at everything that it would look at, without calling anybody."""

from __future__ import annotations

from catalog_fallback import clock, stop_list
from catalog_fallback.cache import entries_of
from catalog_fallback.entry_form import hit
from catalog_fallback.fallback import chain_of
from catalog_fallback.queries import Query
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.results import Explanation, SourceExplanation


def explain(query: Query) -> Explanation:
    """Return what is known of the stop list, the cached entry and the sources. No permit is taken."""
    catalog = query.catalog.alias
    entry = entries_of[catalog].look(query).entry
    chain = chain_of[catalog]
    outlook = chain.look()
    sources = tuple(_explained(caller.config.alias, caller.refusal(outlook)) for caller in chain.callers)
    kept = hit(query, entry) if entry is not None and entry.expires_at > clock.wall() else None
    return Explanation(query.item_id, catalog, stop_list.is_stopped(query), kept, sources)


def _explained(alias: str, refusal: Refusal | None) -> SourceExplanation:
    if refusal is None:
        return SourceExplanation(alias, True, "ok")
    return SourceExplanation(alias, False, refusal.reason, refusal.retry_after)
