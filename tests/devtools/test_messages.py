"""Does ``dev.py messages`` refuse what it cannot do, and do both steps for both trees?"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from devtools import messages
from devtools.running import Failed


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """What is done, instead of doing it; GNU gettext and the environment are there."""
    done: list[Any] = []
    monkeypatch.setattr(messages, "ROOT", tmp_path)
    monkeypatch.setattr(messages, "missing_programs", list)
    monkeypatch.setattr(type(messages.MAIN), "ensure", lambda self, *groups: None)
    monkeypatch.setattr(messages, "collect", lambda python, tree, names: done.append(("collect", tree.name, names)))
    monkeypatch.setattr(messages, "compile_all", lambda python, tree: done.append(("compile", tree.name)))
    return done


def add_language(tree: Path, name: str) -> None:
    """Make an empty file of translations."""
    path = tree / "locale" / name / "LC_MESSAGES" / "django.po"
    path.parent.mkdir(parents=True)
    path.touch()


def test_both_trees_are_done_in_all_their_languages(steps: list[Any], tmp_path: Path) -> None:
    """The languages that are there, and those that are named."""
    for tree in messages.TREES:
        add_language(tmp_path / tree, "ja")
        add_language(tmp_path / tree, "es")
    messages.messages(["pt_BR"])
    expected = [(("collect", tree, ["es", "ja", "pt_BR"]), ("compile", tree)) for tree in messages.TREES]
    assert steps == [step for tree in expected for step in tree]


@pytest.mark.parametrize("name", ["pt-br", "../x", "--all", "Deutsch", ""])
def test_a_name_that_no_directory_has_is_refused(steps: list[Any], name: str) -> None:
    """It is named, and nothing is done."""
    with pytest.raises(Failed, match=r"as directories have them"):
        messages.messages(["de", name])
    assert steps == []


def test_without_gettext_it_says_what_to_install(steps: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """And which programs it looked for."""
    monkeypatch.setattr(messages, "missing_programs", lambda: ["xgettext", "msgfmt"])
    with pytest.raises(Failed, match=r"apt install gettext.*no xgettext, msgfmt found"):
        messages.messages([])
    assert steps == []


def test_missing_programs_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """By looking for each of them."""
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "msgfmt" else f"/usr/bin/{name}")
    assert messages.missing_programs() == ["msgfmt"]
