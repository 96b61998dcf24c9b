"""What is behind a dotted path? Functions, classes and backends that settings name."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from django.utils.module_loading import import_string

from catalog_fallback.conf.complaints import Place, did_you_mean
from catalog_fallback.conf.values import members
from catalog_fallback.sources.base import Source

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_ERROR_LENGTH = 200


def is_dotted(value: object) -> bool:
    """Whether a value looks like a dotted path."""
    return isinstance(value, str) and _DOTTED.fullmatch(value) is not None


def imported(path: str, place: Place) -> Any:
    """Return what is behind a path; None, and a complaint, when there is nothing or its module fails."""
    try:
        return import_string(path)
    except Exception as error:  # noqa: BLE001  # whatever its module raises
        why = f"{type(error).__name__}: {str(error)[:_ERROR_LENGTH]}"
        place.complain("E007", f"is {place.shown(path)}, which cannot be imported ({why}).", _closest(path))
        return None


def _closest(path: str) -> str:
    """A remedy for a path that cannot be imported: the name in that module that is closest, if any is."""
    module_path, _, name = path.rpartition(".")
    try:
        names = [each for each in vars(import_module(module_path)) if not each.startswith("_")]
    except Exception:  # noqa: BLE001  # whatever its module raises
        names = []
    hint = did_you_mean(name, names)
    return hint if hint.startswith("Did you mean") else "Check the spelling, and that the module can be imported."


def function(value: object, place: Place) -> Any:
    """Read a callable, or the dotted path to one."""
    expected = "a callable or the dotted path to one"
    if not is_dotted(value):
        return value if callable(value) else place.refuse(value, expected)
    found = imported(str(value), place)
    if found is None or callable(found):
        return found
    return place.refuse(value, expected, "E007")


def backend(value: object, place: Place) -> type[Source] | None:
    """Read the dotted path to a subclass of Source."""
    expected = 'the dotted path to a subclass of "catalog_fallback.sources.base.Source"'
    if not is_dotted(value):
        place.refuse(value, expected)
        return None
    found = imported(str(value), place)
    if found is None or (isinstance(found, type) and issubclass(found, Source)):
        return found
    place.refuse(value, expected, "E007")
    return None


def exceptions(value: object, place: Place) -> tuple[type[Exception], ...]:
    """Read a list of exception classes, or of dotted paths to them."""
    expected = "a list of exception classes or of dotted paths to them"
    found: list[type[Exception]] = []
    for each in members(value, place, expected):
        named = imported(str(each), place) if is_dotted(each) else each
        if isinstance(named, type) and issubclass(named, Exception):
            found.append(named)
        elif named is not None or each is None:
            place.refuse(each, expected, "E007")
    return tuple(found)
