"""Is everything so as docs/tutorial.md says? It is followed from top to bottom, on a stage of real processes."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

import dev
from tests.docs.pages import DOCS, blocks_of
from tour.processes import free_port
from tour.stage import PROJECT, Stage, stage

PAGE = DOCS / "tutorial.md"
#: The sentence by which the page has a fault switched.
SWITCH = re.compile(r"give\s+`(?P<catalog>\w+)`\s+the\s+fault\s+`(?P<fault>\w+)`\s+\(\*(?P<label>[^*]+)\*\)")
#: What a reader types before the stage is set, and what brings a terminal into the example's directory.
BEFORE = ["python3 dev.py demo", ". .venv/bin/activate", "cd example_project"]


def steps() -> Iterator[tuple[str, str]]:
    """What the page has done, in its order: ("switch", "primary|down|its label"), ("type", a block of the terminal)."""
    text = PAGE.read_text(encoding="utf-8")
    found = [(match.start(), "switch", "|".join(match.groups())) for match in SWITCH.finditer(text)]
    for block in blocks_of(PAGE):
        if block.language == "console" and not block.not_run:
            found.append((text.index(block.code), "type", block.code))
    yield from ((kind, what) for _, kind, what in sorted(found))


def typed(terminal: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block, with the lines that are shown below it."""
    parts = re.split(r"^\$ (.+)\n", terminal, flags=re.MULTILINE)
    for command, shown in zip(parts[1::2], parts[2::2], strict=True):
        yield command, [" ".join(line.split()) for line in shown.splitlines() if line.strip() not in {"", "…"}]


def run(scene: Stage, command: str) -> list[str]:
    """Type a command in the example's directory; the lines that it prints, white space folded."""
    first, *arguments = shlex.split(command)
    assert first == "python"
    environment = {"PATH": "", **scene.environment}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=PROJECT, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert "Traceback" not in done.stderr
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def switch(scene: Stage, catalog: str, fault: str, label: str) -> None:
    """Give a simulated catalog a fault, which the site's page offers; how that does it is its own tests' business."""
    with urlopen(f"{scene.site}/", timeout=20) as page:
        shown = page.read().decode()
    assert re.search(rf'<option value="{fault}"[^>]*>\s*{label}\s*<', shown)
    urlopen(f"{scene.catalogs}/_faults/{catalog}", urlencode({"fault": fault}).encode(), timeout=20).close()


def missing(shown: list[str], printed: list[str]) -> str | None:
    """The first line of the page that was not printed, or not in this order; a line may go on."""
    left = iter(printed)
    return next((line for line in shown if not any(each.startswith(line) for each in left)), None)


def test_it_begins_with_the_demo() -> None:
    """What is typed before anything can be tried; the demo itself is tested elsewhere."""
    first = [command for kind, what in steps() if kind == "type" for command, _ in typed(what)][: len(BEFORE)]
    assert first == BEFORE
    assert "demo" in dev.COMMANDS
    assert PROJECT.name == "example_project"


def test_a_line_that_is_not_printed_is_noticed() -> None:
    """Or that comes in another place."""
    assert missing(["state found"], ["state found", "reason ok"]) is None
    assert missing(["state found"], ["state stopped"]) == "state found"
    assert missing(["reason", "state"], ["state found", "reason ok"]) == "state"


@pytest.mark.slow
def test_everything_is_as_it_says() -> None:
    """Each command prints what the page shows, with the faults that the page has switched."""
    commands = 0
    with stage(free_port(), recorded=None) as scene:
        for kind, what in steps():
            if kind == "switch":
                switch(scene, *what.split("|"))
                continue
            for command, shown in typed(what):
                if command not in BEFORE:
                    printed = run(scene, command)
                    assert missing(shown, printed) is None, f"{command}: {printed}"
                    commands += 1
    assert commands >= 10
