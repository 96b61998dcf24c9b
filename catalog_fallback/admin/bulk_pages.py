"""How does a person stop or release a long list at once? Paste or upload it, look at the preview, confirm.

The preview's plan travels signed in the page (``plans``). A confirmation is carried out part by part, each in a
transaction of its own; when it has worked for as long as a request should, the rest is offered for another click. So
neither the length of the list nor the web server's time limit decides whether it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from catalog_fallback.admin import bulk_work, plans, previews
from catalog_fallback.admin.bulk_forms import BulkForm
from catalog_fallback.admin.id_lists import MAX_BYTES, MAX_LINES
from catalog_fallback.admin.plans import PlanRefused
from catalog_fallback.models import StoppedItem, StopReason

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    _Admin = admin.ModelAdmin[StoppedItem]

#: The page's name among the URLs of the admin.
URL_NAME = "catalog_fallback_stoppeditem_bulk"
#: Bytes of an upload that are not the file.
_REST_OF_UPLOAD = 64 * 1024

_Page = Callable[["HttpRequest"], "HttpResponse"]


def may_open(model_admin: _Admin, request: HttpRequest) -> bool:
    """Whether a person may stop and release lists: it adds rows and changes them."""
    return model_admin.has_add_permission(request) and model_admin.has_change_permission(request)


def page(model_admin: _Admin) -> _Page:
    """Return the view: GET is the form, POST the preview or, with a plan, what was confirmed."""

    def view(request: HttpRequest) -> HttpResponse:
        if not may_open(model_admin, request):
            raise PermissionDenied
        if request.method != "POST":
            return _form_page(model_admin, request, BulkForm())
        return (_confirmed if "plan" in request.POST else _preview)(model_admin, request)

    return _measured(view)


def _measured(view: _Page) -> _Page:
    """Say in words what Django's limits for forms would answer with an empty error page.

    The outer view is exempt from the CSRF check only so that it comes before somebody reads the form; the view itself
    is protected.
    """
    protected = csrf_protect(view)

    @csrf_exempt
    @wraps(view)
    def measured(request: HttpRequest) -> HttpResponse:
        complaint = _too_large(request) if request.method == "POST" else ""
        if complaint:
            messages.error(request, complaint)
            return HttpResponseRedirect(request.path)
        return protected(request)

    return measured


def _too_large(request: HttpRequest) -> str:
    """Return what is wrong with the size of a form, "" when nothing is; an upload that is too long is not read."""
    try:
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BYTES + _REST_OF_UPLOAD + _form_limit():
            return _("The file is too long; {limit} bytes is the limit. Divide it.").format(limit=MAX_BYTES)
        request.POST  # noqa: B018 - reading it is what raises
    except RequestDataTooBig:
        text = _("The text is longer than a form of this site takes ({limit} bytes). Upload it as a file instead.")
        return text.format(limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    except (TooManyFieldsSent, TooManyFilesSent):
        return _("The form has more fields than this site takes. Nothing was changed.")
    return ""


def _form_limit() -> int:
    return settings.DATA_UPLOAD_MAX_MEMORY_SIZE or MAX_BYTES


def _preview(model_admin: _Admin, request: HttpRequest) -> HttpResponse:
    """Show what would happen; nothing is written."""
    form = BulkForm(request.POST, request.FILES)
    if not form.is_valid():
        return _form_page(model_admin, request, form)
    plan, listed = form.plan(), form.listed
    try:
        signed = plans.sign(plan, request.user.pk) if plan.item_ids else ""
    except PlanRefused as error:
        form.add_error(None, str(error))
        return _form_page(model_admin, request, form)
    return _render(
        model_admin,
        request,
        "bulk_preview",
        _("Stop these items?") if plan.is_stop else _("Release these items?"),
        plan=plan,
        reason=dict(StopReason.choices).get(plan.reason, ""),
        signed=signed,
        groups=previews.groups(plan, listed.numbers),
        invalid=listed.invalid[: previews.SHOWN],
        invalid_count=len(listed.invalid),
        repetitions=listed.repetitions[: previews.SHOWN],
        repetition_count=len(listed.repetitions),
    )


def _confirmed(model_admin: _Admin, request: HttpRequest) -> HttpResponse:
    """Carry the plan out, or a part of it; then tell, or offer the rest."""
    try:
        plan = plans.read(request.POST["plan"], request.user.pk)
        rest = bulk_work.carry_out(request, plan)
        signed = plans.sign(rest, request.user.pk) if rest.item_ids else ""
    except PlanRefused as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(request.path)
    if signed:
        title = _("{done} of {total} are done").format(done=rest.done, total=rest.total)
        return _render(model_admin, request, "bulk_continue", title, plan=rest, signed=signed)
    bulk_work.tell(request, rest)
    return HttpResponseRedirect(
        reverse("admin:catalog_fallback_stoppeditem_changelist", current_app=_site(model_admin))
    )


def _form_page(model_admin: _Admin, request: HttpRequest, form: BulkForm) -> HttpResponse:
    limits = {"max_lines": number_format(MAX_LINES, force_grouping=True), "max_bytes": MAX_BYTES}
    return _render(model_admin, request, "bulk_form", _("Stop or release many items"), form=form, **limits)


def _render(model_admin: _Admin, request: HttpRequest, name: str, title: str, **context: Any) -> HttpResponse:
    request.current_app = _site(model_admin)
    return TemplateResponse(
        request,
        f"admin/catalog_fallback/stoppeditem/{name}.html",
        {
            **model_admin.admin_site.each_context(request),
            "opts": model_admin.opts,
            "title": title,
            "has_view_permission": True,
            **context,
        },
    )


def _site(model_admin: _Admin) -> str:
    return model_admin.admin_site.name
