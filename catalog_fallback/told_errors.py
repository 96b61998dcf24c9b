"""How is one of our errors told to a person? In the language that is active, where its message can be translated."""

from __future__ import annotations

from django.utils.translation import gettext

from catalog_fallback.exceptions import CatalogError


def told(error: Exception) -> str:
    """Return the message in the active language; as it is where a site's own code or another package wrote it."""
    if isinstance(error, CatalogError) and error.values:
        return gettext(error.template).format(**error.values)
    return str(error)
