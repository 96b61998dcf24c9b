"""What would a plan change? The IDs sorted by what the stop list says of them now; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog_fallback import stop_list
from catalog_fallback.admin.plans import Plan
from catalog_fallback.models import StoppedItem, StopReason, chunks

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

#: How many lines of each kind a preview shows.
SHOWN = 50


class Kind(StrEnum):
    """What a plan does with an ID."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    LATER = "later"


#: Is it a stop? → kind → heading, and what will happen.
_WORDS: Mapping[bool, Mapping[Kind, tuple[_StrPromise, _StrPromise]]] = {
    True: {
        Kind.NEW: (gettext_lazy("New"), gettext_lazy("They come onto the stop list.")),
        Kind.CHANGED: (
            gettext_lazy("Would be changed"),
            gettext_lazy("They are on the list, but released, or stopped with another reason or note."),
        ),
        Kind.SAME: (
            gettext_lazy("Already stopped"),
            gettext_lazy("They stay stopped. Only the event time and who changed them last are new."),
        ),
    },
    False: {
        Kind.CHANGED: (gettext_lazy("Would be released"), gettext_lazy("They can be found and shown again.")),
        Kind.SAME: (
            gettext_lazy("Already released"),
            gettext_lazy("They stay released. Only the event time and who changed them last are new."),
        ),
        Kind.NEW: (
            gettext_lazy("Never stopped"),
            gettext_lazy(
                "There is nothing to release. It is remembered, so that an older stop that arrives late does nothing."
            ),
        ),
    },
}
_LATER = (
    gettext_lazy("Left as they are"),
    gettext_lazy("Their last event is dated ahead of now; open them one by one to change them."),
)


@dataclass(frozen=True, slots=True)
class PreviewLine:
    """One ID: the number of its line, and what the stop list says of it now."""

    number: int
    item_id: str
    now: str


@dataclass(frozen=True, slots=True)
class PreviewGroup:
    """The IDs of one kind; ``lines`` are the first of them."""

    heading: _StrPromise
    explanation: _StrPromise
    count: int
    lines: Sequence[PreviewLine]

    @property
    def more(self) -> int:
        """Return how many are not shown."""
        return self.count - len(self.lines)


#: What the stop list says of one ID.
_Row = tuple[bool, str, str, datetime]


def groups(plan: Plan, numbers: Mapping[str, int]) -> list[PreviewGroup]:
    """Return what would happen to the plan's IDs, in the order of their lines; kinds without IDs are left out."""
    rows = _rows(plan)
    now = timezone.now()
    sorted_out: dict[Kind, list[str]] = {kind: [] for kind in (*_WORDS[plan.is_stop], Kind.LATER)}
    for item_id in sorted(plan.item_ids, key=numbers.__getitem__):
        sorted_out[_kind(plan, rows.get(item_id), now)].append(item_id)
    return [
        PreviewGroup(
            *_WORDS[plan.is_stop].get(kind, _LATER),
            len(item_ids),
            [PreviewLine(numbers[each], each, _state(rows.get(each))) for each in item_ids[:SHOWN]],
        )
        for kind, item_ids in sorted_out.items()
        if item_ids
    ]


def _rows(plan: Plan) -> dict[str, _Row]:
    return {item_id: row for chunk in chunks(plan.item_ids) for item_id, *row in _of_chunk(plan.catalog, chunk)}  # type: ignore[misc]


def _of_chunk(catalog: str, item_ids: Sequence[str]) -> Iterator[tuple[str, bool, str, str, datetime]]:
    rows = StoppedItem.objects.using(stop_list.database()).filter(catalog=catalog, item_id__in=item_ids).order_by()
    yield from rows.values_list("item_id", "is_active", "reason", "note", "event_at")


def _kind(plan: Plan, row: _Row | None, now: datetime) -> Kind:
    if row is None:
        return Kind.NEW
    is_active, reason, note, event_at = row
    if event_at > now:
        return Kind.LATER
    is_as_planned = is_active is plan.is_stop and plan.note in {"", note}
    return Kind.SAME if is_as_planned and (not plan.is_stop or reason == plan.reason) else Kind.CHANGED


def _state(row: _Row | None) -> str:
    """Say what the stop list says now."""
    if row is None:
        return _("not on the list")
    is_active, reason = row[:2]
    if not is_active:
        return _("released")
    return _("stopped: {reason}").format(reason=dict(StopReason.choices).get(reason, reason))
