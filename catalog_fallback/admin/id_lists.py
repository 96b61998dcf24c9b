"""Which IDs did a person paste or upload? Lines with their numbers, and what is wrong with those that hold no ID."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.models import MAX_ID_LENGTH
from catalog_fallback.told_errors import told

#: Longest list, in lines (blank ones count) and in bytes.
MAX_LINES = 100_000
MAX_BYTES = 4 * 1024 * 1024
#: How much of a line that is no ID is shown, in characters.
_SHOWN = 80

#: What ends a line in an editor; ``str.splitlines()`` knows more, and the numbers would not be those of the editor.
_LINE_END = re.compile(r"\r\n|\n|\r")


class UnreadableList(ValueError):
    """A list that is no text, or too long; the message is for the person who gave it."""


@dataclass(frozen=True, slots=True)
class InvalidLine:
    """A line that holds no ID of the catalog: its number, its text (shortened), and why."""

    number: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Repetition:
    """A line whose ID an earlier line holds already, perhaps in another spelling."""

    number: int
    item_id: str
    first: int


@dataclass(frozen=True, slots=True)
class IDList:
    """What the lines hold. ``numbers`` has each ID in its normal form, with the number of its first line."""

    numbers: Mapping[str, int]
    repetitions: Sequence[Repetition]
    invalid: Sequence[InvalidLine]


def decode(raw: bytes) -> str:
    """Return the text of a file: UTF-8, with or without a BOM.

    Raises UnreadableList for anything else, and names the offset of the first byte that is wrong (counted from 0).
    """
    if len(raw) > MAX_BYTES:
        raise UnreadableList(_too_long(len(raw)))
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise UnreadableList(
            _("This is no UTF-8 text: byte {offset} is {byte}. Save the file as UTF-8.").format(
                offset=error.start, byte=f"0x{raw[error.start]:02X}"
            )
        ) from error
    if "\x00" in text:
        raise UnreadableList(
            _("This is no UTF-8 text: byte {offset} is 0x00 (UTF-16?). Save the file as UTF-8.").format(
                offset=raw.index(b"\x00")
            )
        )
    return text


def read(text: str, config: CatalogConfig) -> IDList:
    """Return what the lines of a text hold; blank ones hold nothing.

    Raises UnreadableList when there are too many lines or bytes.
    """
    if (size := len(text.encode(errors="replace"))) > MAX_BYTES:
        raise UnreadableList(_too_long(size))
    lines = _LINE_END.split(text.removeprefix("\ufeff"))
    if not lines[-1]:
        lines.pop()
    if len(lines) > MAX_LINES:
        text = _("{count} lines are too many; {limit} is the limit. Divide the list, or use the command {command}.")
        raise UnreadableList(text.format(count=len(lines), limit=MAX_LINES, command="invalidate_item"))
    return _sorted_out(lines, config)


def _sorted_out(lines: Sequence[str], config: CatalogConfig) -> IDList:
    numbers: dict[str, int] = {}
    repetitions, invalid = [], []
    for number, line in enumerate(lines, 1):
        written = line.strip()
        if not written:
            continue
        item_id = _clean(written, config)
        if isinstance(item_id, _Complaint):
            invalid.append(InvalidLine(number, _shortened(written), str(item_id)))
        elif item_id in numbers:
            repetitions.append(Repetition(number, item_id, numbers[item_id]))
        else:
            numbers[item_id] = number
    return IDList(numbers, repetitions, invalid)


class _Complaint(str):
    """Why a line holds no ID."""

    __slots__ = ()


def _clean(written: str, config: CatalogConfig) -> str | _Complaint:
    """Return the ID in its normal form, or why there is none that the stop list can keep."""
    try:
        item_id = config.clean_id(written)
    except InvalidItemID as error:
        return _Complaint(told(error))
    if len(item_id) > MAX_ID_LENGTH:
        text = _("{length} characters are too many for the stop list; {limit} is the limit.")
        return _Complaint(text.format(length=len(item_id), limit=MAX_ID_LENGTH))
    if "\x00" in item_id:
        return _Complaint(_("It holds a NUL character."))
    return item_id


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _too_long(size: int) -> str:
    text = _("{size} bytes are too many; {limit} is the limit. Divide the list, or use the command {command}.")
    return text.format(size=size, limit=MAX_BYTES, command="invalidate_item")
