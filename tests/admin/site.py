"""Which URLs does the admin's test site have, and which cache can be switched off?"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.core.cache.backends.locmem import LocMemCache
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]


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
