"""Is everything translated that people see, are the translations sound, and are they compiled?"""

from __future__ import annotations

import gettext
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import django
import pytest

from devtools import messages
from devtools.messages import TREES, languages
from tests import servers
from tests.i18n.texts import ALL, CODES, ROOT, complaints, forms, placeholders, po, po_path

DJANGO = Path(django.__file__).parent / "conf"
#: Letters of neither script: a text in which they are all that there is has not been translated.
_ONLY_LATIN = re.compile(r"[\x00-\x7f]*[A-Za-z]{2}[\x00-\x7f]*")


def facts(path: Path) -> tuple[dict[str, str], dict[tuple[str, ...], Any]]:
    """Header and entries of a ``.po`` file, without how its lines are broken."""
    polib = pytest.importorskip("polib", reason=f"{servers.MISSING}polib (pip install polib)")
    file = polib.pofile(str(path))
    entries = {
        (each.msgctxt or "", each.msgid, each.msgid_plural): (forms(each), each.occurrences, each.fuzzy, each.obsolete)
        for each in file
    }
    return file.metadata, entries


@pytest.fixture
def copies(tmp_path: Path) -> dict[str, Path]:
    """A copy of each tree, in which texts may be collected."""
    if missing := messages.missing_programs():
        pytest.skip(
            f"GNU gettext is not installed ({', '.join(missing)}): nobody can tell whether a text was forgotten"
        )
    left_out = shutil.ignore_patterns("__pycache__", "var")
    return {tree: Path(shutil.copytree(ROOT / tree, tmp_path / tree, ignore=left_out)) for tree in TREES}


def test_all_trees_have_the_same_languages() -> None:
    """The site of the example and the admin of the package are seen together."""
    assert {tree: languages(ROOT / tree) for tree in TREES} == dict.fromkeys(TREES, sorted(CODES))


@pytest.mark.parametrize(("tree", "language"), ALL)
def test_every_text_is_translated(tree: str, language: str) -> None:
    """None is empty, fuzzy or obsolete; placeholders, markup, plural forms and edges are those of the original."""
    file = po(tree, language)
    plural_forms = int(re.findall(r"nplurals=(\d+)", file.metadata["Plural-Forms"])[0])
    wrong = {each.msgid: texts for each in file if (texts := complaints(each, plural_forms))}
    assert wrong == {}
    assert len(file) > 200


@pytest.mark.parametrize(("tree", "language"), [each for each in ALL if each.values[1] != "es"])
def test_no_translation_is_the_original(tree: str, language: str) -> None:
    """What has words has words of the language's own script."""
    left = [
        each.msgid
        for each in po(tree, language)
        for text in forms(each)
        if _ONLY_LATIN.fullmatch(re.sub("|".join(map(re.escape, placeholders(text))) or "$^", "", text))
    ]
    assert left == []


@pytest.mark.parametrize(("tree", "language"), ALL)
def test_headers_say_what_has_to_be_said(tree: str, language: str) -> None:
    """The language and its plural forms, as Django itself has them; no person, and no moment that changes by itself."""
    header = po(tree, language).metadata
    with po_path(DJANGO, language).with_suffix(".mo").open("rb") as file:
        own = gettext.GNUTranslations(file).info()
    assert header["Language"] == language
    assert "".join(header["Plural-Forms"].split()).rstrip(";") == "".join(own["plural-forms"].split()).rstrip(";")
    assert header["Content-Type"] == "text/plain; charset=UTF-8"
    assert not {"Last-Translator", "POT-Creation-Date"} & header.keys()
    assert "@" not in po_path(ROOT / tree, language).read_text(encoding="utf-8").split("\n#: ")[0]


