"""Is an item stopped, and how does everybody learn of it? Asking the database, publishing to the cache.

The database is the truth; the gate in the cache tells everybody that something changed. A publish counts only when
reading back returns the very token that it wrote, and when the database still says the same afterwards.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from django.db import Error as DatabaseError
from django.db import connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from catalog_fallback import clock, signals, stop_query
from catalog_fallback.cache import EntryCache, entries_of
from catalog_fallback.entry_form import is_marked, new_token
from catalog_fallback.exceptions import InvalidationFailed, gettext_noop
from catalog_fallback.log_events import fields
from catalog_fallback.models import StoppedItem, StoppedItemQuerySet, chunks
from catalog_fallback.queries import Query

logger = logging.getLogger("catalog_fallback")

#: Seconds between the tries of a publish; after the last one it has failed.
PAUSES = (0.05, 0.1, 0.2, 0.3, 0.35)
#: Seconds after which no third or later try begins, however long the cache took for each.
TRY_FOR = 1.0
#: How many gates are written and read back at a time: fewer than a small local-memory cache throws away at once.
PUBLISHED_AT_ONCE = 100
#: How many rows of earlier, unconfirmed publishes the next one takes along.
TAKEN_ALONG = 500

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
            for item_id in _rows(catalog).active().filter(item_id__in=chunk).values_list("item_id", flat=True)
        }
    except DatabaseError as error:
        _tell_unreadable(catalog, error)
        return lambda item_id: None
    return lambda item_id: item_id in stopped


def reason_of(catalog: str, item_id: str) -> str:
    """Return why the item is stopped; "" when it is not, or when the database cannot be asked."""
    try:
        return _rows(catalog).active().filter(item_id=item_id).values_list("reason", flat=True).first() or ""
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
    if not _in_transaction(connection):
        return False
    return _pending(connection) is not None or not _reads_committed(connection)


def publish(catalog: str, item_ids: Sequence[str], *, reason: str = "") -> None:
    """Give every ID a new gate, which invalidates all its variants and every fetch in flight, and mark the stopped.

    IDs are in their normal form. Rows of the stop list that an earlier publish could not confirm are taken along.
    Raises InvalidationFailed when the cache did not confirm all of them or the stop list could not be read; what was
    confirmed stays invalidated.
    """
    entries = entries_of[catalog]
    keeps_marks = sees_old_state()
    if keeps_marks and connections[database()].in_atomic_block:
        _publish_after_commit(connections[database()], {catalog: item_ids}, reason)
    _publish_all(entries, item_ids, reason, keeps_marks=keeps_marks)
    if not _in_transaction(connections[database()]):
        _take_along(entries, set(item_ids))


def publish_changes(changes: Mapping[str, Sequence[str]], *, using: str, reason: str = "") -> None:
    """Publish changed rows of the stop list: at once outside a transaction, else after its commit.

    Raises InvalidationFailed outside a transaction; the rows stay. After a commit a failure is logged as an error, and
    the rows are shown as not confirmed.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        _publish_after_commit(connection, changes, reason)
        return
    if _in_transaction(connection):
        raise InvalidationFailed(
            "This connection is in a transaction begun by hand (set_autocommit(False)), whose end nobody tells us: use "
            "transaction.atomic(). The rows can be published again once they are committed."
        )
    failures = []
    for catalog, item_ids in changes.items():
        try:
            publish(catalog, item_ids, reason=reason)
        except InvalidationFailed as error:
            failures.append(error)
    if failures:
        raise failures[0]


class _PublishAfterCommit:
    """What a transaction has to publish once it is committed; that it is there says that something was changed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.changes: dict[str, set[str]] = defaultdict(set)
        self.__qualname__ = type(self).__qualname__

    def __call__(self) -> None:
        for catalog, item_ids in self.changes.items():
            try:
                publish(catalog, sorted(item_ids), reason=self.reason)
            except Exception:
                about = fields("invalidation_failed", catalog=catalog, reason=self.reason, items=len(item_ids))
                text = "Catalog %r: the cache did not confirm a committed change of the stop list."
                logger.exception(text, catalog, extra=about)


def _publish_after_commit(connection: BaseDatabaseWrapper, changes: Mapping[str, Iterable[str]], reason: str) -> None:
    """Add to what the transaction publishes already, unless a savepoint has begun since: it may be rolled back."""
    pending = _pending(connection)
    if pending is None or pending.reason != reason or not _is_last_of_savepoint(connection, pending):
        pending = _PublishAfterCommit(reason)
        transaction.on_commit(pending, using=connection.alias, robust=True)
    for catalog, item_ids in changes.items():
        pending.changes[catalog].update(item_ids)


def _pending(connection: BaseDatabaseWrapper) -> _PublishAfterCommit | None:
    """Return the transaction's last publish to come; a rollback (of a savepoint too) has taken it out of this list."""
    hooks = [hook[1] for hook in connection.run_on_commit]
    return next((hook for hook in reversed(hooks) if isinstance(hook, _PublishAfterCommit)), None)


def _is_last_of_savepoint(connection: BaseDatabaseWrapper, pending: _PublishAfterCommit) -> bool:
    savepoints, hook = connection.run_on_commit[-1][:2]
    return hook is pending and savepoints == set(connection.savepoint_ids)


def _in_transaction(connection: BaseDatabaseWrapper) -> bool:
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


def _rows(catalog: str) -> StoppedItemQuerySet:
    return StoppedItem.objects.using(database()).filter(catalog=catalog).order_by()


