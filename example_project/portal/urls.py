"""Which pages are there? The site's own, those of the package, and the admin."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.urls import include, path
from django.views.decorators.http import require_safe

from portal import actions, notices, views


@require_safe
def icon(request: HttpRequest) -> HttpResponse:
    """Lead to the site's icon."""
    return redirect(static("portal/icon.svg"))


urlpatterns = [
    path("", views.look_up, name="look_up"),
    path("look-up.json", views.look_up_json, name="look_up_json"),
    path("state.json", views.state_json, name="state_json"),
    path("do/<slug:action>/", actions.do, name="do"),
    path("notices/", notices.notices, name="notices"),
    path("catalog/", include("catalog_fallback.urls")),
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    # The admin's pages name no icon, so that browsers look for it here.
    path("favicon.ico", icon),
]
