"""Which pages are there? The site's own and the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from portal import views

urlpatterns = [
    path("", views.look_up, name="look_up"),
    path("look-up.json", views.look_up_json, name="look_up_json"),
    path("faults/", views.faults, name="faults"),
    path("admin/", admin.site.urls),
]
