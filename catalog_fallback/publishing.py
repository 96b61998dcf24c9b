"""How does everybody learn that an item was stopped, released or forgotten? Publishing to the cache.

The database is the truth; the gate in the cache tells everybody that something changed. A publish counts only when
reading back returns the very token that it wrote, and when the database still says the same afterwards.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from django.db import Error as DatabaseError
from django.db import connections
from django.utils import timezone

from catalog_fallback import after_commit, clock, signals, write_conflicts
from catalog_fallback.cache import EntryCache, entries_of
from catalog_fallback.entry_form import is_marked, new_token
from catalog_fallback.exceptions import InvalidationFailed, gettext_noop
from catalog_fallback.log_events import fields
from catalog_fallback.models import StoppedItem, chunks
from catalog_fallback.process_lock import ProcessLock
from catalog_fallback.stop_list import database, is_in_transaction, rows_of, sees_old_state

logger = logging.getLogger("catalog_fallback")

#: Seconds between the tries of a publish; after the last one it has failed.
PAUSES = (0.05, 0.1, 0.2, 0.3, 0.35)
#: Seconds after which no third or later try begins, however long the cache took for each.
TRY_FOR = 1.0
#: How many gates are written and read back at a time, and how many where the cache throws away many keys at once when
#: it has too many: fewer than a small one throws away.
PUBLISHED_AT_ONCE = 500
PUBLISHED_BETWEEN_CULLS = 100
#: How many rows of earlier, unconfirmed publishes the next one takes along.
TAKEN_ALONG = 500


def publish(catalog: str, item_ids: Sequence[str], *, reason: str = "") -> None:
    """Give every ID a new gate, which invalidates all its variants and every fetch in flight, and mark the stopped.

    IDs are in their normal form. Rows of the stop list that an earlier publish could not confirm are taken along.
    Raises InvalidationFailed when the cache did not confirm all of them or the stop list could not be read; what was
    confirmed stays invalidated.
    """
    entries = entries_of[catalog]
    keeps_marks = sees_old_state()
    if keeps_marks and connections[database()].in_atomic_block:
        after_commit.publish(connections[database()], {catalog: item_ids}, reason, _publish_committed)
    with being_published(catalog, item_ids):
        _publish_all(entries, item_ids, reason, keeps_marks=keeps_marks)
    if not is_in_transaction(connections[database()]):
        _take_along(entries, set(item_ids))


#: Process, catalog and ID of what threads are about to publish, and how many of them. A forked child has none of them.
_under_way: Counter[tuple[int, str, str]] = Counter()
_counting = ProcessLock()


@contextmanager
def being_published(catalog: str, item_ids: Sequence[str]) -> Iterator[None]:
    """Keep others from taking these along: each would replace the gate that the other wants to read back."""
    names = [(os.getpid(), catalog, item_id) for item_id in item_ids]
    with _counting.own:
        _under_way.update(names)
    try:
        yield
    finally:
        with _counting.own:
            _under_way.subtract(names)
            for name in names:
                if _under_way[name] <= 0:
                    del _under_way[name]


def publish_changes(changes: Mapping[str, Sequence[str]], *, using: str, reason: str = "") -> None:
    """Publish changed rows of the stop list: at once outside a transaction, else after its commit.

    Raises InvalidationFailed outside a transaction; the rows stay. After a commit a failure is logged as an error, and
    the rows are shown as not confirmed.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        after_commit.publish(connection, changes, reason, _publish_committed)
        return
    if is_in_transaction(connection):
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


def _publish_committed(catalog: str, item_ids: Sequence[str], reason: str) -> None:
    try:
        publish(catalog, item_ids, reason=reason)
    except Exception:
        about = fields("invalidation_failed", catalog=catalog, reason=reason, items=len(item_ids))
        text = "Catalog %r: a committed change of the stop list is not confirmed."
        logger.exception(text, catalog, extra=about)


#: ID → (is stopped, when the row changed last, whether the cache has still to confirm it).
_State = dict[str, tuple[bool, datetime, bool]]


