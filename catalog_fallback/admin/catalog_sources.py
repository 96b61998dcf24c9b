"""How do the sources stand, and what shall be done about one? The operations page, in the place of a change list.

Nothing here calls an upstream but a lookup that an operator asks for. The page costs one read of each cache that holds
guards' state and a few queries; a cache or database in trouble leaves gaps, which it names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db import Error as DatabaseError
from django.http import Http404, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.cache import patch_vary_headers
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from catalog_fallback import operating
from catalog_fallback.admin.catalog_words import catalog_part
from catalog_fallback.admin.looking_up import LookUpForm, look_up
from catalog_fallback.admin.source_verbs import VERBS, run
from catalog_fallback.models import CatalogSource
from catalog_fallback.status import overview
from catalog_fallback.status_values import all_values

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    _ModelAdmin = admin.ModelAdmin[CatalogSource]
else:
    _ModelAdmin = admin.ModelAdmin

#: How many of the latest changes are listed.
_LATEST = 10
_TEMPLATES = "admin/catalog_fallback/catalogsource"
_NAME = "catalog_fallback_catalogsource"

_reading = method_decorator([never_cache, require_http_methods(["GET", "HEAD"])])
_both = method_decorator([never_cache, require_http_methods(["GET", "HEAD", "POST"])])


@admin.register(CatalogSource)
class CatalogSourceAdmin(_ModelAdmin):
    """The rows are written by isolating and restoring; the page shows all sources of the settings, with or without."""

    def get_urls(self) -> list[Any]:
        """Return the page, its JSON, what can be done, and the place where the admin's log points to."""
        of_source = "<str:catalog>/<str:source>"
        verbs = [self._url(f"{of_source}/{name}/", self._verb_view(name), name) for name in VERBS]
        return [
            self._url("", self.changelist_view, "changelist"),
            self._url("status.json", self.status_json, "status_json"),
            self._url("lookup/", self.lookup_view, "lookup"),
            *verbs,
            self._url("<path:object_id>/change/", self.to_page, "change"),
        ]

    def _url(self, route: str, view: Callable[..., HttpResponse], name: str) -> URLPattern:
        return path(route, self.admin_site.admin_view(view), name=f"{_NAME}_{name}")

    # ------------------------------------------------------------------------------------------ permissions

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows are made by isolating a source."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows are changed by isolating a source again."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows are deleted by restoring a source."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may operate may look."""
        return request.user.has_perm("catalog_fallback.view_catalogsource") or self.has_operate_permission(request)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Whether the person may isolate, restore and reset, and make a lookup."""
        return request.user.has_perm("catalog_fallback.operate_catalogsource")

    def _check(self, is_allowed: bool) -> None:
        if not is_allowed:
            raise PermissionDenied

    # ------------------------------------------------------------------------------------------ looking

    @_reading
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show all catalogs and sources; as JSON for whoever prefers that."""
        self._check(self.has_view_permission(request))
        if request.get_preferred_type(["text/html", "application/json"]) == "application/json":
            return self._json(request)
        context = self._context(request, _("Catalogs and their sources"), **(extra_context or {}))
        try:
            found = overview()
        except ImproperlyConfigured:
            context["is_misconfigured"] = True
        else:
            context["overview"] = found
            context["parts"] = [catalog_part(status) for status in found.catalogs]
            context["verbs"] = VERBS
        context["latest"] = _latest_changes()
        response = TemplateResponse(request, f"{_TEMPLATES}/change_list.html", context)
        patch_vary_headers(response, ("Accept",))
        return response

    @_reading
    def status_json(self, request: HttpRequest) -> HttpResponse:
        """Return the same as JSON."""
        self._check(self.has_view_permission(request))
        return self._json(request)

    def _json(self, request: HttpRequest) -> HttpResponse:
        try:
            response = JsonResponse(all_values(overview()))
        except ImproperlyConfigured:
            response = JsonResponse({"error": _("The setting CATALOG_FALLBACK cannot be used.")}, status=500)
        patch_vary_headers(response, ("Accept",))
        return response

    @_reading
    def to_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Lead from the admin's log to the page: what is logged has no page of its own."""
        self._check(self.has_view_permission(request))
        return HttpResponseRedirect(self._page())

    # ------------------------------------------------------------------------------------------ doing

    def _verb_view(self, name: str) -> Callable[..., HttpResponse]:
        def view(request: HttpRequest, catalog: str, source: str) -> HttpResponse:
            return self.verb_view(request, name, catalog, source)

        return view

    @_both
    def verb_view(self, request: HttpRequest, name: str, catalog: str, source: str) -> HttpResponse:
        """Ask whether it is meant, then do it."""
        self._check(self.has_operate_permission(request))
        verb = VERBS[name]
        if not operating.is_known(catalog, source) and not (name == "restore" and _has_row(catalog, source)):
            raise Http404(_("There is no such source."))
        form = verb.form(request.POST if request.method == "POST" else None)
        if form.is_valid():
            run(verb, request, catalog, source, form.cleaned_data.get("reason", ""))
            return HttpResponseRedirect(self._page())
        context = self._context(request, verb.title, verb=verb, form=form, catalog=catalog, source=source)
        return TemplateResponse(request, f"{_TEMPLATES}/confirm.html", context)

    @_both
    def lookup_view(self, request: HttpRequest) -> HttpResponse:
        """Explain what a lookup would meet; make one where an operator asks for it."""
        is_asked = request.method == "POST"
        self._check(self.has_operate_permission(request) if is_asked else self.has_view_permission(request))
        given = request.POST if is_asked else request.GET
        form = LookUpForm(given if is_asked or "item_id" in given else None, initial=given.dict())
        context = self._context(request, _("Look up an ID"), form=form)
        if form.is_bound and form.is_valid():
            if is_asked:
                context["found"] = look_up(form.question(), refresh="refresh" in given)
                form.full_clean()  # explain what is there after the lookup
            context["explanation"] = form.explanation
        return TemplateResponse(request, f"{_TEMPLATES}/lookup.html", context)

    # ------------------------------------------------------------------------------------------ within

    def _page(self) -> str:
        return reverse(f"admin:{_NAME}_changelist", current_app=self.admin_site.name)

    def _context(self, request: HttpRequest, title: Any, **more: Any) -> dict[str, Any]:
        request.current_app = self.admin_site.name  # as the admin's own views do
        return {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "may_operate": self.has_operate_permission(request),
            **more,
        }


def _latest_changes() -> list[LogEntry] | None:
    """The latest changes, the newest first; None when the database does not answer."""
    try:
        kind = ContentType.objects.get_for_model(CatalogSource, for_concrete_model=False)
        return list(LogEntry.objects.filter(content_type=kind).select_related("user")[:_LATEST])
    except DatabaseError:
        return None


def _has_row(catalog: str, source: str) -> bool:
    return any((row.catalog, row.source) == (catalog, source) for row in overview(()).left_behind)
