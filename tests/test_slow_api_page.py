"""Does docs/how-to/slow-api.md say what is so? Its settings are taken, and its commands print what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from catalog_fallback import checks, conf
from catalog_fallback.management.status_text import shown
from catalog_fallback.status import status_of
from tests.commands import runner

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "slow-api.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture
def page_settings(settings: Any, transactional_db: None) -> dict[str, Any]:
    """The settings of the page, in force."""
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(block, namespace)  # noqa: S102  # our own page
    settings.CATALOG_FALLBACK = namespace["CATALOG_FALLBACK"]
    return dict(namespace["CATALOG_FALLBACK"])


def test_the_settings_are_right(page_settings: dict[str, Any]) -> None:
    """No check complains, and they are what the text says of them."""
    assert checks.check_settings() == []
    assert conf.catalog("default").budget == 2.0


def test_the_waits_are_those_of_the_settings(page_settings: dict[str, Any]) -> None:
    """Word by word, whatever the columns' widths."""
    said = {" ".join(line.split()) for line in shown(status_of("default")).splitlines()}
    block = TEXT.split("```console\n  Waiting at most")[1].split("```")[0]
    for line in block.splitlines()[1:]:
        assert " ".join(line.split()) in said


def test_the_commands_print_what_the_page_shows(page_settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolate and restore."""
    run = runner(monkeypatch)
    for verb, reason in (("--isolate", ("--reason", "time-outs")), ("--restore", ())):
        done = run("catalog_status", verb, "primary", *reason)
        assert done.code == 0
        assert done.out in TEXT


def test_its_tables_have_the_columns_of_the_command(page_settings: dict[str, Any]) -> None:
    """A renamed column is noticed."""
    heads = [" ".join(line.split()) for line in shown(status_of("default")).splitlines() if "SOURCE" in line]
    shown_heads = {" ".join(line.split()) for line in TEXT.splitlines()}
    assert set(heads[:2]) <= shown_heads
