"""Which rows does this app keep? The stop list, isolated sources, and lookups that nobody could answer."""

from __future__ import annotations

from catalog_fallback.models.catalog_sources import CatalogSource
from catalog_fallback.models.fields import MAX_ID_LENGTH, ExactCharField, chunks
from catalog_fallback.models.stopped_items import StopOrigin, StoppedItem, StoppedItemQuerySet, StopReason
from catalog_fallback.models.unanswered_items import UnansweredItem

__all__ = [
    "MAX_ID_LENGTH",
    "CatalogSource",
    "ExactCharField",
    "StopOrigin",
    "StopReason",
    "StoppedItem",
    "StoppedItemQuerySet",
    "UnansweredItem",
    "chunks",
]
