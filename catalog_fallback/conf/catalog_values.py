"""What may the identity keys, NOTICE_SECRETS and FALLBACK of a catalog hold?"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from catalog_fallback.conf.complaints import Place
from catalog_fallback.conf.paths import function
from catalog_fallback.conf.values import members

_SECRET_PREFIX = "whsec_"  # noqa: S105  # how a secret begins, not one
_SECRET_BYTES = range(24, 65)
_CONTACT = re.compile(r"|https?://[!-~]+|[!-~]+@[!-~]+")
_VERSION = re.compile(r"[A-Za-z0-9._-]{1,32}")


def contact(value: object, place: Place) -> str | None:
    """Read CONTACT: a mail address or URL, which goes into a header."""
    if isinstance(value, str) and _CONTACT.fullmatch(value):
        return value
    place.refuse(value, 'a mail address or URL in ASCII, as in "catalog@example.com"')
    return None


def version(value: object, place: Place) -> int | str | None:
    """Read VERSION: a number or a short text, part of every key."""
    if isinstance(value, str) and _VERSION.fullmatch(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
        return value
    place.refuse(value, "a whole number, or 1 to 32 of A-Z, a-z, 0-9, dot, _ and -")
    return None


def id_pattern(value: object, place: Place) -> re.Pattern[str] | None:
    """Read ID_PATTERN: a regular expression of texts, which never matches the empty one. None is the backend's."""
    if value is None:
        return None
    pattern = _compiled(value, place)
    if pattern is not None and pattern.fullmatch(""):
        place.complain(
            "E003", f"is {place.shown(pattern.pattern)}, which matches the empty text.", 'Use "{1,32}" instead of "*".'
        )
    return pattern


def _compiled(value: object, place: Place) -> re.Pattern[str] | None:
    try:
        if isinstance(value, str) or (isinstance(value, re.Pattern) and isinstance(value.pattern, str)):
            return re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        place.complain(
            "E003", f"is {place.shown(value)}, which is no regular expression: {error}.", "Correct the expression."
        )
        return None
    place.refuse(value, 'a regular expression that matches a whole ID, as in r"[A-Z0-9-]{1,32}"')
    return None


def notice_secrets(value: object, place: Place) -> tuple[str, ...]:
    """Read NOTICE_SECRETS: Standard Webhooks secrets, none of which is ever shown."""
    found = []
    for index, text in enumerate(members(value, place, f'a list of secrets, as in ["{_SECRET_PREFIX}…"]')):
        at = place.at(index)
        length = _secret_length(text)
        if length == 0:
            at.complain(
                "E014",
                f"is {place.shown(text)}, which is no secret of Standard Webhooks.",
                f'Write "{_SECRET_PREFIX}" and the base64 form of 24 to 64 random bytes.',
            )
        elif length not in _SECRET_BYTES:
            at.warn("W005", f"is a secret of {length} bytes.", "Use 24 to 64 random bytes, as Standard Webhooks asks.")
        found.append(str(text))
    return tuple(found)


def _secret_length(text: object) -> int:
    """The number of bytes in a secret; 0 when it is none."""
    if not isinstance(text, str) or not text.startswith(_SECRET_PREFIX):
        return 0
    try:
        return len(base64.b64decode(text.removeprefix(_SECRET_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        return 0


def fallback(value: object, place: Place) -> Any:
    """Read FALLBACK: None, a dict, a callable, or the dotted path to one."""
    return value if value is None or isinstance(value, dict) else function(value, place)
