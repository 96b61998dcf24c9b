"""Which URLs does the admin's test site have, and which cache can be switched off?"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.core.cache.backends.locmem import LocMemCache
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]


class StopListElsewhere:
    """A router that keeps this app's tables in the database with the alias "postgres"."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        """Return where the app's rows are; nothing for other models."""
        return "postgres" if model._meta.app_label == "catalog_fallback" else None

    db_for_write = db_for_read

    def allow_relation(self, *objects: Any, **hints: Any) -> bool:
        """Rows name their users, wherever those are."""
        return True


class SwitchedCache(LocMemCache):
    """A cache that can be switched off: whoever asks it then gets a ConnectionError."""

    is_on: ClassVar[bool] = True

    def get_many(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Answer, or fail as a cache that cannot be reached."""
        if not self.is_on:
            raise ConnectionError("cache is off")
        return super().get_many(*args, **kwargs)

    def set_many(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Write, or fail as a cache that cannot be reached."""
        if not self.is_on:
            raise ConnectionError("cache is off")
        return super().set_many(*args, **kwargs)
