"""In which one form is an ISBN, a barcode or a DOI asked for, compared and kept?

Each function takes what a person typed or scanned and returns the normal form, or raises InvalidItemID. They are
``NORMALIZE_ID`` helpers: name them by their dotted path.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from catalog_fallback.exceptions import InvalidItemID, gettext_noop

if TYPE_CHECKING:
    from types import ModuleType

#: What the normal forms look like: the ``id_pattern`` of the sources that use them.
ISBN13_PATTERN = "97[89][0-9]{10}"
GTIN14_PATTERN = "[0-9]{14}"
DOI_PATTERN = r"10\.[0-9]{4,9}(?:\.[0-9]+)*/[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+"

_MAX_LENGTH = 512
_DASHES = "-\u00ad\u058a\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u207b\u2212\u30fc\ufe58\ufe63\uff0d"
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060"
#: Full-width digits become ASCII; dashes and invisible characters go. Other scripts' digits stay, and are refused.
_CLEANED = str.maketrans("０１２３４５６７８９ｘＸ", "0123456789xX", _DASHES + _INVISIBLE)
_ISBN_LABEL = re.compile(r"\AISBN(?:1[03](?=:|[0-9X]{10}))?:?")
_ADD_ON = re.compile(r"97[89][0-9]{10}(?:[0-9]{2}|[0-9]{5})")
_GTIN = re.compile(r"[0-9]{8}|[0-9]{12,14}")
_DOI_URL = re.compile(r"(?:https?://)?(?:dx\.|www\.)?doi\.org/", re.IGNORECASE)
_DOI_LABEL = re.compile(r"\Adoi:\s*", re.IGNORECASE)
_DOI = re.compile(DOI_PATTERN)
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def isbn13(item_id: str) -> str:
    """Return an ISBN (9, 10 or 13 digits, with or without dashes or a label) as the 13 digits of its ISBN-13.

    A two- or five-digit add-on behind the bar code is cut off. Needs the extra ``books``.
    """
    number = _ISBN_LABEL.sub("", squeezed(item_id).upper(), count=1)
    if _ADD_ON.fullmatch(number) is not None:
        number = number[:13]
    isbn = _stdnum_isbn()
    if not number.isascii() or not isbn.is_valid(number):
        text = gettext_noop("{item_id} is no ISBN: it needs 10 or 13 digits and a check digit that fits.")
        raise InvalidItemID(text, item_id=_shown(item_id))
    return str(isbn.compact(isbn.to_isbn13(isbn.compact(number))))


def isbn13_or_none(value: object) -> str | None:
    """Return a reply's ISBN in the form in which ISBNs are compared; None for anything that is none."""
    if not isinstance(value, str):
        return None
    try:
        return isbn13(value)
    except InvalidItemID:
        return None


def gtin14(item_id: str) -> str:
    """Return a barcode (GTIN, EAN, UPC: 8, 12, 13 or 14 digits) padded with zeros to 14.

    A wrong check digit is no reason to refuse: such codes are in use, and in the catalogs.
    """
    number = squeezed(item_id)
    if _GTIN.fullmatch(number) is None or not number.strip("0"):
        text = gettext_noop("{item_id} is no barcode: it needs 8, 12, 13 or 14 digits that are not all zero.")
        raise InvalidItemID(text, item_id=_shown(item_id))
    return number.zfill(14)


def doi(item_id: str) -> str:
    """Return a DOI, typed plainly, with ``doi:`` or as a doi.org URL, with its ASCII letters in lower case."""
    number = _string(item_id).strip()
    url = _DOI_URL.match(number)
    if url is not None:
        number = _percent_decoded(number[url.end() :])
    number = _without_punctuation(_DOI_LABEL.sub("", number, count=1))
    if _DOI.fullmatch(number) is None:
        text = gettext_noop("{item_id} is no DOI: it has to look like {example}.")
        raise InvalidItemID(text, item_id=_shown(item_id), example="10.1234/abc")
    return ascii_lower(number)


def ascii_lower(doi: str) -> str:
    """Return a DOI in the form in which DOIs are compared: only ASCII letters have no case."""
    return doi.translate(_ASCII_LOWER)


def missing_extra() -> str | None:
    """Return what a system check says when ISBNs cannot be checked, None when they can."""
    try:
        _stdnum_isbn()
    except ImportError as error:
        return str(error)
    return None


def _stdnum_isbn() -> ModuleType:
    try:
        from stdnum import isbn  # noqa: PLC0415  # an extra: sites without books do not need it
    except ImportError as error:
        raise ImportError('ISBNs need python-stdnum: pip install "django-catalog-fallback[books]"') from error
    return isbn


def _string(item_id: object) -> str:
    if not isinstance(item_id, str) or len(item_id) > _MAX_LENGTH:
        raise InvalidItemID(gettext_noop("{item_id} is no item ID."), item_id=_shown(item_id))
    return item_id


def squeezed(item_id: str) -> str:
    """Return what was typed without dashes, blanks and invisible characters, with full-width digits in ASCII."""
    return "".join(_string(item_id).translate(_CLEANED).split())


def _percent_decoded(number: str) -> str:
    try:
        return unquote(number, errors="strict")
    except UnicodeDecodeError as error:
        text = gettext_noop("A DOI in a URL has to be percent-encoded {encoding}.")
        raise InvalidItemID(text, encoding="UTF-8") from error


def _without_punctuation(number: str) -> str:
    """Drop what a sentence put behind a DOI; a closing bracket only where none was opened."""
    while number and (number[-1] in ".,;" or (number[-1] == ")" and number.count(")") > number.count("("))):
        number = number[:-1]
    return number


def _shown(item_id: object) -> str:
    if not isinstance(item_id, str):
        return f"A value of type {type(item_id).__name__}"
    return ascii(item_id if len(item_id) <= 80 else item_id[:80] + "…")
