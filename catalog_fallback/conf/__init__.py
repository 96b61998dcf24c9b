"""What has the site configured? The setting CATALOG_FALLBACK as frozen values.

One parser feeds the system checks and the runtime: a wrong setting is named by ``manage.py check`` with place, value
and remedy, and the same text is what the first lookup raises. Importing this reads no settings.
"""

from __future__ import annotations

from catalog_fallback.conf.building import backend_of, build_source, source_complaints
from catalog_fallback.conf.caches import CacheFacts, cache_facts
from catalog_fallback.conf.complaints import Complaint, Place
from catalog_fallback.conf.registry import (
    PerAlias,
    PerCatalog,
    catalog,
    catalogs,
    configured,
    forget,
    on_setting_changed,
    parse,
)

__all__ = [
    "CacheFacts",
    "Complaint",
    "PerAlias",
    "PerCatalog",
    "Place",
    "backend_of",
    "build_source",
    "cache_facts",
    "catalog",
    "catalogs",
    "configured",
    "forget",
    "on_setting_changed",
    "parse",
    "source_complaints",
]
