"""How are the tests started?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from devtools.environments import Environment

#: Names under which systems install Chromium; ``tests/browser`` looks for the same.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def has_browser() -> bool:
    """Whether there is a Chromium: ``CHROMIUM`` says where, or it is on the path."""
    return bool(os.environ.get("CHROMIUM")) or any(map(shutil.which, BROWSERS))


def read_arguments(arguments: Iterable[str], *, is_browser_here: bool | None = None) -> tuple[list[str], list[str]]:
    """Return the groups that have to be installed, and what goes to pytest.

    What the tests in a browser need is installed where there is one; ``is_browser_here`` None looks.
    """
    words = list(arguments)
    for_pytest = [word for word in words if word != "--browser"]
    is_asked_for = words != for_pytest
    is_wanted = is_asked_for or (has_browser() if is_browser_here is None else is_browser_here)
    return ["browser", "test"] if is_wanted else ["test"], for_pytest


def pytest_command(environment: Environment, arguments: Iterable[str]) -> list[str]:
    """The command that runs the tests in an environment; the arguments go to pytest."""
    return [environment.program("python"), "-m", "pytest", *spread(list(arguments))]


def use_compiled_code() -> None:
    """Let the tests, and the hundreds of programs that they start, keep and use what Python compiles.

    Machines that build images forbid it (PYTHONDONTWRITEBYTECODE); then all of it is compiled again by each of them.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def spread(arguments: list[str]) -> list[str]:
    """The arguments for pytest, with some processes unless they say how many or want to look in.

    One more than there are processors: tests wait for servers and browsers half of their time.
    """
    is_decided = any(word.startswith(("-n", "--numprocesses", "--pdb", "--trace", "-s")) for word in arguments)
    return arguments if is_decided else ["-n", str((os.cpu_count() or 1) + 1), *arguments]
