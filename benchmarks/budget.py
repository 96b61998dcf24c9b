"""By how much does a lookup go past its budget when the other side never comes to an end?"""

from __future__ import annotations

import multiprocessing
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import servers
from benchmarks.dripping_catalog import LONGEST
from benchmarks.herd import use_all_processors
from benchmarks.measuring import percentile
from benchmarks.report import Row
from benchmarks.surroundings import Surroundings

#: Seconds that each lookup is given.
BUDGET = 0.1
#: What the other side does → the URL of a source there; ``{origin}`` is the dripping server.
SCENES = {
    "head drip": "{origin}/head-drip/{{id}}",
    "body drip": "{origin}/body-drip/{{id}}",
    "trailers": "{origin}/trailers/{{id}}",
    "stalled TLS": "{tls_origin}/head-drip/{{id}}",
    "stalled DNS": "http://stalled.invalid/{{id}}",
    "dead addresses": "http://dead.invalid/{{id}}",
    "100-continue flood": "{origin}/100-continue/{{id}}",
}
#: Takes all of the processor, so that nothing is measured beside it.
_ALONE = "100-continue flood"
_REQUESTS = f"requests.get(timeout={BUDGET}) and a body drip of {LONGEST:g} s: beyond its time-out, ms"
#: Lookups of each scene in a round.
_TIMES = 3
_DEAD_HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")


def catalogs(url: str) -> dict[str, dict[str, Any]]:
    """Return a catalog for each scene, whose source is at a dripping server with this URL. No limit but the budget."""
    origins = {"origin": url, "tls_origin": url.replace("http:", "https:")}
    limits = {"TIMEOUT": 60, "CONNECT_TIMEOUT": 60, "BREAKER": None}
    return {
        catalog_of(scene): {"SOURCES": {"primary": {"URL": at.format(**origins), **limits}}, "CACHE": "locmem"}
        for scene, at in SCENES.items()
    }


def catalog_of(scene: str) -> str:
    """The alias of a scene's catalog."""
    return f"budget-{scene.replace(' ', '-')}".lower()


def row_names() -> list[str]:
    """The names of the rows."""
    return [*map(_name, SCENES), _REQUESTS]


def _name(scene: str) -> str:
    return f"budget, {scene}: p99 beyond it, ms"


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Let a process of its own look up; whatever waits without work waits side by side, as in a server."""
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        stack.enter_context(servers.unpinned())
        url = stack.enter_context(servers.dripping_catalog())
        directory = stack.enter_context(TemporaryDirectory())
        ours, theirs = spawn.Pipe()
        arguments = (theirs, around.redis, url, directory, _TIMES * rounds)
        process = spawn.Process(target=work, args=arguments, daemon=True)
        process.start()
        theirs.close()
        stack.callback(process.kill)
        beyond, of_requests = ours.recv()
    return [*_rows(beyond), Row(_REQUESTS, round(of_requests, 1))]


def _rows(beyond: dict[str, list[float]]) -> list[Row]:
    notes = {scene: f"median {percentile(each, 50):.1f}, {len(each)} lookups" for scene, each in beyond.items()}
    return [Row(_name(scene), round(percentile(beyond[scene], 99), 1), note=notes[scene]) for scene in SCENES]


def work(pipe: Connection, redis: str, url: str, directory: str, times: int) -> None:
    """Set Django up, let every scene happen so many times, and send by how many milliseconds each went past."""
    use_all_processors()
    from benchmarks import site  # noqa: PLC0415  # the process has no settings yet

    site.set_up(redis, url, Path(directory))
    from django.db import connections  # noqa: PLC0415

    beyond: dict[str, list[float]] = {}

    def play(scene: str, names: _Names) -> None:
        beyond[scene] = []
        for number in range(times + 1):
            beyond[scene].append(_beyond(scene, number))
            if scene == "stalled DNS":
                names.give_up()
        del beyond[scene][0]
        connections.close_all()

    with _no_names_and_no_answers() as names:
        threads = [threading.Thread(target=play, args=(scene, names)) for scene in SCENES if scene != _ALONE]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        play(_ALONE, names)
    pipe.send((beyond, _beyond_of_requests(f"{url}/body-drip/P001")))


def _beyond(scene: str, number: int) -> float:
    """Milliseconds past the budget of one lookup that nobody can answer."""
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    started = time.perf_counter()
    lookup = find_item(f"D{number}", catalog=catalog_of(scene), budget=BUDGET)
    spent = time.perf_counter() - started
    # Whoever joins a resolution that is just given up hears so before its time.
    if not lookup.is_unavailable or (spent < BUDGET - 0.005 and lookup.trace[0].reason != "dns_failed"):
        raise RuntimeError(f"{scene}: what was measured is not what was meant: {lookup} after {spent:.3f} s")
    return (spent - BUDGET) * 1000


def _beyond_of_requests(url: str) -> float:
    import requests  # noqa: PLC0415  # only needed by who measures

    started = time.perf_counter()
    with suppress(requests.RequestException):
        requests.get(url, timeout=BUDGET)
    return (time.perf_counter() - started - BUDGET) * 1000


@contextmanager
def _no_names_and_no_answers() -> Iterator[_Names]:
    """``stalled.invalid`` is not resolved, and the four addresses of ``dead.invalid`` never answer."""
    names = _Names()
    with ExitStack() as stack:
        names.deaf_port = _deaf_port(stack)
        socket.getaddrinfo = names.getaddrinfo
        try:
            yield names
        finally:
            socket.getaddrinfo = names.ask
            names.give_up()


class _Names:
    """A name server that says nothing, until it is told to give up."""

    def __init__(self) -> None:
        self.ask: Callable[..., Any] = socket.getaddrinfo
        self.deaf_port = 0
        self._over = threading.Event()

    def give_up(self) -> None:
        """Let go who waits now, so that the slots of the host are free for the next lookup."""
        over, self._over = self._over, threading.Event()
        over.set()

    def getaddrinfo(self, host: Any, *args: Any, **kwargs: Any) -> Any:
        """In the place of the system's."""
        if host == "stalled.invalid":
            self._over.wait()
            raise socket.gaierror(socket.EAI_NONAME, "not resolved")
        if host == "dead.invalid":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (dead, self.deaf_port)) for dead in _DEAD_HOSTS]
        return self.ask(host, *args, **kwargs)


def _deaf_port(stack: ExitStack) -> int:
    """A port whose queue is full: what else knocks there is not answered."""
    listener = stack.enter_context(socket.create_server(("", 0), backlog=1))
    port: int = listener.getsockname()[1]
    for host in _DEAD_HOSTS * 4:
        filler = stack.enter_context(socket.socket())
        filler.setblocking(False)
        filler.connect_ex((host, port))
    return port