@pytest.mark.parametrize(("tree", "language"), ALL)
def test_translations_are_compiled(tree: str, language: str) -> None:
    """The ``.mo`` file, which is what Django reads, says what the ``.po`` file says."""
    with po_path(ROOT / tree, language).with_suffix(".mo").open("rb") as file:
        compiled = dict(gettext.GNUTranslations(file)._catalog)  # type: ignore[attr-defined]  # has no public reader
    compiled.pop("")
    expected: dict[Any, str] = {}
    for each in po(tree, language):
        name = f"{each.msgctxt}\x04{each.msgid}" if each.msgctxt else each.msgid
        if each.msgid_plural:
            expected |= {(name, index): text for index, text in enumerate(forms(each))}
        else:
            expected[name] = each.msgstr
    assert compiled == expected


def test_collecting_the_texts_again_changes_nothing(copies: dict[str, Path]) -> None:
    """No text was added, changed or taken away since; and what is collected says so of both trees."""
    for tree, copy in copies.items():
        messages.collect(sys.executable, copy, sorted(CODES))
        for language in CODES:
            assert facts(po_path(copy, language)) == facts(po_path(ROOT / tree, language)), (tree, language)


def test_a_text_that_was_added_is_noticed(copies: dict[str, Path]) -> None:
    """It has no translation, and is no longer what is there."""
    copy = copies[TREES[0]]
    lines = ["from django.utils.translation import gettext as _", 'TEXT = _("Nobody has translated this yet.")', ""]
    (copy / "added.py").write_text("\n".join(lines), encoding="utf-8")
    messages.collect(sys.executable, copy, ["ja"])
    _header, entries = facts(po_path(copy, "ja"))
    assert entries["", "Nobody has translated this yet.", ""] == ([""], [("added.py", "")], False, False)


def test_a_language_is_added_with_its_name(copies: dict[str, Path]) -> None:
    """The file comes with the plural forms that Django has for it, and nothing else changes."""
    copy = copies[TREES[1]]
    messages.collect(sys.executable, copy, ["de"])
    assert languages(copy) == sorted([*CODES, "de"])
    assert "nplurals=2; plural=(n != 1);" in po_path(copy, "de").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, [], id="sound"),
        pytest.param({"msgstr": ""}, ["is not translated"], id="empty"),
        pytest.param({"msgstr": "Como máximo {limite} filas."}, ["has other placeholders"], id="placeholder"),
        pytest.param({"msgstr": "Como máximo <b>{limit} filas."}, ["has other markup"], id="markup"),
        pytest.param({"msgstr": "Como máximo {limit} filas"}, ["begins or ends in another way"], id="full-stop"),
        pytest.param({"flags": ["fuzzy"]}, ["is fuzzy or obsolete"], id="fuzzy"),
        pytest.param({"obsolete": True}, ["is fuzzy or obsolete"], id="obsolete"),
    ],
)
def test_what_is_wrong_is_noticed(changes: dict[str, Any], expected: list[str]) -> None:
    """Each kind of mistake."""
    polib = pytest.importorskip("polib", reason=f"{servers.MISSING}polib (pip install polib)")
    fine = {"msgid": "At most {limit} rows.", "msgstr": "Como máximo {limit} filas."}
    assert complaints(polib.POEntry(**fine | changes), 3) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param({0: "%(count)d fila", 1: "%(count)d filas", 2: "%(count)d filas"}, [], id="sound"),
        pytest.param({0: "La fila", 1: "%(count)d filas", 2: "%(count)d filas"}, ["has other placeholders"], id="lost"),
        pytest.param({0: "%(count)d filas"}, ["has 1 plural forms, not 3"], id="too-few"),
    ],
)
def test_what_is_wrong_with_a_plural_is_noticed(texts: dict[int, str], expected: list[str]) -> None:
    """The number of forms, and what each holds."""
    polib = pytest.importorskip("polib", reason=f"{servers.MISSING}polib (pip install polib)")
    entry = polib.POEntry(msgid="%(count)d row", msgid_plural="%(count)d rows", msgstr_plural=texts)
    assert complaints(entry, 3) == expected
