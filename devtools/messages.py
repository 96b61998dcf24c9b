"""Which texts are there to translate, and are the translations compiled? Both with GNU gettext, through Django."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from devtools.environments import MAIN
from devtools.running import ROOT, Failed, run, say

#: What has translations of its own: the package, and the example's site.
TREES = ("catalog_fallback", "example_project")
#: Programs of GNU gettext that Django calls.
_GETTEXT = ("xgettext", "msgmerge", "msgfmt", "msguniq", "msgattrib")
#: When texts were collected is in the history of the project; here it would change files that say nothing new.
_DATE = re.compile(r'^"POT-Creation-Date: .*\n', re.MULTILINE)


def messages(arguments: list[str]) -> None:
    """collect the texts to translate and compile the translations; a new language: its code (de, pt_BR, …)"""
    if wrong := [each for each in arguments if not re.fullmatch(r"[a-z]{2,3}(_[A-Za-z]{2,4})?", each)]:
        raise Failed(f"these are no names of languages as directories have them (de, pt_BR): {' '.join(wrong)}")
    if missing := missing_programs():
        raise Failed(f"install GNU gettext (apt install gettext, brew install gettext): no {', '.join(missing)} found")
    MAIN.ensure("test")
    python = MAIN.program("python")
    for tree in TREES:
        collect(python, ROOT / tree, [*languages(ROOT / tree), *arguments])
        compile_all(python, ROOT / tree)
    say(f"{', '.join(languages(ROOT / TREES[0]))}: tests/i18n says what is not translated yet")


def missing_programs() -> list[str]:
    """The programs of GNU gettext that are not installed."""
    return [name for name in _GETTEXT if shutil.which(name) is None]


def languages(tree: Path) -> list[str]:
    """The languages that a tree has translations for, as its directories are named."""
    return sorted(path.parents[1].name for path in tree.glob("locale/*/LC_MESSAGES/django.po"))


def collect(python: str, tree: Path, names: Sequence[str]) -> None:
    """Bring the ``.po`` files of a tree up to date with its texts; those that are gone go here, too."""
    wanted = [argument for name in names for argument in ("--locale", name)]
    options = ["--no-obsolete", "--add-location", "file", "--ignore", "var", "--verbosity", "0"]
    (tree / "locale").mkdir(exist_ok=True)
    run([python, "-m", "django", "makemessages", *wanted, *options], directory=tree, variables=_ALONE)
    for path in tree.glob("locale/*/LC_MESSAGES/django.po"):
        text = path.read_text(encoding="utf-8")
        path.write_text(_DATE.sub("", text), encoding="utf-8", newline="\n")


def compile_all(python: str, tree: Path) -> None:
    """Write the ``.mo`` files of a tree, which are what Django reads."""
    run([python, "-m", "django", "compilemessages", "--verbosity", "0"], directory=tree, variables=_ALONE)


#: The texts of a tree do not depend on anybody's settings.
_ALONE = {"DJANGO_SETTINGS_MODULE": ""}
