"""Which IDs was a command given? Arguments, a file or standard input, in chunks of bounded size."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError

from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import InvalidItemID

#: IDs that are handled at once.
CHUNK = 1000
#: Longest line that is looked at; an ID is far shorter, and a file that is no list of IDs has no line ends.
LONGEST_LINE = 4096


@dataclass(frozen=True, slots=True)
class GivenID:
    """One ID as it was given, and where: ``line 17``. None: a line that no text can be read from."""

    place: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some of the IDs: those in their normal form, and what is wrong with the others."""

    item_ids: Sequence[str]
    complaints: Sequence[str]
    places: str


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that name IDs."""
    parser.add_argument(
        "item_ids", nargs="*", metavar="ID", help="IDs; a single - reads them from standard input, one a line."
    )
    parser.add_argument("--file", metavar="F", type=Path, help="A file with IDs, one a line.")


def read(options: dict[str, Any], config: CatalogConfig, size: int = CHUNK) -> Iterator[Chunk]:
    """Yield all IDs, ``size`` at a time; the rest is not read before it is needed.

    Raises CommandError with exit code 2 when no IDs or two kinds of them are given, and 1 for a file that cannot be
    read.
    """
    given, path = options["item_ids"], options["file"]
    if bool(given) == bool(path):
        raise CommandError("Give IDs, or - for standard input, or --file (one of them).", returncode=2)
    if path or given == ["-"]:
        yield from _chunks(_of_stream(path), config, size)
        return
    if "-" in given:
        raise CommandError("- means standard input and goes with no other IDs.", returncode=2)
    yield from _chunks((GivenID(f"argument {n}", text) for n, text in enumerate(given, 1)), config, size)


def _of_stream(path: Path | None) -> Iterator[GivenID]:
    try:
        with path.open("rb") if path else nullcontext(getattr(sys.stdin, "buffer", sys.stdin)) as stream:
            for number, line in enumerate(_lines(stream), 1):
                text = _text(line)
                if text != "":
                    yield GivenID(f"line {number}", text)
    except OSError as error:
        raise CommandError(f"{path or 'Standard input'} cannot be read: {error.strerror or error}.") from error


def _lines(stream: IO[Any]) -> Iterator[bytes | str | None]:
    """Yield line by line; None for one that is too long, of which no more than a part is ever in memory."""
    while line := stream.readline(LONGEST_LINE):
        is_whole = len(line) < LONGEST_LINE
        while len(line) == LONGEST_LINE and line[-1:] not in {b"\n", "\n"}:
            line = stream.readline(LONGEST_LINE)
        yield line if is_whole else None


def _text(line: bytes | str | None) -> str | None:
    """The line without blanks around it (and without a BOM); None when it is no text."""
    try:
        text = line.decode() if isinstance(line, bytes) else line
    except UnicodeDecodeError:
        return None
    return None if text is None else text.removeprefix("\ufeff").strip()


def _chunks(given: Iterable[GivenID], config: CatalogConfig, size: int) -> Iterator[Chunk]:
    given = iter(given)
    while some := list(islice(given, size)):
        item_ids: dict[str, None] = {}
        complaints = []
        for each in some:
            try:
                item_ids[_clean(each, config)] = None
            except InvalidItemID as error:
                complaints.append(f"{each.place}: {error}")
        yield Chunk(list(item_ids), complaints, _places(some))


def _clean(given: GivenID, config: CatalogConfig) -> str:
    if given.text is None:
        raise InvalidItemID(f"no UTF-8 text, or longer than {LONGEST_LINE} bytes.")
    return config.clean_id(given.text)


def _places(given: Sequence[GivenID]) -> str:
    first, last = given[0].place, given[-1].place
    return first if first == last else f"{first} to {last}"
