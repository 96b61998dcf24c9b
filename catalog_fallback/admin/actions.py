"""What happens to the selected rows? Stop, release, publish again, delete: each asks first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin, messages
from django.contrib.admin import actions as django_actions
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog_fallback.admin.row_verbs import RELEASE, REPUBLISH, STOP, Rows, Verb
from catalog_fallback.admin.searching import LIMIT
from catalog_fallback.models import StoppedItem, StopReason

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    _Admin = admin.ModelAdmin[StoppedItem]

#: How many rows a confirmation page names.
SHOWN = 50
#: Django's own page for deleting has a field for each row, and forms have a limit of 1,000 (a setting).
MAX_DELETED = 900


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
    request.current_app = model_admin.admin_site.name
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
