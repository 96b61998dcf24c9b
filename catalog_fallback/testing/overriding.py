"""How does one test get other settings for one catalog? A context manager and decorator, as Django's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.test.utils import override_settings

_SETTING = "CATALOG_FALLBACK"


class override_catalog(override_settings):  # noqa: N801  # named like the one it extends
    """Replace keys of one catalog, or add a catalog, and leave the others as they are.

    ``with override_catalog("books", TTL=5, SOURCES={…}):`` or ``@override_catalog(TTL=5)`` over a function or a Django
    test case. A key replaces that key's whole value. The cache is not emptied: entries of other tests are still there.
    """

    def __init__(self, alias: str = "default", /, **keys: Any) -> None:
        """Take the catalog's alias and its settings keys."""
        super().__init__()
        self._alias = alias
        self._keys = keys

    def enable(self) -> None:
        """Begin."""
        self.options = self._over(getattr(settings, _SETTING, None))
        super().enable()

    def save_options(self, test_func: Any) -> None:
        """Note the settings on a test case that is decorated; its own setup applies them."""
        noted = test_func._overridden_settings or {}
        self.options = self._over(noted.get(_SETTING, getattr(settings, _SETTING, None)))
        super().save_options(test_func)

    def _over(self, catalogs: Mapping[str, Any] | None) -> dict[str, Any]:
        """The whole setting with our keys; made late, because another override may have come before."""
        others = catalogs or {}
        return {_SETTING: {**others, self._alias: {**others.get(self._alias, {}), **self._keys}}}
