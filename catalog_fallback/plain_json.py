"""Is a value made of plain JSON types? Then every cache can keep it, and every view can show it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
#: Size of the largest integer: a double holds as many, and every serializer takes it.
_LARGEST_BITS = 1024
#: Deepest nesting.
_DEEPEST = 32


def is_plain(value: object, depth: int = 0) -> bool:
    """Whether it is, through and through. Lone surrogates, numbers that no float holds and deep nesting are not."""
    if type(value) is dict:
        return depth < _DEEPEST and all(map(_is_text, value)) and _are_plain(value.values(), depth + 1)
    if type(value) is list:
        return depth < _DEEPEST and _are_plain(value, depth + 1)
    return _is_scalar(value)


def to_plain(value: Mapping[Any, Any], encoder: type[json.JSONEncoder] | None = None) -> dict[str, Any]:
    """Return a mapping as what comes out of its JSON; raises what cannot be said in JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(value), cls=encoder, allow_nan=False))
    if not is_plain(plain):
        raise ValueError("nested too deep, a lone surrogate, or an absurd number")
    return plain


def _are_plain(values: Iterable[object], depth: int) -> bool:
    # Most of them are short texts: nothing is called for these.
    return all((type(each) is str and each.isascii()) or is_plain(each, depth) for each in values)


def _is_text(value: object) -> bool:
    return type(value) is str and (value.isascii() or _SURROGATE.search(value) is None)


def _is_scalar(value: object) -> bool:
    if type(value) is int:
        return value.bit_length() <= _LARGEST_BITS
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) is bool or _is_text(value)
