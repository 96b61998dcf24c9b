"""What can an operator do with a source? Take it out, let it in again, close its circuit breaker by hand.

A source that was taken out is a row in the database, so it stays out through restarts and flushed caches. All processes
see a change at once where they share a cache that works, and within a minute where not.
"""

from __future__ import annotations

import logging
from enum import Enum
from functools import partial
from typing import Any

from django.db import Error as DatabaseError
from django.db import transaction

from catalog_fallback import clock, conf
from catalog_fallback.cache import store_of
from catalog_fallback.conf.complaints import did_you_mean
from catalog_fallback.fallback import chain_of
from catalog_fallback.log_events import fields
from catalog_fallback.models import CatalogSource
from catalog_fallback.resilience.views import View
from catalog_fallback.stop_list import database

logger = logging.getLogger("catalog_fallback")


class UnknownSource(LookupError):
    """The catalog has no source of that alias."""


class Reach(Enum):
    """Who knows of what an operator has isolated: everybody at once, or other processes within COPY_LIFE seconds."""

    EVERYBODY = "everybody"
    #: The cache belongs to this process alone.
    THIS_PROCESS = "this process"
    #: The cache did not confirm it.
    NOT_CONFIRMED = "not confirmed"


def isolate_source(catalog: str, source: str, reason: str = "", isolated_by_id: Any = None) -> bool:
    """Take a source out: nobody calls it until it is restored, whatever its timers and results say.

    Takes effect at once outside a transaction, after the commit inside one. ``isolated_by_id`` is the primary key of a
    user. Returns False when it was out already; reason and user are then replaced, and since when stays. Raises
    UnknownCatalog, UnknownSource, and what the database raises.
    """
    _check(catalog, source)
    rows = CatalogSource.objects.using(database())
    said = {"reason": reason, "isolated_by_id": isolated_by_id}
    _, is_new = rows.update_or_create(catalog=catalog, source=source, defaults=said)
    old = "in_use" if is_new else "isolated"
    about = fields("source_isolated", catalog=catalog, source=source, old=old, new="isolated", reason=reason)
    logger.warning("Source %r of catalog %r is isolated by an operator.", source, catalog, extra=about)
    return is_new


def restore_source(catalog: str, source: str) -> bool:
    """Let a source in again; its breaker is as it was. Returns False when it was not out.

    Takes effect and raises as :func:`isolate_source` does. A row that is left of a source which the settings do not
    have any more goes too: it would take a new source of that name out.
    """
    count, _ = CatalogSource.objects.using(database()).filter(catalog=catalog, source=source).delete()
    if not count:
        _check(catalog, source)
    else:
        about = fields("source_restored", catalog=catalog, source=source, old="isolated", new="in_use", reason="")
        logger.warning("Source %r of catalog %r is restored by an operator.", source, catalog, extra=about)
    return bool(count)


def reset_source(catalog: str, source: str) -> bool:
    """Close the circuit breaker of a source and let it count anew, in all processes.

    A cool-down that the source asked for, its rate limit and an isolation stay. Returns False when the cache did not
    take it. Raises UnknownCatalog and UnknownSource.
    """
    _check(catalog, source)
    caller = next((each for each in chain_of[catalog].callers if each.config.alias == source), None)
    return caller is None or caller.guard.reset()


def reach_of(catalog: str) -> Reach:
    """Return who knows now, after a commit, what is isolated of a catalog. Reads back; raises UnknownCatalog."""
    chain = chain_of[catalog]
    if is_per_process(catalog):
        return Reach.THIS_PROCESS
    try:
        isolated = chain.isolation.ask()
    except DatabaseError:
        return Reach.NOT_CONFIRMED
    view = View(chain.stores.shared, chain.stores.shared.get_many(chain.isolation.keys), clock.monotonic())
    return Reach.EVERYBODY if chain.isolation.is_copied(view, isolated) else Reach.NOT_CONFIRMED


def is_per_process(catalog: str) -> bool:
    """Whether the state of a catalog's guards is this process's own. Raises UnknownCatalog."""
    return store_of[conf.catalog(catalog).state_cache].is_local


def is_known(catalog: str, source: str | None = None) -> bool:
    """Whether the settings have the catalog, and in it the source where one is named."""
    config = conf.catalogs().get(catalog)
    return config is not None and (source is None or source in [each.alias for each in config.all_sources])


def has_breaker(catalog: str, source: str) -> bool:
    """Whether there is a circuit breaker to reset: not where the settings give none, or switch the source off."""
    return any(each.alias == source and each.breaker is not None for each in conf.catalog(catalog).sources)


def publish_isolation(catalog: str, *, using: str) -> None:
    """Copy to the cache which sources of a catalog are out, when what changed that is committed.

    A failure is logged; without a new copy, processes ask the database when the old one's time is over.
    """
    transaction.on_commit(partial(_copy, catalog), using=using, robust=True)


def _copy(catalog: str) -> None:
    if catalog in conf.catalogs():
        chain = chain_of[catalog]
        chain.isolation.publish((chain.stores.shared, chain.stores.local))


def _check(catalog: str, source: str) -> None:
    known = [each.alias for each in conf.catalog(catalog).all_sources]
    if source not in known:
        raise UnknownSource(f"Catalog {catalog!r} has no source {source!r}. {did_you_mean(source, known)}")
