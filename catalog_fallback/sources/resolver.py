"""Which addresses has a host? Name resolution that ends in time, although ``getaddrinfo`` cannot be interrupted.

A name is resolved in a thread of its own, which ends with the answer. Each host has few slots for such threads, so
that a dead name server costs a bounded number of them, and one dead host no other. Callers share a resolution that has
just begun; with all slots of a host stuck they are refused at once.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from urllib3.util import connection as urllib3_connection

from catalog_fallback import clock

#: Threads that may hang in ``getaddrinfo`` for one host at the same time.
SLOTS_PER_HOST = 4
#: A resolution older than this is taken to be stuck, and nobody joins it any more.
JOIN_FOR = 1.0
#: Seconds for which the addresses of a host are used again.
KEEP_FOR = 30.0
_MAX_HOSTS = 256

Address = tuple[socket.AddressFamily, Any]
_Host = tuple[str, int]


@dataclass(slots=True)
class _Resolution:
    started_at: float
    done: threading.Event = field(default_factory=threading.Event)
    addresses: tuple[Address, ...] = ()
    error: Exception | None = None


class Resolver:
    """The names that one process resolves. Use ``of_this_process()``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[_Host, list[_Resolution]] = {}
        self._known: dict[_Host, tuple[float, tuple[Address, ...]]] = {}

    def resolve(self, host: str, port: int, left: Callable[[], float]) -> tuple[Address, ...]:
        """Return the addresses of a host, at least one.

        ``left`` tells how many seconds are left, or raises TimeoutError. Raises socket.gaierror when the name has no
        address or all slots of the host are busy, TimeoutError when the time is over first.
        """
        literal = _literal(host, port)
        if literal is not None:
            return (literal,)
        with self._lock:
            known = self._known_locked((host, port))
            running = None if known else self._join_locked((host, port))
        if known:
            return known
        assert running is not None
        if not running.done.wait(left()):
            raise TimeoutError("the host name was not resolved in time")
        if running.error is not None:
            raise socket.gaierror(socket.EAI_NONAME, "the host name was not resolved") from running.error
        return running.addresses

    def forget(self, host: str, port: int) -> None:
        """Resolve the host anew the next time; its addresses did not answer."""
        with self._lock:
            self._known.pop((host, port), None)

    def busy_slots(self) -> dict[str, int]:
        """Return the number of running resolutions, by host; a stuck name server shows here."""
        with self._lock:
            return {host: len(running) for (host, _), running in self._running.items() if running}

    def _known_locked(self, host: _Host) -> tuple[Address, ...] | None:
        good_until, addresses = self._known.get(host, (0.0, ()))
        return addresses if good_until > clock.monotonic() else None

    def _join_locked(self, host: _Host) -> _Resolution:
        running = self._running.setdefault(host, [])
        now = clock.monotonic()
        if running and now - running[-1].started_at < JOIN_FOR:
            return running[-1]
        if len(running) >= SLOTS_PER_HOST:
            raise socket.gaierror(socket.EAI_AGAIN, "all resolver slots of the host are busy")
        resolution = _Resolution(started_at=now)
        name = f"catalog-fallback-resolve-{host[0]}"
        try:
            threading.Thread(target=self._run, args=(host, resolution), name=name, daemon=True).start()
        except RuntimeError as error:
            raise socket.gaierror(socket.EAI_AGAIN, "no thread could be started to resolve the host") from error
        running.append(resolution)
        return resolution

    def _run(self, host: _Host, resolution: _Resolution) -> None:
        try:
            resolution.addresses = _ask(*host)
        except Exception as error:  # noqa: BLE001  # the waiting calls raise it as their own
            resolution.error = error
        with self._lock:
            self._finish_locked(host, resolution)
        resolution.done.set()

    def _finish_locked(self, host: _Host, resolution: _Resolution) -> None:
        running = self._running[host]
        running.remove(resolution)
        if not running:
            del self._running[host]
        if resolution.addresses:
            self._known.pop(host, None)
            self._known[host] = (clock.monotonic() + KEEP_FOR, resolution.addresses)
            if len(self._known) > _MAX_HOSTS:
                del self._known[next(iter(self._known))]


def _literal(host: str, port: int) -> Address | None:
    for family, address in ((socket.AF_INET, (host, port)), (socket.AF_INET6, (host, port, 0, 0))):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return family, address
    return None


def _ask(host: str, port: int) -> tuple[Address, ...]:
    found = socket.getaddrinfo(host, port, urllib3_connection.allowed_gai_family(), socket.SOCK_STREAM)
    if not found:
        raise OSError("getaddrinfo answered with an empty list")
    return tuple(dict.fromkeys((family, address) for family, _, _, _, address in found))


#: By process ID: after a fork the locks and threads of the parent are of no use.
_resolvers: dict[int, Resolver] = {}


def of_this_process() -> Resolver:
    """Return the resolver of this process."""
    pid = os.getpid()
    return _resolvers.get(pid) or _resolvers.setdefault(pid, Resolver())
