"""Do the code blocks of the README and of every page run? From top to bottom, as a reader would type them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from catalog_fallback.testing import fake_source, override_catalog
from tests.commands import runner
from tests.docs.kinds import EXEMPT, KINDS, is_settings
from tests.docs.pages import Block, blocks_of, name_of, pages
from tests.docs.scene import scene

ALL = [block for page in pages() for block in blocks_of(page)]
#: As many blocks as may say that they are not run; each says why.
MOST_NOT_RUN = 6
#: Files that the commands of the pages read; a recall has lines that are no IDs.
FILES = {"ids.txt": "P001\nP002\n", "recall.txt": "P001\nP002\nwine glass\nsee below\n"}
#: What a page takes for granted that is not so in the scene of all the others: keys of the default catalog.
TAKEN_FOR_GRANTED: dict[str, dict[str, Any]] = {
    "docs/how-to/when-nobody-answers.md": {
        "SOURCES": {"primary": fake_source(failure=503)},
        "FALLBACK": {"id": "P001", "name": "Tea, our own words"},
        "RETRY_LATER": True,
    },
}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_the_blocks_of_a_page_run(
    page: Path, transactional_db: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In one site, with one set of names, in their order; settings last, for they may name what comes below them."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    run = runner(monkeypatch)
    with scene(page.stem), override_catalog(**TAKEN_FOR_GRANTED.get(name_of(page), {})):
        to_run = [block for block in blocks_of(page) if not block.not_run and block.language not in EXEMPT]
        for block in sorted(to_run, key=is_settings):
            try:
                KINDS[block.language](block, names, run)
            except Exception as error:  # noqa: BLE001  # whatever it is, the block is wrong
                pytest.fail(f"{block} does not run: {type(error).__name__}: {error}\n\n{block.code}")


def test_every_block_has_a_language_that_is_tried_or_named() -> None:
    """Nothing is left out by accident."""
    assert {block.language for block in ALL} <= {*KINDS, *EXEMPT}


def test_what_is_not_run_is_little_and_says_why() -> None:
    """A reason of some words, and not many of them."""
    left_out = [block for block in ALL if block.not_run]
    assert len(left_out) <= MOST_NOT_RUN, [str(block) for block in left_out]
    assert all(len(block.not_run.split()) >= 3 for block in left_out)


def test_every_fence_was_read() -> None:
    """No block escapes because its fence is written in another way."""
    for page in pages():
        fences = [line for line in page.read_text(encoding="utf-8").splitlines() if line.strip().startswith("```")]
        assert len(fences) == 2 * len([block for block in ALL if block.page == name_of(page)]), name_of(page)


@pytest.mark.parametrize(
    ("language", "code"),
    [
        pytest.param("python", "find_item('P001')", id="a name that is not there"),
        pytest.param("python", "# settings.py\nCATALOG_FALLBACK = {'default': {'SOURCE': {}}}", id="a wrong key"),
        pytest.param("console", "$ python manage.py lookup_item P001 --catalogue books\n", id="a wrong option"),
        pytest.param(
            "console", "$ python manage.py invalidate_item P001\nCatalog default: 1 deleted.\n", id="a wrong answer"
        ),
        pytest.param("console", "$ python manage.py look_up_item P001\n", id="a wrong command"),
        pytest.param("console", "$ pip install 'django-catalog-fallback[rediss]'\n", id="a wrong extra"),
        pytest.param("console", "$ python3 dev.py doc\n", id="a wrong command of dev.py"),
        pytest.param("html", "{% load catalog_fallback %}{% catalog_itm 'P001' as lookup %}", id="a wrong tag"),
        pytest.param("json", "{'id': 'P001'}", id="no json"),
    ],
)
def test_a_wrong_block_is_noticed(
    language: str, code: str, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above can fail."""
    with scene("wrong"), pytest.raises((Exception, SystemExit)):
        KINDS[language](Block("page.md", 1, language, code, ""), {}, runner(monkeypatch))
