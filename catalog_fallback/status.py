"""How do the sources of a catalog stand now? All that an operator is shown; nobody is called, no permit taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import Error as DatabaseError

from catalog_fallback import conf
from catalog_fallback.cache import store_of
from catalog_fallback.calling import Caller, Outlook
from catalog_fallback.configuration import CatalogConfig, SourceConfig
from catalog_fallback.fallback import chain_of
from catalog_fallback.models import CatalogSource
from catalog_fallback.resilience.guard import GuardStatus
from catalog_fallback.statistics import Figures
from catalog_fallback.stop_list import database
from catalog_fallback.waits import Waits, waits_of


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source: its settings, its guard, and its calls lately. ``isolated`` is the operator's row, if there is one.

    ``guard.reason`` and ``guard.since`` are the breaker's; those of an isolation are in the row.
    """

    config: SourceConfig
    guard: GuardStatus
    figures: Figures
    isolated: CatalogSource | None = None


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    """One catalog. ``is_shared``: other processes see the same state; ``answers``: the cache that holds it works.

    Without an answer, what is shown is what this process knows by itself.
    """

    config: CatalogConfig
    is_shared: bool
    answers: bool
    sources: tuple[SourceStatus, ...]
    waits: Waits


def status_of(catalog: str) -> CatalogStatus:
    """Return how a catalog stands. Raises UnknownCatalog; a cache or database in trouble only leaves gaps."""
    config, chain = conf.catalog(catalog), chain_of[catalog]
    store = store_of[config.state_cache]
    outlook = chain.look()
    rows = _rows(config)
    sources = tuple(_source(caller, outlook, rows) for caller in chain.callers)
    return CatalogStatus(config, not store.is_local, not store.is_in_trouble, sources, waits_of(config))


def _source(caller: Caller, outlook: Outlook, rows: Mapping[str, CatalogSource]) -> SourceStatus:
    alias = caller.config.alias
    guard = caller.guard.status(outlook.view, is_isolated=alias in outlook.isolated)
    return SourceStatus(caller.config, guard, caller.statistics.read(), rows.get(alias))


def _rows(config: CatalogConfig) -> Mapping[str, CatalogSource]:
    rows = CatalogSource.objects.using(database()).filter(catalog=config.alias).select_related("isolated_by")
    try:
        return {row.source: row for row in rows}
    except DatabaseError:
        return {}
