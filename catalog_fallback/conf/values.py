"""What may one setting hold? Readers for numbers, durations, texts, lists and tables of keys.

A reader takes a value and its place, and returns the value as the configuration wants it. What it refuses it
complains about; the value that it then returns is never used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from catalog_fallback.conf.complaints import Place, did_you_mean, sized

Reader = Callable[[object, Place], Any]

#: Longest duration, in seconds: longer ones overflow in some cache or are a slip of the pen.
TEN_YEARS = 315_360_000.0

_SLUG = re.compile(r"[A-Za-z0-9_-]{1,64}")


def number(value: object) -> float | None:
    """Return an int or float as float; None for anything else, a bool and what no float can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def duration(minimum: float = 0.0, maximum: float = TEN_YEARS) -> Reader:
    """Seconds as int, float or timedelta, read as float."""
    expected = f"seconds from {minimum:g} to {maximum:.0f}, as int, float or timedelta"

    def read(value: object, place: Place) -> Any:
        seconds = value.total_seconds() if isinstance(value, timedelta) else number(value)
        if seconds is None or not minimum <= seconds <= maximum:
            return place.refuse(value, expected)
        return seconds

    return read


def fraction(*, may_be_zero: bool = False, may_be_one: bool = False) -> Reader:
    """A number between 0 and 1."""
    low = "0" if may_be_zero else "above 0"
    expected = f"a number from {low} to {'1' if may_be_one else 'below 1'}"

    def read(value: object, place: Place) -> Any:
        part = number(value)
        is_inside = part is not None and (0 < part < 1 or (may_be_zero and part == 0) or (may_be_one and part == 1))
        return part if is_inside else place.refuse(value, expected)

    return read


def count(minimum: int = 1, maximum: int = 10_000) -> Reader:
    """A whole number."""

    def read(value: object, place: Place) -> Any:
        if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
            return value
        return place.refuse(value, f"a whole number from {minimum} to {maximum}")

    return read


def boolean(value: object, place: Place) -> Any:
    """True or False, and nothing that only looks like it."""
    return value if isinstance(value, bool) else place.refuse(value, "True or False")


def choice(*allowed: str | int) -> Reader:
    """One of a few values."""
    expected = " or ".join(f'"{each}"' if isinstance(each, str) else str(each) for each in allowed)

    def read(value: object, place: Place) -> Any:
        is_plain = isinstance(value, (str, int)) and not isinstance(value, bool)
        return next((each for each in allowed if is_plain and each == value), None) or place.refuse(value, expected)

    return read


def text(pattern: str, expected: str) -> Reader:
    """A string that matches the whole pattern."""
    compiled = re.compile(pattern)

    def read(value: object, place: Place) -> Any:
        if isinstance(value, str) and compiled.fullmatch(value):
            return value
        return place.refuse(value, expected)

    return read


def optional(reader: Reader) -> Reader:
    """None, or what the reader takes."""

    def read(value: object, place: Place) -> Any:
        return None if value is None else reader(value, place)

    return read


def secret(reader: Reader) -> Reader:
    """The reader, at a place that shows nothing of what it holds."""

    def read(value: object, place: Place) -> Any:
        return reader(value, place.hidden())

    return read


def as_it_is(value: object, place: Place) -> object:
    """Whatever it is: for a key that is read elsewhere."""
    return value


def members(value: object, place: Place, expected: str) -> list[object]:
    """The members of a list, tuple or set; nothing (and a complaint) for anything else, a plain string too."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    place.refuse(value, expected)
    return []


def table(value: object, place: Place, expected: str) -> Mapping[Any, object]:
    """A dict; an empty one (and a complaint) for anything else, which is not shown: it may hold secrets."""
    if isinstance(value, Mapping):
        return value
    place.complain("E003", f"is {sized(value)}.", f"Set it to {expected}.")
    return {}


def keys(
    value: object, place: Place, readers: Mapping[str, Reader], *, is_optional: bool = False
) -> dict[str, Any] | None:
    """Read a dict by a table of keys: what was read of the keys that were given, their names in lower case.

    ``is_optional``: None would do as well, and has been looked for. Other keys are errors, with "did you mean". None
    when anything in the dict is wrong.
    """
    own = place.apart()
    given = table(value, own, f"{'None or ' if is_optional else ''}a dict with keys of {', '.join(readers)}")
    for key in given:
        if not isinstance(key, str) or key not in readers:
            own.at(key).complain("E002", "is not a known key.", did_you_mean(key, readers))
    read = {name.lower(): reader(given[name], own.at(name)) for name, reader in readers.items() if name in given}
    place.complaints.extend(own.complaints)
    return None if own.has_errors else read


def is_slug(alias: object, place: Place) -> bool:
    """Whether an alias can be part of a URL and of a cache key; complains if not."""
    if isinstance(alias, str) and _SLUG.fullmatch(alias):
        return True
    place.at(alias).complain(
        "E004", "is no alias.", "Name it with 1 to 64 of A-Z, a-z, 0-9, _ and -: it is part of URLs and of cache keys."
    )
    return False
