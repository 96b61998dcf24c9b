"""What is wrong in the settings, where, and what would be right? Complaints, and the places they are about.

A complaint never shows a secret: a :class:`Place` that is secret shows only the type and size of what it holds.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sized
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.core.checks import ERROR, WARNING

from catalog_fallback.configuration import SourceConfig

SETTING = "CATALOG_FALLBACK"
_SHOWN_LENGTH = 80
_HUGE = 10**30


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong: the place, what is there, and the remedy."""

    where: str
    message: str
    hint: str
    id: str
    level: int

    @property
    def text(self) -> str:
        """Place and message as one sentence, without the hint."""
        return f"{self.where} {self.message}"

    @property
    def is_error(self) -> bool:
        """Whether the settings cannot be used because of it."""
        return self.level >= ERROR

    def __str__(self) -> str:
        return f"{self.text} {self.hint} ({self.id})"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the settings, which collects what is wrong there."""

    path: str
    complaints: list[Complaint] = field(default_factory=list)
    is_secret: bool = False

    @classmethod
    def of_catalog(cls, alias: str) -> Place:
        """Return the place of a catalog."""
        return cls(SETTING).at(alias)

    @classmethod
    def of_source(cls, config: SourceConfig) -> Place:
        """Return the place of a source."""
        return cls.of_catalog(config.catalog).at("SOURCES").at(config.alias)

    def at(self, key: object) -> Place:
        """Return the place of one key within this one; what is inside a secret is secret."""
        name = json.dumps(_cut(key)) if isinstance(key, str) else shown(key)
        return replace(self, path=f"{self.path}[{name}]")

    def hidden(self) -> Place:
        """Return the same place, of whose values nothing is shown."""
        return replace(self, is_secret=True)

    def apart(self) -> Place:
        """Return the same place with a list of complaints of its own."""
        return replace(self, complaints=[])

    @property
    def has_errors(self) -> bool:
        """Whether an error was found, here or in another place that shares the list."""
        return any(complaint.is_error for complaint in self.complaints)

    def error(self, check_id: str, message: str, hint: str) -> Complaint:
        """Return an error about this place."""
        return Complaint(self.path, message, hint, f"catalog_fallback.{check_id}", ERROR)

    def warning(self, check_id: str, message: str, hint: str) -> Complaint:
        """Return a warning about this place."""
        return Complaint(self.path, message, hint, f"catalog_fallback.{check_id}", WARNING)

    def complain(self, check_id: str, message: str, hint: str) -> None:
        """Add an error about this place to the list."""
        self.complaints.append(self.error(check_id, message, hint))

    def warn(self, check_id: str, message: str, hint: str) -> None:
        """Add a warning about this place to the list."""
        self.complaints.append(self.warning(check_id, message, hint))

    def refuse(self, value: object, expected: str, check_id: str = "E003") -> Any:
        """Complain that the value here is not what is expected; None, for a reader to return."""
        self.complain(check_id, f"is {self.shown(value)}.", f"Set it to {expected}.")

    def shown(self, value: object) -> str:
        """Return the value as a message about this place may show it."""
        return sized(value) if self.is_secret else shown(value)


def shown(value: object) -> str:
    """Return a short text for a value: plain values as they are, everything else by type and size."""
    if isinstance(value, int) and abs(value) > _HUGE:
        return f"an int of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float, timedelta)):
        return repr(value)
    return ascii(_cut(value)) if type(value) is str else sized(value)


def sized(value: object) -> str:
    """Return type and size of a value, nothing of its content."""
    kind = type(value).__name__
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    if isinstance(value, Sized):
        return f"{article} {kind} of length {len(value)}"
    return "None" if value is None else f"{article} {kind}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``Did you mean …?`` for a name that is close to a known one, else what is known."""
    known = list(known)
    wanted = name if isinstance(name, str) else ""
    by_case = {each.lower(): each for each in known}
    close = difflib.get_close_matches(wanted.lower()[:_SHOWN_LENGTH], by_case, n=1)
    if close:
        return f'Did you mean "{by_case[close[0]]}"?'
    return f"Known are: {', '.join(known)}." if known else "There is none."


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "…"
