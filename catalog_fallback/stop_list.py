"""Is an item stopped? Asking the database, which is the truth."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from django.db import Error as DatabaseError
from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from catalog_fallback import after_commit, stop_query
from catalog_fallback.log_events import fields
from catalog_fallback.models import StoppedItem, StoppedItemQuerySet, chunks
from catalog_fallback.queries import Query

logger = logging.getLogger("catalog_fallback")


#: Isolation levels under which every statement sees what is committed.
_FRESH_LEVELS = frozenset({"read committed", "read uncommitted"})
_LEVEL_QUERIES = {
    "postgresql": "SHOW transaction_isolation",
    "mysql": "SELECT @@transaction_isolation",
    "mariadb": "SELECT @@tx_isolation",
}


def database() -> str:
    """Return the alias of the database that holds the stop list and takes its writes."""
    return router.db_for_write(StoppedItem)


def is_stopped(query: Query) -> bool | None:
    """Return whether the database says that the item is stopped; None when it cannot be asked."""
    try:
        return stop_query.is_stopped(query.catalog.alias, query.item_id, database())
    except DatabaseError as error:
        _tell_unreadable(query.catalog.alias, error)
        return None


def ask(catalog: str, item_ids: Sequence[str]) -> Callable[[str], bool | None]:
    """Ask the database about several IDs at once; return what says of each of them what :func:`is_stopped` would."""
    try:
        stopped = {
            item_id
            for chunk in chunks(item_ids)
            for item_id in rows_of(catalog).active().filter(item_id__in=chunk).values_list("item_id", flat=True)
        }
    except DatabaseError as error:
        _tell_unreadable(catalog, error)
        return lambda item_id: None
    return lambda item_id: item_id in stopped


def reason_of(catalog: str, item_id: str) -> str:
    """Return why the item is stopped; "" when it is not, or when the database cannot be asked."""
    try:
        return rows_of(catalog).active().filter(item_id=item_id).values_list("reason", flat=True).first() or ""
    except DatabaseError as error:
        _tell_unreadable(catalog, error)
        return ""


def _tell_unreadable(catalog: str, error: DatabaseError) -> None:
    name = type(error).__name__
    about = fields("stop_list_unreadable", catalog=catalog, reason=name)
    logger.error("The stop list could not be asked about catalog %r: %s", catalog, name, extra=about)


def sees_old_state() -> bool:
    """Whether a query now might miss what others have committed, or see what nobody else sees yet.

    True in a transaction that reads from a snapshot (SQLite, REPEATABLE READ and higher, unknown databases), and in
    one that has itself changed the stop list.
    """
    connection = connections[database()]
    if not is_in_transaction(connection):
        return False
    return after_commit.pending(connection) is not None or not _reads_committed(connection)


def is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Whether what this connection does now can still be rolled back."""
    if connection.connection is None:
        return connection.in_atomic_block
    return connection.in_atomic_block or not connection.autocommit


def _reads_committed(connection: BaseDatabaseWrapper) -> bool:
    vendor = "mariadb" if getattr(connection, "mysql_is_mariadb", False) else connection.vendor
    if vendor not in _LEVEL_QUERIES:
        return False
    try:
        with connection.cursor() as cursor:
            cursor.execute(_LEVEL_QUERIES[vendor])
            (level,) = cursor.fetchone()
    except DatabaseError:
        return False
    return str(level).lower().replace("-", " ") in _FRESH_LEVELS


def rows_of(catalog: str) -> StoppedItemQuerySet:
    """Return the stop list of one catalog, where writes to it go."""
    return StoppedItem.objects.using(database()).filter(catalog=catalog).order_by()
