"""Which IDs was a command given? Arguments, a file or standard input, in chunks of bounded size.

What arrives on standard input is handed on as soon as it is there, so that a command can stand at the end of a pipe
that never ends. A line is an ID, or JSON: a text, ``{"id": …}``, ``{"ids": […]}``, or a whole notice.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError

from catalog_fallback import notices
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.management import json_lines
from catalog_fallback.notices import Notice

#: IDs that are handled at once.
CHUNK = 1000
#: Longest line that is looked at; an ID is far shorter, and a file that is no list of IDs has no line ends.
LONGEST_LINE = 4096
#: Longest line of JSON.
LONGEST_JSON_LINE = notices.MAX_BYTES
#: Bytes that are read at once.
_PIECE = 65_536


@dataclass(frozen=True, slots=True)
class Given:
    """One thing that was given: an ID, a whole notice, or what is wrong with the line or argument of this number."""

    number: int
    item_id: str = ""
    notice: Notice | None = None
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some of what was given: IDs in their normal form, notices, and what is wrong with the rest.

    ``until`` is the number of the last line that is in this chunk, or in one before it, with all its IDs.
    """

    item_ids: Sequence[str]
    notices: Sequence[Notice]
    complaints: Sequence[str]
    places: str
    until: int


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that name IDs."""
    parser.add_argument(
        "item_ids", nargs="*", metavar="ID", help="IDs; a single - reads them from standard input, one a line."
    )
    parser.add_argument("--file", metavar="F", type=Path, help="A file with IDs, one a line.")


def read(
    options: dict[str, Any], config: CatalogConfig, size: int = CHUNK, *, takes_notices: bool = False, after: int = 0
) -> Iterator[Chunk]:
    """Yield all that was given, ``size`` at most at a time; the rest is not read before it is needed.

    Whole notices are yielded as such where the command takes them; to others they are their IDs. The first ``after``
    lines are left out. Raises CommandError with exit code 2 when no IDs or two kinds of them are given, and 1 for a
    file that cannot be read.
    """
    given, path = options["item_ids"], options["file"]
    if bool(given) == bool(path):
        raise CommandError("Give IDs, or - for standard input, or --file (one of them).", returncode=2)
    if path or given == ["-"]:
        for arrived in _of_stream(path, takes_notices=takes_notices):
            if arrived[-1].number > after:
                yield from _chunks([each for each in arrived if each.number > after], config, size, "line")
        return
    if "-" in given:
        raise CommandError("- means standard input and goes with no other IDs.", returncode=2)
    yield from _chunks([Given(n, item_id=text) for n, text in enumerate(given, 1)], config, size, "argument")


def _of_stream(path: Path | None, *, takes_notices: bool) -> Iterator[list[Given]]:
    """Yield what is there, each time that something is."""
    number = 0
    try:
        with path.open("rb") if path else nullcontext(getattr(sys.stdin, "buffer", sys.stdin)) as stream:
            for lines in _arrivals(stream):
                numbered = list(enumerate(lines, number + 1))
                number += len(lines)
                given = [each for place, line in numbered for each in _of_line(place, line, takes_notices)]
                if given:
                    yield given
    except OSError as error:
        raise CommandError(f"{path or 'Standard input'} cannot be read: {error.strerror or error}.") from error


def _arrivals(stream: IO[Any]) -> Iterator[list[bytes | None]]:
    """Yield the whole lines that are there; None for one that is too long, which is never in memory as a whole."""
    rest, is_too_long = b"", False
    while piece := _piece(stream):
        *lines, rest = (rest + piece).split(b"\n")
        whole: list[bytes | None] = [None if _is_too_long(line) else line for line in lines]
        if whole and is_too_long:
            whole[0], is_too_long = None, False
        if _is_too_long(rest):
            rest, is_too_long = b"", True
        yield whole
    if rest or is_too_long:
        yield [None if is_too_long else rest]


def _piece(stream: IO[Any]) -> bytes:
    """Read what is there, and wait only while nothing is."""
    read_some = getattr(stream, "read1", stream.read)
    piece: bytes | str = read_some(_PIECE)
    return piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece


def _is_too_long(line: bytes) -> bool:
    if len(line) < LONGEST_LINE:
        return False
    return len(line) > LONGEST_JSON_LINE or not line.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _of_line(number: int, line: bytes | None, takes_notices: bool) -> list[Given]:
    """Return what one line holds; nothing where it is blank."""
    text = _text(line)
    if text is None:
        return [Given(number, complaint=f"no UTF-8 text, or longer than {LONGEST_LINE} bytes.")]
    if not text.startswith(("{", '"')):
        return [Given(number, item_id=text)] if text else []
    found = json_lines.read(text, takes_notices=takes_notices)
    if isinstance(found, Notice):
        return [Given(number, notice=found)]
    return [Given(number, complaint=found)] if isinstance(found, str) else [Given(number, each) for each in found]


def _text(line: bytes | None) -> str | None:
    """The line without blanks around it (and without a BOM); None when it is no text."""
    try:
        return None if line is None else line.decode().removeprefix("\ufeff").strip()
    except UnicodeDecodeError:
        return None


def _chunks(given: Sequence[Given], config: CatalogConfig, size: int, word: str) -> Iterator[Chunk]:
    for start in range(0, len(given), size):
        some, rest = given[start : start + size], given[start + size : start + size + 1]
        is_cut = bool(rest) and rest[0].number == some[-1].number
        yield _chunk(some, config, word, some[-1].number - is_cut)


def _chunk(some: Sequence[Given], config: CatalogConfig, word: str, until: int) -> Chunk:
    item_ids: dict[str, None] = {}
    complaints = []
    for each in some:
        try:
            if each.complaint:
                complaints.append(f"{word} {each.number}: {each.complaint}")
            elif each.notice is None:
                item_ids[config.clean_id(each.item_id)] = None
        except InvalidItemID as error:
            complaints.append(f"{word} {each.number}: {error}")
    found = [each.notice for each in some if each.notice is not None]
    return Chunk(list(item_ids), found, complaints, _places(some, word), until)


def _places(some: Iterable[Given], word: str) -> str:
    numbers = [each.number for each in some]
    first, last = f"{word} {numbers[0]}", f"{word} {numbers[-1]}"
    return first if first == last else f"{first} to {last}"
