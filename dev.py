#!/usr/bin/env python3
"""How do I run this project? ``python3 dev.py`` says it; only Python 3.11 or newer is needed.

Everything runs in ``.venv``, which is made here (with uv where there is one) and made again when the dependencies in
``pyproject.toml`` change. How each command works is in ``devtools/``.
"""

import sys

OLDEST = (3, 11)
if sys.version_info < OLDEST:
    sys.exit(
        "dev.py needs Python {}.{} or newer; this is Python {}.{} ({}). Start it with a newer one, "
        "for example: python3.{} dev.py".format(*OLDEST, *sys.version_info[:2], sys.executable, OLDEST[1])
    )

from collections.abc import Callable

from devtools import documentation, linting, matrix, messages, mutation, packaging, suite
from devtools.environments import MAIN
from devtools.running import ROOT, Failed, become, say


def test(arguments: list[str]) -> None:
    """run the tests, in a browser too where there is one; what follows goes to pytest (-k, -x, a file …)"""
    groups, for_pytest = suite.read_arguments(arguments)
    MAIN.ensure(*groups)
    suite.use_compiled_code()
    become(suite.pytest_command(MAIN, for_pytest))


def demo(arguments: list[str]) -> None:
    """start the example site with its simulated catalogs; --check: a tour that verifies itself"""
    MAIN.ensure("demo")
    become([MAIN.program("python"), str(ROOT / "example_project" / "demo.py"), *arguments])


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "test": test,
    "lint": linting.lint,
    "wheel": packaging.build,
    "docs": documentation.docs,
    "messages": messages.messages,
    "demo": demo,
    "matrix": matrix.matrix,
    "mutate": mutation.mutate,
}


def overview() -> str:
    """What this program can do, one command a line."""
    lines = [f"  python3 dev.py {name:<8} {command.__doc__}" for name, command in COMMANDS.items()]
    return "\n".join(["What dev.py can do:", "", *lines])


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return the exit code."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    if name in {"help", "-h", "--help"}:
        print(overview())
        return 0
    if name not in COMMANDS:
        print(f"dev.py: there is no command {name!r}.\n\n{overview()}", file=sys.stderr)
        return 2
    try:
        COMMANDS[name](rest)
    except Failed as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
