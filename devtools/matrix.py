"""Does it work with every Python and Django that we promise? One environment and one run of the tests for each pair."""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from devtools import interpreters, suite
from devtools.environments import Environment
from devtools.running import ROOT, Failed, say

#: Django 6 needs Python 3.12.
PAIRS = (
    ("3.11", "5.2"),
    ("3.12", "5.2"),
    ("3.12", "6.0"),
    ("3.12", "6.1"),
    ("3.13", "5.2"),
    ("3.13", "6.0"),
    ("3.13", "6.1"),
)
PLACE = ROOT / ".venv-matrix"
#: Where versions of Django differ most: admin, commands, checks, views, templates, transactions.
QUICK = (
    "tests/admin",
    "tests/checks",
    "tests/conf",
    "tests/contrib",
    "tests/management",
    "tests/test_lookup_states.py",
    "tests/test_services.py",
    "tests/test_signals.py",
    "tests/test_template_tag.py",
    "tests/test_transactions.py",
    "tests/test_views.py",
    "-m",
    "not slow",
)


@dataclass(frozen=True)
class Outcome:
    """How one pair did. ``is_good`` is None where it could not be tried; ``text`` is for a person."""

    python: str
    django: str
    is_good: bool | None
    text: str
    seconds: float = 0.0


def matrix(arguments: list[str]) -> None:
    """the tests with every Python and Django (3.12 6.0: only these; --quick; what follows -- goes to pytest)"""
    chosen, for_pytest = read_arguments(arguments)
    suite.use_compiled_code()
    outcomes = [attempt(python, django, for_pytest) for python, django in chosen]
    print(f"\n{table(outcomes)}", flush=True)
    complain(outcomes)


def read_arguments(arguments: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the pairs that were chosen, and what goes to pytest. Raises Failed where no pair is left."""
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(prog="dev.py matrix")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"of Python or Django: {', '.join(_known())}")
    parser.add_argument("--quick", action="store_true", help="only the tests in which versions differ most")
    options = parser.parse_args(words[:at])
    return choose(options.versions), [*(QUICK if options.quick else ()), *words[at + 1 :]]


def choose(versions: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs with these Pythons and Djangos; where none is named, every one counts. Raises Failed."""
    asked = set(versions)
    if unknown := sorted(asked - {*_known()}):
        raise Failed(f"not in the matrix: {', '.join(unknown)}. It has {', '.join(_known())}.")
    pythons, djangos = (asked & {*side} or {*side} for side in zip(*PAIRS, strict=True))
    chosen = [(python, django) for python, django in PAIRS if python in pythons and django in djangos]
    if not chosen:
        raise Failed(f"no pair of the matrix has {', '.join(sorted(asked))}: Django 6 needs Python 3.12.")
    return chosen


def _known() -> list[str]:
    return sorted({version for pair in PAIRS for version in pair})


def attempt(python: str, django: str, for_pytest: Sequence[str]) -> Outcome:
    """Run the tests with this Python and Django, in their own environment."""
    interpreter = interpreters.find(python)
    if interpreter is None:
        return Outcome(python, django, None, f"NOT RUN: there is no Python {python} here")
    environment = Environment(PLACE / f"py{python}-django{django}", interpreter, (f"Django~={django}.0",))
    try:
        environment.ensure("test")
    except Failed as error:
        return Outcome(interpreter.version, django, False, f"could not be installed: {error}")
    say(f"the tests with Python {interpreter.version} and Django {django} …")
    results = environment.path / "results.xml"
    results.unlink(missing_ok=True)
    command = suite.pytest_command(environment, ["-q", f"--junitxml={results}", *for_pytest])
    began = time.monotonic()
    code = subprocess.call(command, cwd=ROOT)
    return Outcome(interpreter.version, django, code == 0, counted(results, code), time.monotonic() - began)


def counted(results: Path, code: int) -> str:
    """What pytest's report says in a few words; its exit code alone where it left none."""
    try:
        suite = ElementTree.parse(results).getroot().find("testsuite")
    except (OSError, ElementTree.ParseError):
        suite = None
    if suite is None:
        return f"pytest ended with exit code {code}"
    total, *others = (int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped"))
    named = zip(("failed", "errors", "skipped"), others, strict=True)
    return ", ".join([f"{total - sum(others)} passed", *(f"{number} {name}" for name, number in named if number)])


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes, one a line."""
    words = {True: "ok", False: "FAILED", None: "MISSING"}
    lines = [("Python", "Django", "", "seconds", "tests")]
    lines += [(one.python, one.django, words[one.is_good], f"{one.seconds:.0f}", one.text) for one in outcomes]
    return "\n".join("{:<8} {:<7} {:<8} {:>7}  {}".format(*line).rstrip() for line in lines)


def complain(outcomes: Sequence[Outcome]) -> None:
    """Raise Failed where a pair failed, or none could be tried; say what is missing."""
    missing = sorted({one.python for one in outcomes if one.is_good is None})
    if missing:
        say(f"NOT RUN for want of Python {', '.join(missing)}: install it (pyenv, uv, the system's packages).")
    if failed := [f"{one.python} with {one.django}" for one in outcomes if one.is_good is False]:
        raise Failed(f"these failed: {'; '.join(failed)}")
    if all(one.is_good is None for one in outcomes):
        raise Failed("nothing was run.")
