"""Does the tour notice what is wrong, and does the demo leave nothing behind?"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tour import main
from tour.processes import DemoFailed, Stopped, free_port, server, stoppable
from tour.stage import Stage
from tour.steps import STEPS, Shown, Step, complaints, look_up, take, within_budget
from tour.visitor import Facts, Visitor, _hammer_facts

#: How Linux shows processes; elsewhere the tests that count them are skipped.
PROCESSES = Path("/proc/self/stat")
needs_processes = pytest.mark.skipif(not PROCESSES.exists(), reason="counts processes in /proc")

DEMO = Path(main.__file__).resolve().parent.parent / "demo.py"
FOUND = {
    "item_id": "P001",
    "state": "found",
    "reason": "ok",
    "source": "primary",
    "cache": "miss",
    "item": {"id": "P001", "name": "Blue teapot"},
    "trace": [{"source": "primary", "outcome": "found", "reason": "ok", "elapsed_ms": 1.25, "called": True}],
}


def children_of(pid: int) -> set[str]:
    """The processes that this one started and that still run."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if parent == str(pid) and state != "Z":
                found.add(stat.parent.name)
    return found


class Scripted(Visitor):
    """A visitor of a site that answers what the test says."""

    def __init__(self, *replies: object) -> None:
        self.done = []
        self.replies = list(replies)

    def calls(self) -> dict[str, int]:
        """Nobody is called."""
        return {"primary": 0}

    def command(self, *arguments: str) -> tuple[int, str]:
        """The next reply, as a command prints it."""
        return 0, self._get("")[2].decode()

    def _get(self, path: str) -> tuple[int, str, bytes]:
        reply = self.replies.pop(0)
        return 200, "application/json", reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()


@pytest.mark.parametrize(
    ("expect", "expected"),
    [
        pytest.param({"state": "found", "asked": ["primary found"], "name": "Blue teapot"}, [], id="right"),
        pytest.param({"state": "stopped"}, ["state: expected 'stopped', got 'found'"], id="wrong-state"),
        pytest.param({"asked": []}, ["asked: expected [], got ['primary found']"], id="wrong-trace"),
        pytest.param({"status": 404}, ["status: expected 404, got None"], id="missing"),
    ],
)
def test_a_step_complains_about_what_is_not_as_expected(expect: dict[str, Any], expected: list[str]) -> None:
    """Each fact that differs is named with both values."""
    shown = next(take([Step("", (look_up("P001"),), expect)], Scripted(FOUND)))
    assert list(shown.complaints) == expected


@pytest.mark.parametrize(
    "reply",
    ["<h1>Server Error</h1>", "", "[]", '"x"', '{"state": "found"}'],
    ids=["html", "empty", "list", "text", "part"],
)
def test_an_answer_that_is_no_lookup_is_wrong(reply: str) -> None:
    """A site or command that breaks gives a wrong step with its text, not a traceback."""
    shown = next(take([Step("", (look_up("P001"),), {"state": "found"})], Scripted(reply)))
    assert len(shown.complaints) == 1
    assert "no lookup but" in shown.complaints[0]
    assert "WRONG" in main._step_text(1, shown)


@pytest.mark.parametrize(
    ("seconds", "is_right"), [(1.0, True), (9.0, False), (None, False)], ids=["in-time", "late", "missing"]
)
def test_an_expectation_can_be_a_function(seconds: float | None, is_right: bool) -> None:
    """A limit is compared, and named where it is broken."""
    found = list(complaints({"seconds": within_budget}, {"seconds": seconds}))
    assert (found == []) is is_right
    assert all(complaint.startswith("seconds: expected at most 3.5 seconds") for complaint in found)


def test_one_wrong_step_makes_the_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The check goes on to its end, counts, and fails."""
    steps = (Step("right", (), {}), Step("wrong", (), {"state": "found"}), Step("right again", (), {}))
    monkeypatch.setattr(main, "STEPS", steps)
    (tmp_path / "site.log").write_text("Traceback of the site")
    assert main.check(Stage("", "", "", "nothing", tmp_path, {})) == 1
    shown = capsys.readouterr().out
    assert "Traceback of the site" in shown
    assert "1 of 3 steps" in shown
    assert "right again" in shown


def test_a_shown_step_holds_its_trace() -> None:
    """People see what was done, what came out, and who was asked."""
    shown = next(take([Step("title", (look_up("P001"),), {})], Scripted(FOUND)))
    text = main._step_text(3, shown)
    assert isinstance(shown, Shown)
    for words in (" 3. title", "found (ok) from primary", "Blue teapot", "1.2 ms", "✓ as expected"):
        assert words in text


REPORT = {"callers": 50, "states": {"found": 50}, "total": 1, "seconds": 0.25, "calls": {"primary": 1}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            json.dumps(REPORT), {"callers": 50, "states": {"found": 50}, "total": 1, "took": 0.25}, id="report"
        ),
        pytest.param('{"error": "no"}', {"state": 'no report but: {"error": "no"}'}, id="refused"),
        pytest.param("<title>Forbidden</title>", {"state": "no report but: Forbidden"}, id="page"),
    ],
)
def test_the_report_of_many_callers(body: str, expected: Facts) -> None:
    """What is no report is shown for what it is."""
    assert _hammer_facts(body.encode()) == expected


def test_many_callers_are_shown_in_one_line() -> None:
    """How many there were, what they got, and how often the catalogs were called."""
    facts = {**_hammer_facts(json.dumps(REPORT).encode()), "calls": 1}
    assert list(main._answers(facts)) == ["    → 50 callers: 50 × found; 1 call, all answered within 250 ms"]


def test_a_stop_is_shown_with_its_undo(tmp_path: Path) -> None:
    """Who is told how to withdraw an item is told how to bring it back."""
    text = main._where(Stage("http://127.0.0.1:8000", "", "secret", "nothing", tmp_path, {}))
    assert re.search(r"invalidate_item P001 --stop legal\n.*undo.*invalidate_item P001 --release\n", text)


def test_a_second_demo_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is set up, with the address of the first one."""
    monkeypatch.setattr(main, "running_demo", lambda: {main.SITE: "http://127.0.0.1:8000"})
    monkeypatch.setattr(main, "stage", lambda *args: pytest.fail("nothing is set up"))
    assert main.main([]) == 1
    assert "Another demo runs already at http://127.0.0.1:8000/" in capsys.readouterr().err


