"""What does a stop or a release change in the stop list? Events in the order in which they happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.functional import Promise

from catalog_fallback import publishing, stop_list, write_conflicts
from catalog_fallback.models import MAX_ID_LENGTH, StopOrigin, StoppedItem, StopReason, chunks

#: How often rows are looked at that somebody else creates at the same moment.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class StopEvent:
    """One stop (``is_active``) or release, for any number of IDs of one catalog. Moments are aware datetimes.

    ``is_last``: it comes after all that is known, even where the clock of another host has dated that ahead.
    """

    catalog: str
    is_active: bool
    event_at: datetime
    is_last: bool = False
    origin: str = StopOrigin.CODE
    reason: str | None = None
    note: str = ""
    stopped_by_id: Any = None

    def fields(self) -> Mapping[str, Any]:
        """Return the columns that the event sets; a release keeps the reason, an empty note keeps the note."""
        values: dict[str, Any] = {
            "is_active": self.is_active,
            "event_at": self.event_at,
            "origin": self.origin,
            "stopped_by_id": self.stopped_by_id,
            "updated_at": timezone.now(),
            "published_at": None,
        }
        if self.reason is not None:
            values["reason"] = self.reason
        if self.note:
            values["note"] = self.note
        return values


def make(
    catalog: str,
    *,
    is_active: bool,
    event_at: datetime | None,
    reason: str | None = None,
    note: str = "",
    origin: str = StopOrigin.CODE,
    stopped_by_id: Any = None,
) -> StopEvent:
    """Return the event after checking its arguments; one without a moment happens now, after all that is known.

    Raises ValueError for an unknown reason, a note that is no text, or an ``event_at`` that is no aware datetime.
    """
    if reason is not None and reason not in StopReason.values:
        raise ValueError(f"reason={reason!r} has to be one of {', '.join(StopReason.values)}.")
    if not isinstance(note, (str, Promise)):
        raise ValueError(f"note has to be a string, not a {type(note).__name__}.")
    if event_at is not None and (not isinstance(event_at, datetime) or timezone.is_naive(event_at)):
        raise ValueError(f"event_at={event_at!r} has to be an aware datetime.")
    return StopEvent(
        catalog,
        is_active,
        timezone.now() if event_at is None else storable(event_at),
        is_last=event_at is None,
        origin=origin,
        reason=reason,
        note=note,
        stopped_by_id=stopped_by_id,
    )


def storable(moment: datetime) -> datetime:
    """Return an aware moment as this site's database columns take it: naive and local where USE_TZ is off."""
    return moment if settings.USE_TZ else timezone.make_naive(moment)


def apply(event: StopEvent, item_ids: Sequence[str]) -> int:
    """Write the event for IDs in their normal form and publish it; return how many rows it changed.

    A row whose own event is later stays as it is, unless this one is the last; an event of the same moment is applied.
    Raises InvalidationFailed when the cache did not confirm it (outside a transaction; the rows stay), what the
    database raises, and ValueError for an ID that is too long to be stored, before anything is written.
    """
    for item_id in item_ids:
        if len(item_id) > MAX_ID_LENGTH:
            raise ValueError(f"{item_id[:40]!r}… has {len(item_id)} characters; the stop list takes {MAX_ID_LENGTH}.")
    using = stop_list.database()
    # In one order for everybody: of two who wait for each other's rows, one would have to begin anew.
    parts = [*chunks(sorted(item_ids))]
    with publishing.being_published(event.catalog, item_ids):
        changed = write_conflicts.whole(using, lambda: [each for part in parts for each in _write(event, part, using)])
        if changed:
            publishing.publish_changes({event.catalog: changed}, using=using, reason=event.reason or "released")
    return len(changed)


def _write(event: StopEvent, item_ids: Sequence[str], using: str) -> list[str]:
    """Update the rows whose event is not later, create the missing ones; return the IDs that changed."""
    changed: list[str] = []
    left = list(item_ids)
    for _ in range(_ROUNDS):
        written, left = _write_once(event, left, using)
        changed += written
        if not left:
            break
    return changed


def _write_once(event: StopEvent, item_ids: Sequence[str], using: str) -> tuple[list[str], list[str]]:
    """Return the IDs that changed, and those whose rows somebody else has created meanwhile: they are still to do."""
    # A plain QuerySet: nothing is announced row by row, apply() publishes all of them. The update comes first: it
    # takes SQLite's write lock before anything is read.
    table: QuerySet[StoppedItem] = QuerySet(StoppedItem, using=using)
    rows = table.filter(catalog=event.catalog, item_id__in=item_ids)
    fields = event.fields()
    if connections[using].features.has_select_for_update:  # one after the other in the order of their IDs
        list(rows.select_for_update().order_by("item_id").values_list("pk", flat=True))
    rows.filter(event_at__lte=event.event_at).update(**fields)
    if event.is_last:
        rows.filter(event_at__gt=event.event_at).update(**{**fields, "event_at": F("event_at")})
    known = {row[0]: row[1:] for row in rows.values_list("item_id", "event_at", "updated_at")}
    new = [each for each in item_ids if each not in known]
    _insert({"reason": StopReason.OTHER, "created_at": fields["updated_at"], **fields}, event.catalog, new, using)
    ours = {each for each, (_, updated_at) in known.items() if updated_at == fields["updated_at"]}
    left = [each for each, (at, _) in known.items() if each not in ours and (event.is_last or at <= event.event_at)]
    return [*new, *ours], left


def _insert(values: Mapping[str, Any], catalog: str, item_ids: Sequence[str], using: str) -> None:
    """Create rows that differ in nothing but the ID, so that all else is made ready for the database once.

    They also get one moment for all, and so can be confirmed together.
    """
    if not item_ids:
        return
    connection = connections[using]
    row = StoppedItem(catalog=catalog, **values)
    ready = {
        str(field.column): field.get_db_prep_save(field.value_from_object(row), connection)
        for field in StoppedItem._meta.concrete_fields
        if not field.primary_key
    }
    quote = connection.ops.quote_name
    names, marks = ", ".join(map(quote, ready)), ", ".join(["%s"] * len(ready))
    statement = f"INSERT INTO {quote(StoppedItem._meta.db_table)} ({names}) VALUES ({marks})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.executemany(statement, [list({**ready, "item_id": each}.values()) for each in item_ids])
