"""Which texts are there, and what do the translations say? The ``.po`` files, read without GNU gettext."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from devtools.messages import TREES, languages
from tests import servers

ROOT = Path(__file__).resolve().parents[2]
#: Directory → language code, for Django and for browsers.
CODES = {"es": "es", "ja": "ja", "zh_Hans": "zh-hans"}
ALL = [pytest.param(tree, language, id=f"{tree}-{language}") for tree in TREES for language in languages(ROOT / tree)]

_PLACEHOLDER = re.compile(r"%\(\w+\)[#0 +-]*\d*(?:\.\d+)?[a-z]|\{\w+(?:![rsa])?(?::[^}]*)?\}")
_TAG = re.compile(r"</?[a-z][^>]*>|&[a-z]+;|&#\w+;")


def po_path(tree: Path, language: str) -> Path:
    """Where the translations are."""
    return tree / "locale" / language / "LC_MESSAGES" / "django.po"


def po(tree: str, language: str, root: Path = ROOT) -> Any:
    """The translations of a tree (a list of entries, with ``metadata``); skips the test where polib is missing."""
    polib = pytest.importorskip("polib", reason=f"{servers.MISSING}polib (pip install polib)")
    return polib.pofile(str(po_path(root / tree, language)))


def forms(entry: Any) -> list[str]:
    """All that an entry is translated into: one text, or one for each plural form."""
    return [text for _index, text in sorted(entry.msgstr_plural.items())] if entry.msgid_plural else [entry.msgstr]


def placeholders(text: str) -> Counter[str]:
    """What the program puts in."""
    return Counter(_PLACEHOLDER.findall(text))


def markup(text: str) -> list[str]:
    """Tags and character references, in their order."""
    return _TAG.findall(text)


def complaints(entry: Any, plural_forms: int) -> list[str]:
    """What is wrong with one entry."""
    texts = forms(entry)
    english = [entry.msgid, entry.msgid_plural or entry.msgid]
    wrong = []
    if entry.fuzzy or entry.obsolete:
        wrong.append("is fuzzy or obsolete")
    if entry.msgid_plural and len(texts) != plural_forms:
        wrong.append(f"has {len(texts)} plural forms, not {plural_forms}")
    if not all(texts):
        return [*wrong, "is not translated"]
    allowed = [placeholders(each) for each in english]
    if placeholders(texts[-1]) != allowed[-1] or any(placeholders(each) not in allowed for each in texts):
        wrong.append("has other placeholders")
    if any(markup(each) != markup(english[-1]) for each in texts):
        wrong.append("has other markup")
    if any(_edges(each) != _edges(english[0]) for each in texts):
        wrong.append("begins or ends in another way")
    return wrong


#: Punctuation at the end, as each language writes it.
_ENDS = {".": ".", "。": ".", ":": ":", "：": ":", "?": "?", "？": "?"}


def _edges(text: str) -> tuple[object, ...]:
    return _ENDS.get(text[-1], ""), text[0].isspace(), text[-1].isspace(), text.count("\n")
