"""What would a terminal do with a block? Commands of this project are run, or at least their arguments are read."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator

from django.core.management import load_command_class

import dev
from benchmarks.__main__ import parser as benchmarks_parser
from tests.commands import Runner
from tests.docs.pages import ROOT
from tests.management.conftest import own_commands
from tour.main import _parser as demo_parser

__all__ = ["FOREIGN", "Runner", "attempt", "pipelines"]

#: Programs of others, which are not here or would change the machine.
FOREIGN = {
    *(".", "cd", "curl", "generate_ids", "jq", "psql", "pytest", "zcat"),
    *("aws", "gcloud", "kcat", "mutmut", "redis-cli"),
}
#: Commands of Django that the pages use; the others are ours.
DJANGO = {"check", "createcachetable", "migrate"}
#: Arguments with which a command would leave this process: only read here.
ONLY_READ = {"--tasks", "send_test_notice", "run_catalogs"}
#: How our commands say what they did.
_LAST_WORD = re.compile(r"Catalog \w+: ")
#: Exit codes of a command that did its work, whatever came out; 2 is wrong usage.
DONE = {0, 3, 4, 5, 6}


def pipelines(block: str) -> Iterator[tuple[list[list[str]], list[str]]]:
    """The commands after each ``$``, and the lines that are shown below them.

    Commands are split where the output of one is the input of the next; assignments before a command are left out.
    """
    parts = re.split(r"^\$ (.+(?:\\\n.+)*)\n", block, flags=re.MULTILINE)
    for line, shown in zip(parts[1::2], parts[2::2], strict=True):
        yield _commands(line.replace("\\\n", " ")), shown.splitlines()


def _commands(line: str) -> list[list[str]]:
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in words:
        if word in {"|", "&&", ";"}:
            commands.append([])
        elif word in {">", "<", "&", "2>"}:
            break
        elif commands[-1] or not re.match(r"[A-Z_]+=", word):
            commands[-1].append(word)
    return commands


def attempt(pipeline: list[list[str]], shown: list[str], run: Runner) -> None:
    """Try each command of a pipeline; it fails where a command or an argument does not exist.

    What one of ours says in the end (``Catalog default: 2 forgotten.``) is what is shown, but for the numbers.
    """
    for words in pipeline:
        match words:
            case ["python" | "python3" | ".venv/bin/python", *arguments]:
                _python(arguments, shown, run)
            case ["pip" | "uv", *arguments]:
                _installs(arguments)
            case [path, *_]:
                name = path.removeprefix(".venv/bin/")
                assert name in FOREIGN, f"unknown program {name!r}: {words}"


def _python(arguments: list[str], shown: list[str], run: Runner) -> None:
    match arguments:
        case ["dev.py", name, *rest]:
            assert name in dev.COMMANDS
            if name == "demo":
                demo_parser().parse_args(rest)
        case [path, name, *rest] if path.endswith("manage.py"):
            _manage(name, rest, shown, run)
        case ["-m", "benchmarks", *rest]:
            benchmarks_parser().parse_args(rest)
        case ["-c", code]:
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        case _:
            raise AssertionError(f"nobody knows what python {arguments} does")


def _manage(name: str, arguments: list[str], shown: list[str], run: Runner) -> None:
    if name in DJANGO:
        command = load_command_class("django.core", name)
        command.create_parser("manage.py", name).parse_args(arguments)
        return
    own = own_commands()
    assert name in own, f"there is no command {name!r}"
    own[name].create_parser("manage.py", name).parse_args(arguments)
    if not ONLY_READ & {name, *arguments}:
        done = run(name, *arguments, stdin=b"P001\n")
        assert done.code in DONE, f"manage.py {name} {arguments}: {done}"
        printed = {_folded(line) for line in done.out.splitlines()}
        for line in filter(_LAST_WORD.match, shown):
            assert _folded(line) in printed, f"manage.py {name} {arguments} prints: {done.out}"


def _folded(line: str) -> str:
    """A line without what differs from run to run."""
    return re.sub(r"\d[\d,.]*(?=\s)", "N", " ".join(line.split()))


def _installs(arguments: list[str]) -> None:
    """Extras and groups are those of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = set(project["project"]["optional-dependencies"])
    for word in arguments:
        if match := re.fullmatch(r"(?:django-catalog-fallback|\.)\[([\w,-]+)\]", word):
            assert set(match[1].split(",")) <= extras, word
    for flag, group in itertools.pairwise(arguments):
        assert flag != "--group" or group in project["dependency-groups"], group
