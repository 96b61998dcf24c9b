"""Is strict JSON decoding strict where it matters, and lenient where JSON is?"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback.sources.json_body import INVALID_JSON, MAX_DEPTH, MAX_DIGITS, decode


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"null", None),
        (b"[]", []),
        (b' {"a": [1, -2.5e3, true, "\\u00e9\\/"]} \n', {"a": [1, -2500.0, True, "é/"]}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ('"\\ud83d\\ude00 é"'.encode(), "😀 é"),
        (b'{"x": 1, "x": 2}', {"x": 2}),
        (b'[{"id": 1}, {"id": 2}, {"a": {"id": 3}, "id": 4}]', [{"id": 1}, {"id": 2}, {"a": {"id": 3}, "id": 4}]),
        (b"9" * MAX_DIGITS, int("9" * MAX_DIGITS)),
        (b"1e308", 1e308),
        (b"-0", 0),
        (b'"\\u0000"', "\0"),
        (b'"\\\\ud800"', "\\ud800"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_sound_json(body: bytes, value: Any) -> None:
    """Sound JSON in UTF-8 is decoded as ``json`` does it, with or without a BOM."""
    assert decode(body) == value


@pytest.mark.parametrize("count", [MAX_DIGITS + 1, 4300, 4301, 5000, 100_000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_cpython_95778_integers_with_too_many_digits(count: int, sign: str) -> None:
    """An integer that no float holds, and that crashes caches and ``int`` itself, is invalid JSON, not a ValueError."""
    assert decode(f'{{"x": {sign}{"9" * count}}}'.encode()) is INVALID_JSON


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400 + ".5"])
def test_numbers_that_are_not_finite(number: str) -> None:
    """``NaN``, the infinities, and floats that become one are refused."""
    assert decode(f"[{number}]".encode()) is INVALID_JSON


@pytest.mark.parametrize(
    "body", [b'"\\ud800"', b'"\\uDFFF"', b'"\\ude00\\ud83d"', b'{"\\ud800": 1}', b'[["x\\udbffy"]]', b'"\xed\xa0\x80"']
)
def test_lone_surrogates(body: bytes) -> None:
    """Half a character, in a value or a name, cannot be stored."""
    assert decode(body) is INVALID_JSON


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_depth(opening: str, closing: str) -> None:
    """Nesting has one limit, whatever the interpreter's stack would bear."""
    levels = opening.count("[") + opening.count("{")

    def nested(depth: int) -> bytes:
        count = depth // levels
        return (opening * count + "1" + closing * count).encode()

    assert decode(nested(MAX_DEPTH)) is not INVALID_JSON
    assert decode(nested(MAX_DEPTH + levels)) is INVALID_JSON
    assert decode(nested(200_000)) is INVALID_JSON


def test_depth_does_not_count_brackets() -> None:
    """Wide documents, and brackets inside texts, are not deep."""
    wide: Any = [[{"a": []}] for _ in range(1000)]
    assert decode(json.dumps(wide).encode()) == wide
    assert decode(json.dumps("[" * 1000).encode()) == "[" * 1000


def test_recursion_near_the_end_of_the_stack() -> None:
    """A stack that is nearly used up makes a deep body invalid, not an exception."""
    body = (b"[" * MAX_DEPTH) + (b"]" * MAX_DEPTH)

    def descend(levels: int) -> Any:
        return decode(body) if levels == 0 else descend(levels - 1)

    frames = len([*_frames()])
    assert descend(sys.getrecursionlimit() - frames - 40) in (INVALID_JSON, json.loads(body))


def _frames() -> Any:
    frame: Any = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


@pytest.mark.parametrize("name", ["id", "name", "item"])
def test_names_that_decide_are_unique(name: str) -> None:
    """The names of the envelope may not come twice in one object, at any depth."""
    assert decode(f'[{{"x": {{"{name}": 1, "{name}": 1}}}}]'.encode()) is INVALID_JSON


def test_adapters_name_their_own_unique_names() -> None:
    """An adapter says which names decide in its documents."""
    assert decode(b'{"kind": 1, "kind": 2}', {"kind"}) is INVALID_JSON
    assert decode(b'{"id": 1, "id": 2}', {"kind"}) == {"id": 2}


@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    """Random bytes decode or are refused; nothing is raised."""
    decode(body)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_round_trip(value: Any, ascii_only: bool) -> None:
    """Whatever JSON can say comes through unchanged."""
    assert decode(json.dumps(value, ensure_ascii=ascii_only).encode()) == value
