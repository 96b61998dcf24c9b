"""What does a shop know of its own things, when no catalog can be asked? FALLBACK of the catalog "shop"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog_fallback.results import Lookup

_SHELF = {"P001": "Teapot", "P002": "Kettle", "P003": "Bench"}


def own_words(lookup: Lookup) -> Mapping[str, Any] | None:
    """What is on the shelf's label; None for what is not on a shelf."""
    name = _SHELF.get(lookup.item_id)
    return None if name is None else {"id": lookup.item_id, "name": f"{name} (as the shelf says)"}
