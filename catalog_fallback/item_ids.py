"""Which IDs were given? Several, in their normal form, or an error that says what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable

from catalog_fallback import conf


def clean_ids(item_ids: Iterable[str], catalog: str) -> list[str]:
    """Return the different IDs in their normal form and in the order given.

    Raises UnknownCatalog, InvalidItemID, and what :func:`several` raises.
    """
    config = conf.catalog(catalog)
    return list(dict.fromkeys(config.clean_id(item_id) for item_id in several(item_ids)))


def several(item_ids: Iterable[str]) -> Iterable[str]:
    """Return the IDs as they were given; raises TypeError for one string, and for what holds none."""
    if isinstance(item_ids, (str, bytes)) or not isinstance(item_ids, Iterable):
        shown = f"the string {item_ids[:40]!r}" if isinstance(item_ids, str) else f"a {type(item_ids).__name__}"
        raise TypeError(f"item_ids: a list of IDs is needed, or another iterable of strings, not {shown}.")
    return item_ids
