"""Where does a long command go on? A small file that remembers how many lines of its list are done."""

from __future__ import annotations

import json
from pathlib import Path

from django.core.management.base import CommandError


class ResumeFile:
    """Lines that are done, of one catalog and language; without a path nothing is remembered."""

    def __init__(self, path: Path | None, catalog: str, language: str | None) -> None:
        self.path = path
        self._of = {"catalog": catalog, "language": language}

    def read(self) -> int:
        """Return the number of lines that are done, 0 where there is no file.

        Raises CommandError when it cannot be read, or belongs to another catalog or language.
        """
        if self.path is None:
            return 0
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            lines = found.pop("lines")
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
            raise CommandError(f"{self.path} is no resume file ({type(error).__name__}).") from error
        if found != self._of or not isinstance(lines, int):
            raise CommandError(f"{self.path} is about another run: {found}, not {self._of}.")
        return lines

    def write(self, lines: int) -> None:
        """Remember; the old file stays whole until the new one is."""
        if self.path is None:
            return
        new = self.path.with_name(self.path.name + ".new")
        try:
            new.write_text(json.dumps({**self._of, "lines": lines}), encoding="utf-8")
            new.replace(self.path)
        except OSError as error:
            raise CommandError(f"{self.path} cannot be written: {error.strerror}.") from error

    def remove(self) -> None:
        """Forget: all is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
