"""What can an operator do with a source? Take it out, let it in again, close its circuit breaker by hand.

A source that was taken out is a row in the database, so it stays out through restarts and flushed caches. All processes
see a change at once where they share a cache that works, and within a minute where not.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from django.db import transaction

from catalog_fallback import conf
from catalog_fallback.conf.complaints import did_you_mean
from catalog_fallback.fallback import chain_of
from catalog_fallback.models import CatalogSource
from catalog_fallback.stop_list import database

logger = logging.getLogger("catalog_fallback")


class UnknownSource(LookupError):
    """The catalog has no source of that alias."""


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
    logger.warning("Source %r of catalog %r is isolated by an operator.", source, catalog)
    return is_new


def restore_source(catalog: str, source: str) -> bool:
    """Let a source in again; its breaker is as it was. Returns False when it was not out.

    Takes effect and raises as :func:`isolate_source` does.
    """
    _check(catalog, source)
    count, _ = CatalogSource.objects.using(database()).filter(catalog=catalog, source=source).delete()
    if count:
        logger.warning("Source %r of catalog %r is restored by an operator.", source, catalog)
    return bool(count)


def reset_source(catalog: str, source: str) -> bool:
    """Close the circuit breaker of a source and let it count anew, in all processes.

    A cool-down that the source asked for, its rate limit and an isolation stay. Returns False when the cache did not
    take it. Raises UnknownCatalog and UnknownSource.
    """
    _check(catalog, source)
    caller = next((each for each in chain_of[catalog].callers if each.config.alias == source), None)
    return caller is None or caller.guard.reset()


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
