"""Does a path lead where it says, and nowhere else?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback.sources.json_path import MISSING, dig, first, follow, objects, path
from tests.sources.contract import VALUES

DOCUMENT = {"data": [{"a": {"b": None}}, {"a": 2}], "0": "zero", "": "empty"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", DOCUMENT),
        ("data.0.a.b", None),
        ("data.1.a", 2),
        ("0", "zero"),
        ("data.2", MISSING),
        ("data.-1", MISSING),
        ("data.²", MISSING),
        ("data.x", MISSING),
        ("data.99999999999999999999", MISSING),
        ("data.0.a.b.c", MISSING),
        ("nothing", MISSING),
    ],
)
def test_follow(written: str, expected: Any) -> None:
    """Names lead into objects, positions into lists; a null at the end is something."""
    assert follow(DOCUMENT, path(written)) == expected


@pytest.mark.parametrize("written", [".", "a.", ".a", "a..b", None, 5, ["a"], b"a"])
def test_what_is_no_path(written: Any) -> None:
    """A path is a text without empty parts."""
    with pytest.raises(ValueError, match="a path has to be a text"):
        path(written)


@given(VALUES, st.lists(st.sampled_from(["", "a", "0", "1", "-1", "99"]) | st.text(max_size=4), max_size=4))
def test_nothing_raises(value: Any, steps: list[str]) -> None:
    """Whatever the document is."""
    follow(value, tuple(steps))
    dig(value, *steps)
    assert all(isinstance(entry, dict) for entry in objects(value, 3))


def test_dig_enters_the_first_of_a_list() -> None:
    """Some APIs send one thing as a list."""
    assert dig(DOCUMENT, "data", "a", "b") is None
    assert dig({"a": [{"b": [1, 2]}]}, "a", "b") == [1, 2]
    assert dig([], "a") is None
    assert first([]) is None
    assert first([[1]]) == [1]
    assert objects([1, {"a": 1}, {"b": 2}, {"c": 3}], 3) == [{"a": 1}, {"b": 2}]
