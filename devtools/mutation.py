"""Would a test notice if the code said something else? mutmut changes it in small ways, in a copy, and runs the tests.

What it changes and which tests it runs is in ``pyproject.toml``; docs/explanation/mutation.md has the results.
"""

from __future__ import annotations

from devtools.environments import MAIN
from devtools.running import become, run


def mutate(arguments: list[str]) -> None:
    """change the heart of the code in small ways and see that a test fails each time (mutants' names choose)"""
    MAIN.ensure("mutation")
    mutmut = MAIN.program("mutmut")
    run([mutmut, "run", *arguments])
    become([mutmut, "results"])
