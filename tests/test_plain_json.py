"""Is what is called plain JSON just that, and whose items are looked through at all?"""

from __future__ import annotations

import json
from collections import OrderedDict
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback import conf
from catalog_fallback.fallback import chain_of
from catalog_fallback.plain_json import is_plain, to_plain
from catalog_fallback.results import Reply, Verdict
from catalog_fallback.sources import json_body
from catalog_fallback.sources.json_item import JSONItemSource


def nested(depth: int, value: Any = 1) -> Any:
    """So many lists in one another."""
    for _ in range(depth):
        value = [value]
    return value


def circle() -> dict[str, Any]:
    """Holds itself twice: whoever walked through all of it would never end."""
    value: dict[str, Any] = {}
    value.update(one=value, two=value)
    return value


class Colour(StrEnum):
    """A text that is more than a text."""

    RED = "red"


PLAIN: dict[str, Any] = {
    "a text": "Tee ☕ \U0001f375",
    "an empty object": {},
    "numbers": [0, -1, 1.5, 2**1024 - 1],
    "truth and null": [True, False, None],
    "nested as deep as may be in an object": nested(31),
    "an object in a list in an object": {"a": [{"b": ["c"]}]},
}
NOT_PLAIN: dict[str, Any] = {
    "a tuple": (1, 2),
    "a set": {1},
    "bytes": b"x",
    "a decimal": Decimal(1),
    "NaN": float("nan"),
    "infinity": [float("inf")],
    "a number that no float holds": 2**1024,
    "a lone surrogate": "\ud800",
    "a lone surrogate in a key": {"\udc00": 1},
    "a key that is no text": {1: "x"},
    "a kind of dict": OrderedDict(a=1),
    "a kind of text": Colour.RED,
    "nested too deep": nested(33),
    "circular": circle(),
    "an object": object(),
}


@pytest.mark.parametrize("value", PLAIN.values(), ids=PLAIN)
def test_plain(value: Any) -> None:
    """Alone, and in an object, which stays what it is."""
    assert is_plain(value)
    assert to_plain({"it": value}) == {"it": value}


@pytest.mark.parametrize("value", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_not_plain(value: Any) -> None:
    """Alone, last in a list, and in an object."""
    assert not is_plain(value)
    assert not is_plain(["x", value])
    assert not is_plain({"x": "y", "it": value})


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_what_is_plain_survives_its_json(value: Any) -> None:
    """And comes back equal."""
    if is_plain(value):
        assert json.loads(json.dumps(value, allow_nan=False)) == value


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: json.dumps({"n": text}).encode()))
def test_what_our_decoder_brings_is_plain(body: bytes) -> None:
    """That is why it is not looked through again; it allows a deeper nesting, which ends far below any limit."""
    value = json_body.decode(body)
    assert value is json_body.INVALID_JSON or is_plain(value)


# --- whose items are looked through -----------------------------------------------------------------------------------


class OwnParse(JSONItemSource):
    """A site's adapter that reads replies by itself."""

    needs_url: ClassVar[bool] = False

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """As the class above it; nobody can know that."""
        return super().parse(reply, item_id)


class OwnFetch(JSONItemSource):
    """A site's adapter that only calls by itself."""

    needs_url: ClassVar[bool] = False


BOOKS = "catalog_fallback.sources.open_library.OpenLibrarySource"


@pytest.mark.parametrize(
    ("backend", "is_trusted"),
    [
        (f"{__name__}.OwnFetch", True),
        (f"{__name__}.OwnParse", False),
        ("tests.many.Many", False),
        (BOOKS, True),
        ("catalog_fallback.sources.simulated.SimulatedSource", True),
        ("catalog_fallback.testing.FakeSource", True),
    ],
    ids=["own calls", "own reading", "own reading of many", "an adapter of ours", "simulated", "fake"],
)
def test_whose_items_are_trusted(settings: Any, backend: str, is_trusted: bool) -> None:
    """Those that our own decoder and our own adapters made."""
    source = {"BACKEND": backend}
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"it": source}, "CONTACT": "me@example.com"}}
    (caller,) = chain_of[conf.catalog("default").alias].callers
    assert caller._brings_plain_items is is_trusted