def _state(catalog: str, item_ids: Sequence[str]) -> _State:
    """Return what the database says now."""
    fields = ("item_id", "is_active", "updated_at", "published_at")
    try:
        rows = rows_of(catalog).filter(item_id__in=item_ids).values_list(*fields)
        return {row[0]: (row[1], row[2], row[3] is None) for row in rows}
    except DatabaseError as error:
        name = type(error).__name__
        text = gettext_noop("Catalog {catalog}: the stop list could not be read ({error}).")
        raise InvalidationFailed(text, catalog=repr(catalog), error=name) from error


def _publish_all(entries: EntryCache, item_ids: Sequence[str], reason: str, *, keeps_marks: bool) -> None:
    """Publish part by part, up to the first one that the cache does not confirm as a whole."""
    confirmed: list[str] = []
    left: list[str] = []
    parts = chunks(item_ids, PUBLISHED_BETWEEN_CULLS if entries.store.culls else PUBLISHED_AT_ONCE)
    try:
        for part in parts:
            if not left:
                left = _publish_part(entries, part, keeps_marks=keeps_marks)
                confirmed += part if not left else sorted(set(part) - set(left))
            else:
                left += part
    finally:
        if confirmed and signals.items_invalidated.receivers:
            signals.items_invalidated.send_robust(
                StoppedItem, catalog=entries.config.alias, item_ids=tuple(confirmed), reason=reason
            )
    if left:
        text = gettext_noop(
            "Catalog {catalog}: the cache {cache} did not confirm the invalidation of {left} of {total} IDs "
            "(first: {first}). Changes of the stop list are saved and can be published again."
        )
        values = {"catalog": repr(entries.config.alias), "cache": repr(entries.config.cache), "first": repr(left[0])}
        raise InvalidationFailed(text, **values, left=len(left), total=len(item_ids))


def _publish_part(entries: EntryCache, item_ids: Sequence[str], *, keeps_marks: bool) -> list[str]:
    """Write, read back, ask the database again; repeat what did not hold, for about a second. Return what is left."""
    catalog = entries.config.alias
    left = list(item_ids)
    started_at = clock.monotonic()
    for tries, pause in enumerate((*PAUSES, None), 1):
        before = _state(catalog, left)
        written = _write_gates(entries, left, before, keeps_marks=keeps_marks)
        after = _state(catalog, left)
        settled = {each for each in left if each in written and _version(after, each) == _version(before, each)}
        if not is_in_transaction(connections[database()]):
            _confirm(catalog, settled, after)
        left = [each for each in left if each not in settled]
        if not left or pause is None or (tries > 1 and clock.monotonic() - started_at >= TRY_FOR):
            break
        clock.sleep(pause)
    return left


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

    def note() -> None:
        for (is_active, updated_at), ids in groups.items():
            rows = rows_of(catalog).filter(item_id__in=ids, is_active=is_active, updated_at=updated_at)
            if connections[database()].features.has_select_for_update_skip_locked:
                # Whoever holds a row changes it, or confirms it himself: nobody has to wait for him.
                mine = rows.select_for_update(skip_locked=True).values_list("pk", flat=True)
                rows = rows_of(catalog).filter(pk__in=list(mine))
            rows.update(published_at=timezone.now())

    try:
        write_conflicts.whole(database(), note)
    except DatabaseError as error:
        logger.warning("Catalog %r: published, but not noted in the rows (%s).", catalog, type(error).__name__)


def _take_along(entries: EntryCache, done: set[str]) -> None:
    """Publish rows whose own publish was not confirmed; what fails again stays as it is."""
    catalog = entries.config.alias
    left: list[str] = []
    try:
        rows = rows_of(catalog).filter(published_at=None).values_list("item_id", flat=True)[:TAKEN_ALONG]
        others = os.getpid(), catalog
        left = [item_id for item_id in rows if item_id not in done and (*others, item_id) not in _under_way]
        if left:
            _publish_all(entries, left, "published again", keeps_marks=False)
    except (DatabaseError, InvalidationFailed) as error:
        about = fields("invalidation_failed", catalog=catalog, reason="published again", items=len(left))
        text = "Catalog %r: earlier changes of the stop list are still not confirmed: %s"
        logger.error(text, catalog, error, extra=about)
