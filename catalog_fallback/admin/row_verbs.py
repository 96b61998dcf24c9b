"""What do the actions on rows do once they are confirmed? Through the services, with a line in each row's history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from catalog_fallback import clock, conf, services, stop_events, stop_list
from catalog_fallback.admin.telling import grouped, republish, tell_left, tell_whether_confirmed
from catalog_fallback.exceptions import InvalidItemID, UnknownCatalog
from catalog_fallback.models import StopOrigin, StoppedItem, StopReason

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.functional import _StrPromise

Rows = Sequence[StoppedItem]


class NoteForm(forms.Form):
    """What goes with a release."""

    note = forms.CharField(
        label=gettext_lazy("Note"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        help_text=gettext_lazy("Why. Left empty, the notes stay as they are."),
    )


class StopForm(NoteForm):
    """What goes with a stop."""

    reason = forms.ChoiceField(label=gettext_lazy("Reason"), choices=StopReason.choices)
    field_order = ("reason", "note")


@dataclass(frozen=True, slots=True)
class Verb:
    """An action with its confirmation page; ``short`` is its name on a button."""

    name: str
    short: _StrPromise
    title: _StrPromise
    explanation: _StrPromise
    form: type[forms.Form]
    carry_out: Callable[[HttpRequest, Rows, dict[str, str]], None]


def _stop(request: HttpRequest, rows: Rows, values: dict[str, str]) -> None:
    """Stop the rows' items, log it for each, and tell."""
    message = _("Stopped. Reason: {reason}.").format(reason=StopReason(values["reason"]).label)
    changed = len(_apply(request, rows, is_stop=True, message=message, **values))
    text = ngettext("%(count)d item is stopped.", "%(count)d items are stopped.", changed)
    messages.success(request, text % {"count": changed})


def _release(request: HttpRequest, rows: Rows, values: dict[str, str]) -> None:
    """Release the rows' items, log it for each, and tell."""
    stopped = {row.pk for row in rows if row.is_active}
    written = _apply(request, rows, is_stop=False, message=_("Released."), **values)
    released = sum(key in stopped for key in written)
    text = ngettext("%(count)d item is released.", "%(count)d items are released.", released)
    messages.success(request, text % {"count": released})
    tell_left(request, idle=len(written) - released)


def _apply(
    request: HttpRequest, rows: Rows, *, is_stop: bool, message: str, note: str, reason: str = StopReason.OTHER
) -> list[int]:
    """Change the rows through the services; return the keys of those whose last event this is now."""
    usable = [row for row in rows if _is_usable(row)]
    event_at = datetime.fromtimestamp(clock.wall(), UTC)
    using = stop_list.database()
    with transaction.atomic(using=using):
        for catalog, item_ids in grouped((row.catalog, row.item_id) for row in usable).items():
            how: dict[str, Any] = {"catalog": catalog, "note": note, "event_at": event_at, **_who(request)}
            if is_stop:
                services.stop_items(item_ids, reason=reason, **how)
            else:
                services.release_items(item_ids, **how)
        keys = [row.pk for row in usable]
        moment = stop_events.storable(event_at)
        changed = list(StoppedItem.objects.using(using).filter(pk__in=keys, event_at=moment))
        _log(request, changed, f"{message} {note}".strip())
        tell_whether_confirmed(request, [row.pk for row in changed])
    tell_left(request, unusable=len(rows) - len(usable), later=len(usable) - len(changed))
    return [row.pk for row in changed]


def _who(request: HttpRequest) -> dict[str, Any]:
    return {"origin": StopOrigin.ADMIN, "stopped_by_id": request.user.pk}


def _is_usable(row: StoppedItem) -> bool:
    """Whether the settings still know the row's catalog, and the row's ID as the normal form of itself."""
    try:
        return bool(conf.catalog(row.catalog).clean_id(row.item_id) == row.item_id)
    except (UnknownCatalog, InvalidItemID):
        return False


def _republish(request: HttpRequest, rows: Rows, values: dict[str, str]) -> None:
    """Publish after the commit where there is a transaction around, else at once."""
    by_catalog = grouped((row.catalog, row.item_id) for row in rows)

    def publish() -> None:
        confirmed = sum(republish(request, catalog, item_ids) for catalog, item_ids in by_catalog.items())
        _log(request, rows, _("Published again."))
        text = ngettext(
            "%(count)d item is confirmed by the cache.", "%(count)d items are confirmed by the cache.", confirmed
        )
        messages.success(request, text % {"count": confirmed})

    transaction.on_commit(publish, using=stop_list.database(), robust=True)


def _log(request: HttpRequest, rows: Rows, message: str) -> None:
    """One line in the history of each row."""
    if rows and request.user.pk is not None:
        LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, message)


STOP = Verb(
    "stop",
    gettext_lazy("Stop"),
    gettext_lazy("Stop items"),
    gettext_lazy("They are neither fetched nor shown any more, whatever a cache or a source still holds."),
    StopForm,
    _stop,
)
RELEASE = Verb(
    "release",
    gettext_lazy("Release"),
    gettext_lazy("Release items"),
    gettext_lazy(
        "They can be found and shown again. The rows stay, so that older notices that arrive late do nothing."
    ),
    NoteForm,
    _release,
)
REPUBLISH = Verb(
    "republish_selected",
    gettext_lazy("Publish again"),
    gettext_lazy("Publish items again"),
    gettext_lazy("The cache is told again what the database says. Nothing else changes."),
    forms.Form,
    _republish,
)
