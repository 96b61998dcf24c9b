"""Which pages are there? The site's own, those of the package, and the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from portal import notices, views

urlpatterns = [
    path("", views.look_up, name="look_up"),
    path("look-up.json", views.look_up_json, name="look_up_json"),
    path("faults/", views.faults, name="faults"),
    path("notices/", notices.notices, name="notices"),
    path("catalog/", include("catalog_fallback.urls")),
    path("admin/", admin.site.urls),
]
