"""What can a person see and do in Django's admin? One module a model; importing this registers them."""

from __future__ import annotations

from catalog_fallback.admin.catalog_sources import CatalogSourceAdmin
from catalog_fallback.admin.stopped_items import StoppedItemAdmin
from catalog_fallback.admin.unanswered_items import UnansweredItemAdmin

__all__ = ["CatalogSourceAdmin", "StoppedItemAdmin", "UnansweredItemAdmin"]
