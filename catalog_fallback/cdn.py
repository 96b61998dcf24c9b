"""By which tags does a CDN know an item? The item view sends them, and a purge names them again."""

from __future__ import annotations

import hashlib
import re

from catalog_fallback import conf
from catalog_fallback.configuration import CatalogConfig

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: What stands between tags, by header.
_SEPARATORS = {"Surrogate-Key": " ", "Cache-Tag": ","}


def item_tag(item_id: str, *, catalog: str = "default") -> str:
    """Return the tag of everything that shows this item.

    Raises UnknownCatalog and InvalidItemID.
    """
    config = conf.catalog(catalog)
    return _item_tag(config, config.clean_id(item_id))


def catalog_tag(catalog: str = "default") -> str:
    """Return the tag of everything that shows an item of this catalog. Raises UnknownCatalog."""
    return _catalog_tag(conf.catalog(catalog))


def header_value(config: CatalogConfig, item_id: str) -> str:
    """Return the value of the catalog's CDN_TAG_HEADER for an ID in its normal form."""
    return _SEPARATORS[config.cdn_tag_header or "Cache-Tag"].join((_item_tag(config, item_id), _catalog_tag(config)))


def _catalog_tag(config: CatalogConfig) -> str:
    return f"{_word(config.key_prefix)}-{config.alias}"


def _item_tag(config: CatalogConfig, item_id: str) -> str:
    return f"{_catalog_tag(config)}-{_word(item_id)}"


def _word(text: str) -> str:
    """The text where it is short and every CDN takes it as a part of a tag, else a digest that no such text equals."""
    return text if _PLAIN.fullmatch(text) else "~" + hashlib.sha256(text.encode()).hexdigest()[:32]
