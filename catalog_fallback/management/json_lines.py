"""Which IDs does a line of JSON hold? A text, ``{"id": …}``, ``{"ids": […]}``, or a whole notice."""

from __future__ import annotations

from typing import Any

from catalog_fallback import notices
from catalog_fallback.notices import MAX_IDS, Notice, Refused
from catalog_fallback.sources import json_body

_EXPECTED = f'JSON has to be a text, or an object with "id", "ids" (at most {MAX_IDS}), or a whole notice.'


def read(text: str, *, takes_notices: bool) -> list[str] | Notice | str:
    """Return the IDs of a line, or the notice that it is, or (a text) what is wrong with it.

    A notice is one that has a ``type``; where the command takes none, it is its IDs.
    """
    value = json_body.decode(text.encode())
    if takes_notices and isinstance(value, dict) and "type" in value:
        notice = notices.parse(text.encode())
        return notice.detail if isinstance(notice, Refused) else notice
    item_ids = _item_ids(value)
    return _EXPECTED if item_ids is None else item_ids


def _item_ids(value: Any) -> list[str] | None:
    match value:
        case str():
            return [value]
        case {"data": {"id": str() as item_id}} | {"id": str() as item_id}:
            return [item_id]
        case {"data": {"ids": list() as item_ids}} | {"ids": list() as item_ids}:
            is_right = len(item_ids) <= MAX_IDS and all(isinstance(each, str) for each in item_ids)
            return item_ids if is_right else None
        case _:
            return None
