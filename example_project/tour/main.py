"""What does ``python3 dev.py demo`` do? It sets the stage, and waits for you; with ``--check`` it takes the tour."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from portal.environment import RUNNING, running_demo
from tour.processes import DemoFailed, Stopped, free_port, is_listening, stoppable
from tour.stage import PROJECT, USERNAME, Stage, stage
from tour.steps import STEPS, Shown, take
from tour.visitor import Facts, Visitor

USUAL_PORT = 8000
#: Where the running demo says its address.
SITE = "EXAMPLE_SITE"


def main(arguments: Sequence[str]) -> int:
    """Run the demo; return the exit code."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        with stoppable():
            if not options.check:
                refuse_a_second_one()
            print("Setting up the site, its catalogs and its cache …", flush=True)
            with stage(_port(options.port, is_check=options.check), options.recorded) as scene:
                return check(scene) if options.check else show(scene)
    except DemoFailed as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except Stopped:
        print("\nStopped; nothing is left running.")
        return 0 if not options.check else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dev.py demo", description="Shows the example site.")
    parser.add_argument("--check", action="store_true", help="take the tour, verify each step, and end")
    parser.add_argument("--port", type=int, help=f"port of the site (default: {USUAL_PORT}, or a free one)")
    parser.add_argument("--recorded", type=_directory, help="answer from recorded replies (index.json, checks.json)")
    return parser


def _directory(text: str) -> Path:
    path = Path(text).resolve()
    for name in ("index.json", "checks.json"):
        if not (path / name).is_file():
            raise argparse.ArgumentTypeError(f"there is no {name} in {text}")
    return path


def _port(wanted: int | None, *, is_check: bool) -> int:
    if wanted is not None:
        if is_listening(wanted):
            raise DemoFailed(f"Port {wanted} is taken: choose another one with --port.")
        return wanted
    return free_port() if is_check or is_listening(USUAL_PORT) else USUAL_PORT


# ------------------------------------------------------------------------------------------------ the open stage


def show(scene: Stage) -> int:
    """Say where everything is, and wait for the end."""
    with _commands_join(scene):
        print(_where(scene), flush=True)
        threading.Event().wait()
    return 0


def _where(scene: Stage) -> str:
    manage = f"{_shown(Path(sys.executable))} {_shown(PROJECT / 'manage.py')}"
    return f"""
  The site   {scene.site}/
             look items up, break the catalogs, send 50 callers at once
  The admin  {scene.site}/admin/   {USERNAME} / {scene.password}
  The cache  {scene.cache}

To try in another terminal:

  Look a book up             {manage} lookup_item 9784063879179 --catalog books
  Say what would happen      {manage} lookup_item P002 --explain
  Withdraw an item …         {manage} invalidate_item P001 --stop legal
  … and undo that            {manage} invalidate_item P001 --release
  See how the catalogs are   {manage} catalog_status

Ctrl-C ends it all."""


def _shown(path: Path) -> str:
    """A path as it is typed in the project's directory."""
    try:
        return str(path.relative_to(PROJECT.parent))
    except ValueError:
        return str(path)


def refuse_a_second_one() -> None:
    """Raise DemoFailed where a demo runs already: commands could not tell which of the two is meant."""
    running = running_demo()
    if running:
        where = f" at {running[SITE]}/" if SITE in running else ""
        raise DemoFailed(f"Another demo runs already{where}: use that one, or end it with Ctrl-C in its terminal.")


@contextmanager
def _commands_join(scene: Stage) -> Iterator[None]:
    """While the demo runs, ``manage.py`` in another terminal works on its data."""
    refuse_a_second_one()
    RUNNING.unlink(missing_ok=True)
    RUNNING.parent.mkdir(parents=True, exist_ok=True)
    RUNNING.touch(mode=0o600)
    RUNNING.write_text(json.dumps({"PID": os.getpid(), SITE: scene.site, **scene.environment}), encoding="utf-8")
    try:
        yield
    finally:
        RUNNING.unlink(missing_ok=True)


# ------------------------------------------------------------------------------------------------ the tour


def check(scene: Stage) -> int:
    """Take the tour, print each step with its trace, and say what was wrong."""
    print(f"The cache: {scene.cache}", flush=True)
    wrong = 0
    for number, shown in enumerate(take(STEPS, Visitor(scene)), start=1):
        print(_step_text(number, shown), flush=True)
        wrong += bool(shown.complaints)
    if wrong:
        print(f"\nThe last lines of the site's log:\n\n{_last_lines(scene.directory / 'site.log')}")
        print(f"\n{wrong} of {len(STEPS)} steps were not as expected.")
        return 1
    print(f"\nAll {len(STEPS)} steps were as expected.")
    return 0


def _last_lines(log: Path, count: int = 30) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "(there is none)"
    return "\n".join(lines[-count:])


def _step_text(number: int, shown: Shown) -> str:
    facts = shown.facts
    lines = [f"\n{number:>2}. {shown.step.title}", *(f"      {done}" for done in shown.done), *_answers(facts)]
    for attempt in facts.get("trace", ()):
        took = f"{attempt['elapsed_ms']:.1f} ms" if attempt["called"] else "not called"
        lines.append(f"        {attempt['source']:<14}{attempt['outcome']:<11}{attempt['reason']:<18}{took:>10}")
    lines += [f"    ✗ WRONG: {complaint}" for complaint in shown.complaints] or ["    ✓ as expected"]
    return "\n".join(lines)


def _answers(facts: Facts) -> Iterator[str]:
    """What a step brought: a lookup in one line, and what many callers at once got."""
    if "callers" in facts:
        calls = f"{facts['calls']} call{'' if facts['calls'] == 1 else 's'}"
        states = ", ".join(f"{count} × {state}" for state, count in facts["states"].items())
        yield f"    → {facts['callers']} callers: {states}; {calls}, all answered within {facts['took'] * 1000:.0f} ms"
    if "state" in facts or "callers" not in facts:
        yield _answer(facts)


def _answer(facts: Facts) -> str:
    """The lookup of a step in one line."""
    if "reason" not in facts:
        return f"    → {facts.get('state', 'nothing')}"
    name = f", “{facts['name']}”" if facts["name"] else ""
    source = f" from {facts['source']}" if facts["source"] else ""
    calls = f"{facts['calls']} call{'' if facts['calls'] == 1 else 's'}"
    return f"    → {facts['state']} ({facts['reason']}){source}{name}; cache {facts['cache']}, {calls}"
