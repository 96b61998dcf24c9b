"""What happens to the selected rows? Stop, release, publish again, delete: each asks first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import actions as django_actions
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import transaction
from django.db.models import QuerySet
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from catalog_fallback import conf, services, stop_list
from catalog_fallback.admin.searching import LIMIT
from catalog_fallback.admin.telling import grouped, republish, tell_whether_confirmed
from catalog_fallback.exceptions import InvalidItemID, UnknownCatalog
from catalog_fallback.models import StopOrigin, StoppedItem, StopReason

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.utils.functional import _StrPromise

    _Admin = admin.ModelAdmin[StoppedItem]

#: How many rows a confirmation page names.
SHOWN = 50
#: Django's own page for deleting has a field for each row, and forms have a limit of 1,000 (a setting).
MAX_DELETED = 900

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
    """An action with its confirmation page."""

    name: str
    title: _StrPromise
    explanation: _StrPromise
    form: type[forms.Form]
    carry_out: Callable[[HttpRequest, Rows, dict[str, str]], None]


@admin.action(permissions=["change"], description=gettext_lazy("Stop the selected items"))
def stop(model_admin: _Admin, request: HttpRequest, queryset: QuerySet[StoppedItem]) -> HttpResponse | None:
    """Stop them (again)."""
    return _confirmed(STOP, model_admin, request, queryset)


@admin.action(permissions=["change"], description=gettext_lazy("Release the selected items"))
def release(model_admin: _Admin, request: HttpRequest, queryset: QuerySet[StoppedItem]) -> HttpResponse | None:
    """Take them off the stop list and remember that."""
    return _confirmed(RELEASE, model_admin, request, queryset)


@admin.action(permissions=["change"], description=gettext_lazy("Publish again to the cache"))
def republish_selected(
    model_admin: _Admin, request: HttpRequest, queryset: QuerySet[StoppedItem]
) -> HttpResponse | None:
    """Tell the cache once more what the database says."""
    return _confirmed(REPUBLISH, model_admin, request, queryset)


@admin.action(permissions=["delete"], description=gettext_lazy("Delete the selected rows (forgets the stops)"))
def delete_selected(model_admin: _Admin, request: HttpRequest, queryset: QuerySet[StoppedItem]) -> HttpResponse | None:
    """Django's own action, for as many rows as its page can take."""
    if len(queryset.order_by().values_list("pk")[: MAX_DELETED + 1]) > MAX_DELETED:
        _refuse(request, MAX_DELETED)
        return None
    return django_actions.delete_selected(model_admin, request, queryset)


#: The permission that each action needs.
PERMISSIONS = {"stop": "change", "release": "change", "republish_selected": "change", "delete_selected": "delete"}


def _confirmed(
    verb: Verb, model_admin: _Admin, request: HttpRequest, queryset: QuerySet[StoppedItem]
) -> HttpResponse | None:
    """Show the confirmation page; once it is sent, act on the very rows that it named."""
    is_sent = "confirmed" in request.POST
    rows = _chosen(request, queryset) if is_sent else list(queryset[: LIMIT + 1])
    if len(rows) > LIMIT:
        _refuse(request, LIMIT)
        return None
    form = verb.form(request.POST) if is_sent else verb.form(initial=_initial(rows))
    if is_sent and form.is_valid():
        verb.carry_out(request, rows, form.cleaned_data)
        return None
    context = {
        **model_admin.admin_site.each_context(request),
        "title": verb.title,
        "verb": verb,
        "form": form,
        "rows": rows[:SHOWN],
        "more": max(0, len(rows) - SHOWN),
        "count": len(rows),
        "keys": ",".join(str(row.pk) for row in rows),
        "first_key": rows[0].pk if rows else "",
        "checkbox_name": ACTION_CHECKBOX_NAME,
        "opts": model_admin.opts,
        "back": request.get_full_path(),
    }
    return TemplateResponse(request, "admin/catalog_fallback/stoppeditem/confirm_action.html", context)


