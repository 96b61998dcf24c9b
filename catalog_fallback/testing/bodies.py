"""How is a body made worse? A good one without its name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from catalog_fallback.sources import text

_ROUNDS = 50


def without_name(body: bytes, item_in: Callable[[bytes], Mapping[str, Any] | None]) -> bytes:
    """Return a JSON body in which the texts that make up the item's name are empty.

    ``item_in`` tells which item an adapter finds in a body. Where it takes another text for the name then, that one is
    emptied as well, and so on, until it finds no item or a name that is in no text of the body.
    """
    document = json.loads(body.decode("utf-8-sig"))
    for _ in range(_ROUNDS):
        item = item_in(json.dumps(document).encode())
        places = [] if item is None else list(_places(document, item))
        if not places:
            break
        for container, key in places:
            container[key] = ""
    return json.dumps(document).encode()


def _places(node: Any, item: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of each text below a node that the item's name holds; the ID is left alone."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        value = node[key]
        if isinstance(value, str) and value != item["id"] and _holds(str(item["name"]), value):
            yield node, key
        yield from _places(value, item)


def _holds(name: str, value: str) -> bool:
    """Whether a text, as it is or cleaned, is in the name as words of its own."""
    forms = filter(None, (value.strip(), text.clean_name(value)))
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", name) is not None for form in forms)