def test_the_tour_sees_every_state() -> None:
    """Found, not found, unavailable and stopped are all on the tour."""
    assert {step.expect["state"] for step in STEPS if "state" in step.expect} == {
        "found",
        "not_found",
        "unavailable",
        "stopped",
    }


# ------------------------------------------------------------------------------------------------ processes


def test_a_server_that_does_not_start_is_named(tmp_path: Path) -> None:
    """What a program said before it ended is in the message."""
    command = [sys.executable, "-c", "raise SystemExit('no such luck')"]
    with pytest.raises(DemoFailed, match="no such luck"), server(command, says="ready", log=tmp_path / "log"):
        pytest.fail("it did not start")


def test_somebody_elses_server_is_not_taken_for_ours(tmp_path: Path) -> None:
    """A program is ready when it says so, not when anybody listens on its port."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(stranger.getsockname()[1])]
        with pytest.raises(DemoFailed, match="in use"), server(command, says="Serving", log=tmp_path / "log"):
            pytest.fail("it did not start")


def _signalled_twice() -> None:
    with stoppable():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGINT)


def test_a_signal_ends_the_block_once() -> None:
    """The first signal ends it; others, while it is put away, do not disturb."""
    with pytest.raises(Stopped):
        _signalled_twice()


def test_a_taken_port_is_refused() -> None:
    """Somebody who asks for a port gets that one or a message; a check takes any free one."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        with pytest.raises(DemoFailed, match="taken"):
            main._port(port, is_check=False)
        assert main._port(None, is_check=True) != port


@needs_processes
def test_a_server_ends_with_its_block(tmp_path: Path) -> None:
    """Nothing runs on when the block is left."""
    before = children_of(os.getpid())
    command = [sys.executable, "-c", "import time; print('ready'); time.sleep(600)"]
    with server(command, says="ready", log=tmp_path / "log"):
        assert children_of(os.getpid()) > before
    assert children_of(os.getpid()) == before


# ------------------------------------------------------------------------------------------------ the whole


@pytest.mark.slow
def test_the_check_passes() -> None:
    """The whole tour, with real processes, comes out as expected."""
    result = subprocess.run(
        [sys.executable, str(DEMO), "--check"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=110,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"All {len(STEPS)} steps were as expected." in result.stdout


@pytest.fixture
def demo_port() -> int:
    """Where the site of the demo is."""
    return free_port()


@pytest.fixture
def demo(demo_port: int, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo that starts; ended by force where the test did not end it."""
    with subprocess.Popen(
        [sys.executable, str(DEMO), "--port", str(demo_port)],
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "EXAMPLE_VAR": str(tmp_path / "var")},
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


@needs_processes
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_the_demo_ends_cleanly(
    demo: subprocess.Popen[str], demo_port: int, number: signal.Signals, tmp_path: Path
) -> None:
    """It tells where the site is, and after a signal neither a process nor a file is left."""
    assert demo.stdout is not None
    assert any("Ctrl-C ends it all" in line for line in iter(demo.stdout.readline, ""))
    file = tmp_path / "var" / "running.json"
    running = json.loads(file.read_text())
    assert running["PID"] == demo.pid
    with urllib.request.urlopen(f"http://127.0.0.1:{demo_port}/", timeout=10) as page:
        assert b"Four answers" in page.read()
    started = children_of(demo.pid)
    demo.send_signal(number)
    rest = demo.stdout.read()
    assert demo.wait(30) == 0
    assert "nothing is left running" in rest
    assert len(started) >= 2
    assert not [process for process in started if Path("/proc", process).exists()]
    assert not Path(running["EXAMPLE_DATA"]).exists()
    assert not file.exists()
