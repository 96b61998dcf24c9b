"""Which Memcached do the tests use? One of their own on a free port, which they may kill, freeze and start again."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers import free_port, skip_for_want_of, started


class Memcached:
    """A real Memcached server with the limits that it has by default: 250 bytes a key, a megabyte a value."""

    def __init__(self, binary: str, megabytes: int) -> None:
        self.port = free_port()
        self.location = f"127.0.0.1:{self.port}"
        self._command = [binary, "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-m", str(megabytes)]
        if os.geteuid() == 0:  # it asks who it shall be
            self._command += ["-u", "root"]
        self.process = self.start()
        self._asked = 0

    def start(self) -> subprocess.Popen[bytes]:
        """Start it (again), empty, on the same port."""
        self.process = started(self._command, self.port, stderr=subprocess.DEVNULL)
        return self.process

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()

    def expiries(self) -> dict[str, int]:
        """Every key, quoted as in a URL, with the second of its expiry; -1 is never."""
        lines = [dict(part.split("=", 1) for part in line.split()) for line in self._ask("lru_crawler metadump all")]
        return {line["key"]: int(line["exp"]) for line in lines}

    def connections_so_far(self) -> int:
        """How many were opened since it started, without those that ask."""
        count = self.count_of("total_connections")
        self._asked += 1
        return count - self._asked

    def count_of(self, name: str) -> int:
        """One of its own figures, by the name that it has there."""
        (line,) = [line for line in self._ask("stats") if line.startswith(f"STAT {name} ")]
        return int(line.split()[-1])

    def _ask(self, command: str) -> list[str]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(f"{command}\r\n".encode())
            answer = b""
            while not answer.endswith(b"END\r\n"):
                answer += connection.recv(65_536)
        return answer.decode().splitlines()[:-1]


@contextmanager
def running_memcached(megabytes: int = 64) -> Iterator[Memcached]:
    """A Memcached of one's own; skips where there is none, or no client for it."""
    binary = shutil.which("memcached")
    if binary is None:
        skip_for_want_of("Memcached", "install memcached")
    assert binary is not None
    if importlib.util.find_spec("pymemcache") is None:
        skip_for_want_of("a client for Memcached", "pip install pymemcache")
    server = Memcached(binary, megabytes)
    try:
        yield server
    finally:
        server.kill()
