"""Does an upstream's text become plain, bounded text?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback.sources import text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Tea", "Tea"),
        ("  Tea \n\t and\u3000cake\u00a0 ", "Tea and cake"),
        ("Tea &amp; cake", "Tea & cake"),
        ("&amp;amp; once", "&amp; once"),
        ("<i>Homo</i> sapiens", "Homo sapiens"),
        ("H<sub>2</sub>O", "H2O"),
        ("one<br/>two</p>three", "one two three"),
        ("&lt;script&gt;alert(1)&lt;/script&gt;", "alert(1)"),
        ("&amp;lt;b&amp;gt;", "&lt;b&gt;"),
        ("a < b and c > d", "a < b and c > d"),
        ("1 <2", "1 <2"),
        ("<!-- no -->yes", "yes"),
        ('<a href="x">link</a>', "link"),
        ("Cafe\u0301", "Café"),
        ("a\u0000b\u0007c\u009fd", "abcd"),
        ("a\n\u0007 b\u200b\u00a0c", "a b c"),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("&#0;&#xD800;x", "\ufffd\ufffdx"),
        ("", ""),
        (None, ""),
        (5, ""),
        (["Tea"], ""),
        ({"name": "Tea"}, ""),
        ("<b></b>", ""),
        ("\u200d \u200c", ""),
    ],
    ids=str,
)
def test_clean_name(value: Any, expected: str) -> None:
    """Entities, tags, white space, invisible characters; cleaned once, so that a second layer stays text."""
    assert text.clean_name(value) == expected


def test_long_names_are_cut() -> None:
    """A name is bounded, however long the value is."""
    assert text.clean_name("x" * 1_000_000) == "x" * (text.MAX_NAME - 1) + "…"
    assert text.clean_name("x" * text.MAX_NAME) == "x" * text.MAX_NAME
    assert len(text.joined(["x" * 400, "y" * 400], ": ")) == text.MAX_NAME


@given(st.text())
def test_cleaned_text_can_be_stored_and_shown(value: str) -> None:
    """Whatever comes in, what comes out is bounded, encodable, and has no controls or outer blanks."""
    cleaned = text.clean_name(value)
    assert cleaned.encode().decode() == cleaned
    assert len(cleaned) <= text.MAX_NAME
    assert cleaned == cleaned.strip()
    assert not any(ord(character) < 32 for character in cleaned)


@given(st.text("<>&;!-/ab \n#x", max_size=60))
def test_markup_of_any_shape_is_bounded_work(value: str) -> None:
    """Broken markup is only text."""
    assert isinstance(text.clean_name(value * 50), str)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["a", " ", None, 5, "b"], ["a", "b"]),
        ("a", ["a"]),
        (None, []),
        ({"a": 1}, []),
        (["x"] * 500, ["x"] * text.MAX_ENTRIES),
    ],
    ids=lambda value: str(value)[:20],
)
def test_texts(value: Any, expected: list[str]) -> None:
    """A list of texts, or one text, gives the texts that say something."""
    assert text.texts(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([{"name": "Ann"}, {"name": ""}, {}, "Bob", {"name": ["x"]}, None], ["Ann"]),
        ({"name": "Ann"}, []),
        ("Ann", []),
        (None, []),
    ],
)
def test_names_of(value: Any, expected: list[str]) -> None:
    """A list of objects gives their names."""
    assert text.names_of(value) == expected


@pytest.mark.parametrize(
    ("value", "is_kept"),
    [
        ("https://openlibrary.org/books/OL1M/A_Title", True),
        ("http://example.com/?q=1#x", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("//example.com/x", False),
        ("/books/OL1M", False),
        ("https://user:secret@example.com/", False),
        ("https://", False),
        ("https://[", False),
        ("https://example.com/a b", False),
        ("https://example.com/\n", False),
        ("https://example.com/" + "x" * 3000, False),
        (None, False),
    ],
    ids=lambda value: str(value)[:40],
)
def test_web_url(value: Any, *, is_kept: bool) -> None:
    """Only an absolute web address is a link."""
    assert text.web_url(value) == (value if is_kept else "")


def test_without_empty() -> None:
    """Fields that hold nothing are left out; False and 0 are something."""
    item = {"a": "", "b": [], "c": None, "d": False, "e": 0, "f": "x"}
    assert text.without_empty(item) == {"d": False, "e": 0, "f": "x"}


@pytest.mark.parametrize(("value", "expected"), [("", True), (" \t", True), ("\u200b\u202e\0", True), (" x ", False)])
def test_is_blank(value: str, *, expected: bool) -> None:
    """A text is blank when nothing of it shows."""
    assert text.is_blank(value) is expected


def test_limits_are_plain_json() -> None:
    """What the module makes is JSON."""
    assert json.loads(json.dumps(text.without_empty({"a": text.texts(["x"])}))) == {"a": ["x"]}
