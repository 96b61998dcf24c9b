"""Does the reference page name exactly the commands and options that there are?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management.base import BaseCommand

from tests.management.conftest import own_commands

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
COMMANDS = own_commands()


def sections() -> dict[str, str]:
    """Command → what the page says of it."""
    parts = re.split(r"^## `(\w+)`.*$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options(command: BaseCommand, name: str) -> set[str]:
    """The command's own options; those of every Django command are left out."""
    own = command.create_parser("manage.py", name)._option_string_actions
    django = BaseCommand().create_parser("manage.py", name)._option_string_actions
    return {option for option in own if option not in django}


def test_every_command_has_a_section() -> None:
    """And no section is about a command that does not exist."""
    assert set(sections()) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_row(name: str) -> None:
    """And no row is about an option that does not exist."""
    rows = set(re.findall(r"^\| `(--[\w-]+)[^|]*\|", sections()[name], flags=re.MULTILINE))
    assert rows == options(COMMANDS[name], name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_text(name: str) -> None:
    """``manage.py help`` says what it is for."""
    assert COMMANDS[name].help
