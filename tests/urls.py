"""Which URLs do the tests see? The admin and the package's own."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("catalog/", include("catalog_fallback.urls")),
]
