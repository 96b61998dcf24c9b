"""How do the sources stand now? All that an operator is shown; nobody is called, no permit taken, nothing written.

All catalogs whose guards share a cache are read in one round trip, and all rows of the database with one query.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import Error as DatabaseError

from catalog_fallback import conf
from catalog_fallback.cache import store_of
from catalog_fallback.calling import Caller
from catalog_fallback.configuration import CatalogConfig, GuardConfig, SourceConfig
from catalog_fallback.fallback import Chain, chain_of
from catalog_fallback.guards import guards_of
from catalog_fallback.hit_counts import Answered
from catalog_fallback.models import CatalogSource
from catalog_fallback.resilience.guard import GuardStatus
from catalog_fallback.resilience.store import Store
from catalog_fallback.resilience.views import View, read
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
class OtherGuard:
    """One guard of GUARDS, which stands around calls that are no lookups: its settings and its state."""

    config: GuardConfig
    guard: GuardStatus


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    """One catalog. ``is_shared``: other processes see the same state; ``answers``: the cache that holds it works.

    Without an answer, what is shown is what this process knows by itself. ``disabled`` are the sources that the
    settings switch off, ``disabled_rows`` the operator's rows of those of them that are isolated as well. ``guards``
    are those of GUARDS.
    """

    config: CatalogConfig
    is_shared: bool
    answers: bool
    sources: tuple[SourceStatus, ...]
    waits: Waits
    answered: Answered
    disabled: tuple[SourceConfig, ...] = ()
    disabled_rows: tuple[CatalogSource, ...] = ()
    guards: tuple[OtherGuard, ...] = ()


@dataclass(frozen=True, slots=True)
class Overview:
    """All catalogs of the settings. ``left_behind``: rows of sources that the settings do not have (any more).

    ``database_answers`` is False when nobody can tell who isolated what, and why.
    """

    catalogs: tuple[CatalogStatus, ...]
    left_behind: tuple[CatalogSource, ...] = ()
    database_answers: bool = True


def status_of(catalog: str) -> CatalogStatus:
    """Return how a catalog stands. Raises UnknownCatalog; a cache or database in trouble only leaves gaps."""
    conf.catalog(catalog)
    return overview((catalog,)).catalogs[0]


def overview(aliases: Iterable[str] | None = None) -> Overview:
    """Return how these catalogs stand, all of the settings by default.

    Raises UnknownCatalog, and ImproperlyConfigured for wrong settings; a cache or database in trouble leaves gaps.
    """
    chains = [chain_of[alias] for alias in (conf.catalogs() if aliases is None else aliases)]
    views = _views(chains)
    rows = _rows()
    catalogs = tuple(_catalog(chain, views[chain.config.alias], rows) for chain in chains)
    known = {(config.alias, each.alias) for config in conf.catalogs().values() for each in config.all_sources}
    left = tuple(row for name, row in (rows or {}).items() if name not in known)
    return Overview(catalogs, left, rows is not None)


_Rows = Mapping[tuple[str, str], CatalogSource]


def _catalog(chain: Chain, view: View, rows: _Rows | None) -> CatalogStatus:
    config = chain.config
    own = {source: row for (catalog, source), row in (rows or {}).items() if catalog == config.alias}
    # What the database says is what counts in a minute at the latest; only without it the copies have to do.
    isolated = chain.isolation.copied(view) if rows is None else own.keys()
    disabled = tuple(source for source in config.all_sources if not source.enabled)
    store = store_of[config.state_cache]
    return CatalogStatus(
        config,
        is_shared=not store.is_local,
        answers=not store.is_in_trouble,
        sources=tuple(
            _source(caller, view, own, is_isolated=caller.config.alias in isolated) for caller in chain.callers
        ),
        waits=waits_of(config),
        answered=chain.hit_counts.of(view.found),
        disabled=disabled,
        disabled_rows=tuple(own[source.alias] for source in disabled if source.alias in own),
        guards=_other_guards(config.alias, view),
    )


def _source(caller: Caller, view: View, rows: Mapping[str, CatalogSource], *, is_isolated: bool) -> SourceStatus:
    guard = caller.guard.status(view, is_isolated=is_isolated)
    return SourceStatus(caller.config, guard, caller.statistics.of(view.found), rows.get(caller.config.alias))


def _other_guards(catalog: str, view: View) -> tuple[OtherGuard, ...]:
    guards = guards_of[catalog]
    found = guards.configured()
    if found and guards.stores.now is not view.store:  # each stands in for a store in trouble by itself
        view = guards.stores.read([guard for _, guard in found])
    return tuple(OtherGuard(config, guard.status(view)) for config, guard in found)


def _views(chains: Sequence[Chain]) -> dict[str, View]:
    """Return what the stores hold of each catalog: one read of each store, and another of those that stand in."""
    views: dict[str, View] = {}
    for store, some in _by_store(chains):
        view = _read(store, some)
        # A store whose trouble came out only now is left alone: what this process knows by itself is shown.
        views |= {
            each.config.alias: view if each.stores.now is store else _read(each.stores.now, (each,)) for each in some
        }
    return views


def _by_store(chains: Sequence[Chain]) -> Iterable[tuple[Store, list[Chain]]]:
    stores: dict[int, tuple[Store, list[Chain]]] = {}
    for chain in chains:
        store = chain.stores.now
        stores.setdefault(id(store), (store, []))[1].append(chain)
    return stores.values()


def _read(store: Store, chains: Sequence[Chain]) -> View:
    readers = [caller.guard.patterns(store) for chain in chains for caller in chain.callers]
    others = [guards_of[chain.config.alias] for chain in chains]
    readers += [guard.patterns(store) for each in others if each.stores.now is store for _, guard in each.configured()]
    more = [key for chain in chains for key in (*chain.isolation.keys, *chain.hit_counts.keys())]
    # Figures are kept in the store that is shared, and in no other.
    counted = (caller.statistics for chain in chains if store is chain.stores.shared for caller in chain.callers)
    return read(store, readers, (*more, *itertools.chain.from_iterable(each.keys() for each in counted)))


def _rows() -> _Rows | None:
    """Return the operator's rows by catalog and source; None when the database does not answer."""
    try:
        rows = CatalogSource.objects.using(database()).select_related("isolated_by")
        return {(row.catalog, row.source): row for row in rows}
    except DatabaseError:
        return None
