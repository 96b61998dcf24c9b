"""How does an upstream's text become plain text of ours? Names are cleaned once, extra fields are bounded.

What comes out holds no tags, but it is still a stranger's text: escape it on output like any other.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

MAX_NAME: Final = 500
MAX_ENTRIES: Final = 100
MAX_URL: Final = 2000
_BREAK = re.compile(r"<(?:br|/p|/div|/li)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>", re.DOTALL)
#: Invisible characters that reorder or hide text. Joiners stay: several scripts need them.
_INVISIBLE = frozenset("\u00ad\u200b\u200e\u200f\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean_name(value: object, limit: int = MAX_NAME) -> str:
    """Return a text with entities unescaped, tags stripped, white space folded, in NFC; ``""`` when nothing is left.

    Anything that is no string is no text.
    """
    if not isinstance(value, str):
        return ""
    text = html.unescape(value[: limit * 10])
    text = _TAG.sub("", _BREAK.sub(" ", text))
    return _shortened(unicodedata.normalize("NFC", _folded(text)), limit)


def is_blank(value: str) -> bool:
    """Whether a text shows nothing: white space, controls and invisible characters only."""
    return not any(map(_shows, value))


def _folded(text: str) -> str:
    """Return the text with single blanks and without what must not be in it; ``""`` when nothing of it shows."""
    kept = " ".join("".join(filter(_may_stay, text)).split())
    return "" if is_blank(kept) else kept


def _may_stay(character: str) -> bool:
    if character in _INVISIBLE:
        return False
    return character.isspace() or unicodedata.category(character) not in _REFUSED


def _shows(character: str) -> bool:
    return not character.isspace() and unicodedata.category(character) not in _SHOWS_NOTHING


#: Controls and surrogates.
_REFUSED = frozenset({"Cc", "Cs"})
#: Those, and format characters such as joiners.
_SHOWS_NOTHING = _REFUSED | {"Cf"}


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def joined(cleaned: Iterable[str], separator: str) -> str:
    """Return the parts, each already cleaned, that are not empty: joined, and bounded like one name."""
    return _shortened(separator.join(filter(None, cleaned)), MAX_NAME)


def texts(value: object) -> list[str]:
    """Return the cleaned texts of a list (or of a single text) that are not empty."""
    values = value if isinstance(value, list) else [value]
    return [text for text in map(clean_name, values[:MAX_ENTRIES]) if text]


def names_of(value: object, key: str = "name") -> list[str]:
    """Return the cleaned names of a list of objects: ``[{"name": …}, …]``."""
    entries = value[:MAX_ENTRIES] if isinstance(value, list) else []
    return texts([entry.get(key) for entry in entries if isinstance(entry, dict)])


def web_url(value: object) -> str:
    """Return an absolute http(s) URL as it is, else ``""``: a link must not run scripts or carry a password."""
    if not isinstance(value, str) or len(value) > MAX_URL or not value.isascii() or not value.isprintable():
        return ""
    try:
        parts = urlsplit(value)
    except ValueError:
        return ""
    is_plain = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    return value if is_plain and " " not in value else ""


def without_empty(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping without the fields that hold nothing (``""``, ``[]``, None; False and 0 are something)."""
    return {key: value for key, value in item.items() if value not in ("", None) and value != []}
