"""Do ISBNs, barcodes and DOIs come into one form, and is everything else refused?"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.sources import identifiers
from catalog_fallback.sources.identifiers import doi, gtin14, isbn13


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("9780306406157", "9780306406157"),
        ("0306406152", "9780306406157"),
        ("978-0-306-40615-7", "9780306406157"),
        (" 978 0 306 40615 7 ", "9780306406157"),
        ("978–0—306‑40615−7", "9780306406157"),
        ("９７８０３０６４０６１５７", "9780306406157"),
        ("ISBN 9780306406157", "9780306406157"),
        ("isbn: 0-306-40615-2", "9780306406157"),
        ("ISBN-13: 978-0-306-40615-7", "9780306406157"),
        ("ISBN-10 0-306-40615-2", "9780306406157"),
        ("ISBN-13 9780306406157", "9780306406157"),
        ("ISBN 1338878921", "9781338878929"),
        ("\ufeff978\u200b0306406157", "9780306406157"),
        ("080442957X", "9780804429573"),
        ("080442957x", "9780804429573"),
        ("０８０４４２９５７ｘ", "9780804429573"),
        ("306406152", "9780306406157"),
        ("9791090636071", "9791090636071"),
        ("978030640615712", "9780306406157"),
        ("978030640615790000", "9780306406157"),
        ("2070464237", "9782070464234"),
    ],
)
def test_isbn13(typed: str, expected: str) -> None:
    """Whatever a person typed or scanned becomes the thirteen digits under which books are compared."""
    assert isbn13(typed) == expected
    assert isbn13(expected) == expected
    assert re.fullmatch(identifiers.ISBN13_PATTERN, expected)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        " ",
        "ISBN",
        "9780306406158",
        "0306406153",
        "1920305010203",
        "4910123456789",
        "97803064061",
        "978030640615X",
        "X306406152",
        "9780306406157 9780306406157",
        "9780306406157123",
        "९७८०३०६४०६१५७",
        "97803064061²7",
        "97803064061\U0001d7d37",
        "-",
        "P001",
        "9780306406157\x00",
        "../9780306406157",
        "9" * 5000,
        "\ud800",
        None,
        9780306406157,
        b"9780306406157",
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_is_no_isbn(typed: Any) -> None:
    """Wrong check digits, in-store and magazine codes, other scripts' digits and other types are refused."""
    with pytest.raises(InvalidItemID):
        isbn13(typed)


def test_open_library_8120_thirteen_digits_in_isbn_10() -> None:
    """Which list of a reply a number was in does not matter; what cannot be compared is None."""
    assert identifiers.isbn13_or_none("9780306406157") == "9780306406157"
    assert identifiers.isbn13_or_none("UOM:39015012345678") is None
    assert identifiers.isbn13_or_none(9780306406157) is None
    assert identifiers.isbn13_or_none(None) is None


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("3029330003533", "03029330003533"),
        ("12345678", "00000012345678"),
        ("200000000034", "00200000000034"),
        ("00200000000034", "00200000000034"),
        (" 3 029330 003533 ", "03029330003533"),
        ("3-029330-003533", "03029330003533"),
        ("３０２９３３０００３５３３", "03029330003533"),
        ("3029330003534", "03029330003534"),
    ],
)
def test_gtin14(typed: str, expected: str) -> None:
    """Barcodes of every length become fourteen digits; a wrong check digit is no reason to refuse."""
    assert gtin14(typed) == expected
    assert gtin14(expected) == expected
    assert re.fullmatch(identifiers.GTIN14_PATTERN, expected)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "0" * 8,
        "0" * 13,
        "0" * 14,
        "1",
        "1234567",
        "123456789",
        "12345678901",
        "123456789012345",
        "products/$",
        "1234567x",
        "१२३४५६७८",
        "1234567²",
        None,
        12345678,
    ],
    ids=ascii,
)
def test_what_is_no_barcode(typed: Any) -> None:
    """Other lengths, other characters and nothing but zeros are refused."""
    with pytest.raises(InvalidItemID):
        gtin14(typed)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("10.3892/ijo_00000353", "10.3892/ijo_00000353"),
        ("https://doi.org/10.3892/IJO_00000353", "10.3892/ijo_00000353"),
        ("http://dx.doi.org/10.3892/ijo_00000353", "10.3892/ijo_00000353"),
        ("doi.org/10.3892/ijo_00000353", "10.3892/ijo_00000353"),
        (" doi:10.1045/january2017-burton ", "10.1045/january2017-burton"),
        ("DOI: 10.1045/january2017-burton", "10.1045/january2017-burton"),
        ("10.1111/(ISSN)1442-9993", "10.1111/(issn)1442-9993"),
        ("10.1371/journal.pone.0033693).", "10.1371/journal.pone.0033693"),
        ("10.1371/journal.pone.0033693;", "10.1371/journal.pone.0033693"),
        ("10.1890/0012-9615(1999)069[0569:EDILSA]2.0.CO;2", "10.1890/0012-9615(1999)069[0569:edilsa]2.0.co;2"),
        ("10.5067/terra+aqua/ceres/cldtyphist_l3.004", "10.5067/terra+aqua/ceres/cldtyphist_l3.004"),
        ("10.1234/a/", "10.1234/a/"),
        ("10.1234/a%2Fb", "10.1234/a%2fb"),
        ("https://doi.org/10.1234/a%2Fb%3Cc%3E", "10.1234/a/b<c>"),
        ("10.1000.10/123", "10.1000.10/123"),
        ("10.1234/ÄÖ", "10.1234/ÄÖ"),
    ],
)
def test_doi(typed: str, expected: str) -> None:
    """A DOI loses its wrapping and its ASCII capitals, and is percent-decoded only where it came as a URL."""
    assert doi(typed) == expected
    assert re.fullmatch(identifiers.DOI_PATTERN, expected)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "10.1234",
        "10.1234/",
        "10.12/x",
        "11.1234/x",
        "https://example.com/10.1234/x",
        "10.1234/a b",
        "10.1234/a\x00b",
        "https://doi.org/10.1234/%ff",
        "https://doi.org/10.1234/a%20b",
        "10.१२३४/x",
        "10.1234/\ud800",
        "10.1234/).",
        None,
        10,
        "10.1234/" + "x" * 600,
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_is_no_doi(typed: Any) -> None:
    """Blanks, controls, broken encodings and other URLs are refused."""
    with pytest.raises(InvalidItemID):
        doi(typed)


@pytest.mark.parametrize("normalize", [isbn13, gtin14, doi])
@given(typed=st.text(max_size=40) | st.from_regex(r"[0-9 -]{8,20}|10\.[0-9]{4}/.{1,20}"))
def test_normal_form_is_a_fixed_point(normalize: Callable[[str], str], typed: str) -> None:
    """Any text is refused with a ValueError, or becomes a form that normalises to itself."""
    try:
        normal = normalize(typed)
    except ValueError:
        return
    assert normalize(normal) == normal


def test_missing_stdnum_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the message names what to install; barcodes and DOIs do not need it."""
    monkeypatch.setitem(sys.modules, "stdnum", None)
    message = identifiers.missing_extra()
    assert message is not None
    assert 'pip install "django-catalog-fallback[books]"' in message
    with pytest.raises(ImportError, match="python-stdnum"):
        isbn13("9780306406157")
    assert gtin14("12345678") == "00000012345678"
    assert doi("10.1234/x") == "10.1234/x"


def test_extra_is_there() -> None:
    """With the extra there is nothing to complain about."""
    assert identifiers.missing_extra() is None
