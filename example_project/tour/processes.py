"""How does the demo start other programs, know that they are ready, and leave none behind?"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

STARTS_WITHIN = 30.0
STOPS_WITHIN = 5.0


class DemoFailed(Exception):
    """The demo cannot go on; the text says why."""


class Stopped(BaseException):
    """Somebody asked the demo to end (Ctrl-C, SIGTERM, a closed terminal)."""


def free_port() -> int:
    """A port of this computer that nobody listens on, below those that the system hands out by itself."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def is_listening(port: int) -> bool:
    """Does somebody accept connections on this port?"""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn the signals that end a program into Stopped, so that everything is put away; later ones are ignored."""
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

    def stop(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def server(
    command: Sequence[str], *, says: str, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server until the end of the block; its output goes to a file, and it is ready once it says so there.

    It has a session of its own, so that Ctrl-C reaches the demo alone, which then stops its servers in order.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            start_new_session=True,
        )
    try:
        _wait_until_ready(process, says, log)
        yield
    finally:
        _end(process)


def _wait_until_ready(process: subprocess.Popen[bytes], says: str, log: Path) -> None:
    patience = time.monotonic() + STARTS_WITHIN
    while says not in (said := log.read_text(encoding="utf-8", errors="replace")):
        if process.poll() is not None or time.monotonic() > patience:
            raise DemoFailed(f"This did not start: {' '.join(map(str, process.args))}\n{said[-2000:]}")  # type: ignore[arg-type]
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOPS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
