"""Is a body sound JSON? Strict decoding of what strangers send; it answers with a value, never with an exception.

Refused: bytes that are not UTF-8 (a BOM is accepted), ``NaN`` and ``Infinity``, numbers that no float can hold, nesting
that is too deep to keep or show, lone surrogates, and two values for one of the names that decide what a reply means.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Collection
from enum import Enum
from typing import Any, Final

#: Names that may occur only once in any object.
UNIQUE_NAMES: Final = frozenset({"item", "id", "name"})
MAX_DEPTH: Final = 64
#: An integer with more digits is as absurd as ``1e999``: no float holds it, and caches crash on it.
MAX_DIGITS: Final = 308
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class Failure(Enum):
    """Why there is no value (None is one)."""

    INVALID_JSON = "invalid_json"


INVALID_JSON: Final = Failure.INVALID_JSON


def decode(body: bytes, unique: Collection[str] = UNIQUE_NAMES) -> Any:
    """Return the value of a JSON body, or ``INVALID_JSON``. ``unique``: names that no object may hold twice."""
    try:
        text = body.decode("utf-8-sig")
        value = _decoder(frozenset(unique)).decode(text)
    except (ValueError, RecursionError):
        return INVALID_JSON
    return INVALID_JSON if _is_deep(text, value) or _has_lone_surrogates(text, value) else value


@functools.lru_cache(maxsize=64)
def _decoder(unique: frozenset[str]) -> json.JSONDecoder:
    """Making one costs as much as decoding a small body; threads may share it."""
    return json.JSONDecoder(
        parse_int=_bounded_int,
        parse_float=_finite_float,
        parse_constant=_refuse,
        object_pairs_hook=_object_with_unique(unique),
    )


def _bounded_int(digits: str) -> int:
    return int(digits) if len(digits) <= MAX_DIGITS else _refuse("an integer with too many digits")


def _finite_float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse("a number that no float can hold")


def _refuse(what: str) -> Any:
    raise ValueError(what)


def _object_with_unique(unique: Collection[str]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def make(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            if any(names.count(name) > 1 for name in unique):
                _refuse("two values for one name")
        return made

    return make


def _is_deep(text: str, value: Any) -> bool:
    """Whether the value is nested deeper than MAX_DEPTH; most bodies are too small to be walked through."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in _children(node) if isinstance(child, (dict, list))]
        if not level:
            return False
    return True


def _children(node: Any) -> Collection[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def _has_lone_surrogates(text: str, value: Any) -> bool:
    """Whether a string holds half a surrogate pair, which cannot be stored or shown; only escapes can make one."""
    if _SURROGATE_ESCAPE.search(text) is None:
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
