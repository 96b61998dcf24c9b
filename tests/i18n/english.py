"""Is there English left on a page? Texts of ours that have a translation, and anything that reads like a sentence."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path

import django

from devtools.messages import TREES
from tests.i18n.texts import forms, placeholders, po

DJANGO = Path(django.__file__).parent
#: What is no text for people: scripts, styles, commands and names in code, what a person typed.
_NO_TEXT = re.compile(r"<(script|style|code|textarea|svg)\b.*?</\1>|<!--.*?-->", re.DOTALL)
_SPOKEN = re.compile(
    r'\b(?:aria-label|title|placeholder|alt|data-(?:on|off|lost))="([^"]*)"|type="submit"[^>]*value="([^"]*)"'
)
#: Three words of lower-case letters, one after the other.
_SENTENCE = re.compile(r"\b[A-Za-z]+(?:['’]s)?(?:,? [a-z]+){2,}\b")


def words_of(page: str) -> str:
    """What a person reads or is read to, without markup."""
    page = _NO_TEXT.sub(" ", page)
    spoken = " . ".join(one or other for one, other in _SPOKEN.findall(page))
    text = html.unescape(re.sub(r"<[^>]+>", " . ", page) + " . " + spoken)
    return " ".join(text.split())


@cache
def _originals(directory: str) -> frozenset[str]:
    """Texts of several words that are written in another way in the language."""
    entries = [entry for tree in TREES for entry in po(tree, directory)]
    texts = {text for entry in entries for text in (entry.msgid, entry.msgid_plural) if text not in forms(entry)}
    return frozenset(text for text in texts if len(text.split()) >= 3 and not placeholders(text))


@cache
def _djangos() -> str:
    """What Django itself says: not every language of Django has all of it, and that is not ours to mend."""
    catalogs = [DJANGO / part / "locale" / "en" / "LC_MESSAGES" / "django.po" for part in ("conf", "contrib/admin")]
    return "\n".join(path.read_text(encoding="utf-8") for path in catalogs)


def english_in(page: str, directory: str) -> list[str]:
    """The English texts on a page of a language; for Spanish, whose letters are the same, only those that are ours."""
    text = words_of(page)
    left = [original for original in sorted(_originals(directory)) if original in text]
    sentences = [] if directory == "es" else _SENTENCE.findall(text)
    return [*left, *(each for each in sentences if each not in _djangos())]