#: ID → (is stopped, when the row changed last, whether the cache has still to confirm it).
_State = dict[str, tuple[bool, datetime, bool]]


def _state(catalog: str, item_ids: Sequence[str]) -> _State:
    """Return what the database says now."""
    fields = ("item_id", "is_active", "updated_at", "published_at")
    try:
        rows = _rows(catalog).filter(item_id__in=item_ids).values_list(*fields)
        return {row[0]: (row[1], row[2], row[3] is None) for row in rows}
    except DatabaseError as error:
        name = type(error).__name__
        text = gettext_noop("Catalog {catalog}: the stop list could not be read ({error}).")
        raise InvalidationFailed(text, catalog=repr(catalog), error=name) from error


def _publish_all(entries: EntryCache, item_ids: Sequence[str], reason: str, *, keeps_marks: bool) -> None:
    confirmed: list[str] = []
    try:
        for chunk in chunks(item_ids, PUBLISHED_AT_ONCE):
            _publish_chunk(entries, chunk, keeps_marks=keeps_marks)
            confirmed += chunk
    finally:
        if confirmed and signals.items_invalidated.receivers:
            signals.items_invalidated.send_robust(
                StoppedItem, catalog=entries.config.alias, item_ids=tuple(confirmed), reason=reason
            )


def _publish_chunk(entries: EntryCache, item_ids: Sequence[str], *, keeps_marks: bool) -> None:
    """Write, read back, ask the database again; repeat what did not hold, for about a second."""
    catalog = entries.config.alias
    left = list(item_ids)
    started_at = clock.monotonic()
    for tries, pause in enumerate((*PAUSES, None), 1):
        before = _state(catalog, left)
        written = _write_gates(entries, left, before, keeps_marks=keeps_marks)
        after = _state(catalog, left)
        settled = {each for each in left if each in written and _version(after, each) == _version(before, each)}
        if not _in_transaction(connections[database()]):
            _confirm(catalog, settled, after)
        left = [each for each in left if each not in settled]
        if not left:
            return
        if pause is None or (tries > 1 and clock.monotonic() - started_at >= TRY_FOR):
            break
        clock.sleep(pause)
    text = gettext_noop(
        "Catalog {catalog}: the cache {cache} did not confirm the invalidation of {left} of {total} IDs "
        "(first: {first}). Changes of the stop list are saved and can be published again."
    )
    values = {"catalog": repr(catalog), "cache": repr(entries.config.cache), "first": repr(left[0])}
    raise InvalidationFailed(text, **values, left=len(left), total=len(item_ids))


_NO_ROW = (False, datetime(1, 1, 1, tzinfo=UTC), False)


def _is_stopped(state: _State, item_id: str) -> bool:
    return state.get(item_id, _NO_ROW)[0]


def _version(state: _State, item_id: str) -> tuple[bool, datetime]:
    """A row that was released and stopped again meanwhile is another one: only its own publish may confirm it."""
    return state.get(item_id, _NO_ROW)[:2]


def _write_gates(entries: EntryCache, item_ids: Sequence[str], state: _State, *, keeps_marks: bool) -> set[str]:
    """Write a gate with a new token for each ID; return the IDs whose very token could be read back."""
    if entries.store.keeps_nothing:
        return set(item_ids)
    keys = {item_id: entries.gate_key(item_id) for item_id in item_ids}
    try:
        old = entries.store.get_many_or_raise(keys.values()) if keeps_marks else {}
        tokens = {
            key: new_token(is_stopped=is_marked(old.get(key)) if keeps_marks else _is_stopped(state, item_id))
            for item_id, key in keys.items()
        }
        entries.store.set_many_or_raise(tokens, entries.published_life)
        found = entries.store.get_many_or_raise(tokens)
    except Exception as error:  # noqa: BLE001 - whatever a backend raises: it did not confirm
        logger.debug("Catalog %r: a publish to the cache failed (%s).", entries.config.alias, type(error).__name__)
        return set()
    return {item_id for item_id, key in keys.items() if found.get(key) == tokens[key]}


def _confirm(catalog: str, item_ids: Iterable[str], state: _State) -> None:
    """Note in the rows that the cache has confirmed this very state of theirs."""
    groups: dict[tuple[bool, datetime], list[str]] = defaultdict(list)
    for item_id in item_ids:
        is_active, updated_at, is_unconfirmed = state.get(item_id, _NO_ROW)
        if is_unconfirmed:
            groups[is_active, updated_at].append(item_id)
    if not groups:
        return
    try:
        with transaction.atomic(using=database()):
            for (is_active, updated_at), ids in groups.items():
                rows = _rows(catalog).filter(item_id__in=ids, is_active=is_active, updated_at=updated_at)
                rows.update(published_at=timezone.now())
    except DatabaseError as error:
        logger.warning("Catalog %r: published, but not noted in the rows (%s).", catalog, type(error).__name__)


def _take_along(entries: EntryCache, done: set[str]) -> None:
    """Publish rows whose own publish was not confirmed; what fails again stays as it is."""
    catalog = entries.config.alias
    left: list[str] = []
    try:
        rows = _rows(catalog).filter(published_at=None).values_list("item_id", flat=True)[:TAKEN_ALONG]
        left = [item_id for item_id in rows if item_id not in done]
        if left:
            _publish_all(entries, left, "published again", keeps_marks=False)
    except (DatabaseError, InvalidationFailed) as error:
        about = fields("invalidation_failed", catalog=catalog, reason="published again", items=len(left))
        text = "Catalog %r: earlier changes of the stop list are still not confirmed: %s"
        logger.error(text, catalog, error, extra=about)
