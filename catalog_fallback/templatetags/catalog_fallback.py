"""How does a template look an item up? ``{% load catalog_fallback %}{% catalog_item "P001" as lookup %}``."""

from __future__ import annotations

from django import template

from catalog_fallback import services
from catalog_fallback.results import Lookup

register = template.Library()


@register.simple_tag
def catalog_item(item_id: str, *, catalog: str = "default", language: str | None = None, **vary: str) -> Lookup:
    """Look one item up; further names are the lookup's ``vary``.

    Raises what :func:`catalog_fallback.services.find_item` raises for bad arguments.
    """
    return services.find_item(item_id, catalog=catalog, language=language, vary=vary or None)
