"""What lies at the end of a path through a JSON document? Lookups that never raise."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

Path = tuple[str, ...]


class Nothing(Enum):
    """Why there is no value (None is one)."""

    MISSING = "missing"


MISSING: Final = Nothing.MISSING


def path(written: object) -> Path:
    """Return a path as it is written in settings, ``"data.items.0"``, in its parts; ``""`` is the document itself.

    Raises ValueError for anything else.
    """
    if not isinstance(written, str) or (written and not all(written.split("."))):
        raise ValueError('a path has to be a text such as "data.item"')
    return tuple(written.split(".")) if written else ()


def follow(value: Any, steps: Path) -> Any:
    """Return what lies at the end of a path, MISSING where it ends early. Lists are entered by position."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step, MISSING)
        elif isinstance(value, list):
            value = _at(value, step)
        else:
            return MISSING
    return value


def _at(values: list[Any], step: str) -> Any:
    is_position = step.isascii() and step.isdigit() and len(step) < 10
    return values[int(step)] if is_position and int(step) < len(values) else MISSING


def dig(value: Any, *names: str) -> Any:
    """Return what lies at the end of a path of names, of a list its first entry; None where the path ends early."""
    for name in names:
        value = first(value)
        value = value.get(name) if isinstance(value, dict) else None
    return value


def first(value: Any) -> Any:
    """Return the first entry of a list, None of an empty one; anything else as it is."""
    if isinstance(value, list):
        return value[0] if value else None
    return value


def objects(value: Any, limit: int) -> list[dict[str, Any]]:
    """Return the objects of a list, at most so many; of anything else none."""
    return [entry for entry in value[:limit] if isinstance(entry, dict)] if isinstance(value, list) else []