def _chosen(request: HttpRequest, queryset: QuerySet[StoppedItem]) -> list[StoppedItem]:
    """The rows that the confirmation page named: one field, since forms may have a thousand fields only."""
    keys = {int(key) for key in request.POST.get("keys", "").split(",") if key.isdecimal() and len(key) < 20}
    return list(queryset.filter(pk__in=sorted(keys)[: LIMIT + 1]))


def _initial(rows: Rows) -> dict[str, str]:
    return {"reason": rows[0].reason, "note": rows[0].note} if len(rows) == 1 else {"reason": StopReason.WITHDRAWN}


def _refuse(request: HttpRequest, limit: int) -> None:
    text = _("At most {limit} rows at once. Choose fewer, or use the command invalidate_item.")
    messages.error(request, text.format(limit=limit))


def _stop(request: HttpRequest, rows: Rows, values: dict[str, str]) -> None:
    """Stop the rows' items, log it for each, and tell."""
    message = _("Stopped. Reason: {reason}.").format(reason=StopReason(values["reason"]).label)
    changed = _apply(request, rows, is_stop=True, message=message, **values)
    text = ngettext("%(count)d item is stopped.", "%(count)d items are stopped.", changed)
    messages.success(request, text % {"count": changed})


def _release(request: HttpRequest, rows: Rows, values: dict[str, str]) -> None:
    """Release the rows' items, log it for each, and tell."""
    changed = _apply(request, rows, is_stop=False, message=_("Released."), **values)
    text = ngettext("%(count)d item is released.", "%(count)d items are released.", changed)
    messages.success(request, text % {"count": changed})


def _apply(
    request: HttpRequest, rows: Rows, *, is_stop: bool, message: str, note: str, reason: str = StopReason.OTHER
) -> int:
    """Change the rows through the services; return how many changed."""
    usable = [row for row in rows if _is_usable(row)]
    event_at = timezone.now()
    using = stop_list.database()
    with transaction.atomic(using=using):
        for catalog, item_ids in grouped((row.catalog, row.item_id) for row in usable).items():
            how: dict[str, Any] = {"catalog": catalog, "note": note, "event_at": event_at, **_who(request)}
            if is_stop:
                services.stop_items(item_ids, reason=reason, **how)
            else:
                services.release_items(item_ids, **how)
        keys = [row.pk for row in usable]
        changed = list(StoppedItem.objects.using(using).filter(pk__in=keys, event_at=event_at))
        _log(request, changed, f"{message} {note}".strip())
        tell_whether_confirmed(request, [row.pk for row in changed])
    _tell_left_out(request, unusable=len(rows) - len(usable), later=len(usable) - len(changed))
    return len(changed)


def _who(request: HttpRequest) -> dict[str, Any]:
    return {"origin": StopOrigin.ADMIN, "stopped_by_id": request.user.pk}


def _is_usable(row: StoppedItem) -> bool:
    """Whether the settings still know the row's catalog, and the row's ID as the normal form of itself."""
    try:
        return bool(conf.catalog(row.catalog).clean_id(row.item_id) == row.item_id)
    except (UnknownCatalog, InvalidItemID):
        return False


def _tell_left_out(request: HttpRequest, *, unusable: int, later: int) -> None:
    if unusable:
        text = _("Left as they are, because the settings no longer have their catalog or take their ID: {count}.")
        messages.warning(request, text.format(count=unusable))
    if later:
        text = _(
            "Left as they are, because of a later event (a notice dated ahead): {count}. Open them to change them."
        )
        messages.warning(request, text.format(count=later))


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
    gettext_lazy("Stop items"),
    gettext_lazy("They are neither fetched nor shown any more, whatever a cache or a source still holds."),
    StopForm,
    _stop,
)
RELEASE = Verb(
    "release",
    gettext_lazy("Release items"),
    gettext_lazy(
        "They can be found and shown again. The rows stay, so that older notices that arrive late do nothing."
    ),
    NoteForm,
    _release,
)
REPUBLISH = Verb(
    "republish_selected",
    gettext_lazy("Publish items again"),
    gettext_lazy("The cache is told again what the database says. Nothing else changes."),
    forms.Form,
    _republish,
)
