"""How does a command print? Nothing that a terminal would obey, nothing that an encoding refuses, no broken pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from catalog_fallback import conf
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import UnknownCatalog


def catalog_or_exit(alias: str) -> CatalogConfig:
    """Return the catalog. Raises CommandError with exit code 1 when there is none, or the settings are wrong."""
    try:
        return conf.catalog(alias)
    except (UnknownCatalog, ImproperlyConfigured) as error:
        raise CommandError(str(error)) from error


def plain(value: object) -> str:
    """Return the value on one line, without characters that a terminal would obey or could not show."""
    text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(value))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def aligned(rows: Sequence[Sequence[object]], indent: str = "  ") -> str:
    """Return the rows as a table whose columns are as wide as they need to be."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


@contextmanager
def harmless_pipe() -> Iterator[None]:
    """Whoever reads our output may leave at any time (``| head``); that is no error and no traceback."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more as it ends: give it somewhere to write to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
