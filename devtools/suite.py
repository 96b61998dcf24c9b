"""How are the tests started?"""

from __future__ import annotations

from collections.abc import Iterable

from devtools.environments import Environment


def read_arguments(arguments: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the groups that have to be installed, and what goes to pytest."""
    words = list(arguments)
    for_pytest = [word for word in words if word != "--browser"]
    return ["test"] if words == for_pytest else ["browser", "test"], for_pytest


def pytest_command(environment: Environment, arguments: Iterable[str]) -> list[str]:
    """The command that runs the tests in an environment; the arguments go to pytest."""
    return [environment.program("python"), "-m", "pytest", *spread(list(arguments))]


def spread(arguments: list[str]) -> list[str]:
    """The arguments for pytest, with one process for each processor unless they say how many or want to look in."""
    is_decided = any(word.startswith(("-n", "--numprocesses", "--pdb", "--trace", "-s")) for word in arguments)
    return arguments if is_decided else ["-n", "auto", *arguments]
