"""Can the documentation be built? HTML, from nothing, with every warning as an error."""

from __future__ import annotations

import shutil
from pathlib import Path

from devtools.environments import MAIN
from devtools.running import ROOT, Failed, run, say

SOURCES = ROOT / "docs"


def docs(arguments: list[str]) -> None:
    """build the documentation into docs/_build"""
    if arguments:
        raise Failed(f"docs takes no arguments: {' '.join(arguments)}")
    MAIN.ensure("docs")
    target = SOURCES / "_build"
    shutil.rmtree(target, ignore_errors=True)
    run(build_command(MAIN.program("python"), target))
    say(f"open {target / 'index.html'}")


def build_command(python: str, target: Path) -> list[str]:
    """The command that builds into the directory ``target``.

    A link that leads nowhere, a page that no list holds and a heading out of order are warnings, and so errors.
    """
    strict = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet"]
    return [python, "-m", "sphinx", "--builder", "html", *strict, str(SOURCES), str(target)]
