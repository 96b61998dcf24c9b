"""Which pages are there, and which code blocks do they hold?"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: A fenced block, which may be indented in a list, with the comment before it that says why it is not run.
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n)?(?P<indent> *)(?P<fence>```+)(?P<language>\S*)[^\n]*\n"
    r"(?P<code>.*?)^(?P=indent)(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A code block; ``not_run`` is the reason for which it is left out, or empty."""

    page: str
    line: int
    language: str
    code: str
    not_run: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str:
        """The file that the code is for, where its first line is a comment with the name: ``shop/views.py``."""
        match = re.match(r"# ([\w./]+\.py)\b", self.code)
        return match[1] if match else ""


def name_of(page: Path) -> str:
    """A page as it is called in messages: ``docs/how-to/warm.md``."""
    return page.relative_to(ROOT).as_posix()


def pages() -> list[Path]:
    """The README in all its languages and every page of the documentation; the changelog is prose."""
    built = DOCS / "_build"
    return [
        ROOT / "README.md",
        *sorted(ROOT.glob("README.*.md")),
        *(page for page in sorted(DOCS.rglob("*.md")) if built not in page.parents),
    ]


def blocks_of(page: Path) -> Iterator[Block]:
    """The code blocks of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("fence")) + 1
        yield Block(
            name_of(page),
            line,
            match["language"],
            textwrap.dedent(match["code"]),
            " ".join((match["reason"] or "").split()),
        )
