"""How many commands and queries does something take? Told by the server and by Django, not by us."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

#: What clients say when they connect, and what the counting itself says.
_NOT_COUNTED = frozenset({"info", "config|resetstat", "hello", "client", "client|setinfo", "select", "auth", "ping"})
#: What the counting says when the last action is over.
_END = "catalog-fallback-counted"


def commands(redis: str, action: Callable[[], object], times: int = 20) -> dict[str, float]:
    """Return command → how often a client sent it for one action, connections being open.

    What a script does inside the server is part of its one command.
    """
    from redis import Redis  # noqa: PLC0415  # only needed by who measures

    action()
    counts: Counter[str] = Counter()
    with Redis.from_url(redis) as server, server.monitor() as monitor:
        for _ in range(times):
            action()
        server.echo(_END)
        for seen in monitor.listen():
            name, *words = seen["command"].lower().split(" ")
            if name == "echo" and _END in words:
                break
            counts[name] += seen["client_type"] != "lua"
    return {name: calls / times for name, calls in counts.items() if calls and name not in _NOT_COUNTED}


def run_by_server(redis: str, action: Callable[[], object], times: int = 20) -> dict[str, float]:
    """Return command → how often the server ran it for one action: what a script does inside it counts, too."""
    from redis import Redis  # noqa: PLC0415  # only needed by who measures

    action()
    with Redis.from_url(redis) as server:
        server.config_resetstat()
        for _ in range(times):
            action()
        return per_action(server.info("commandstats"), times)


@dataclass(frozen=True, slots=True)
class Trips:
    """How often the Redis client wrote for one action, and microseconds from there until it had read the reply."""

    count: float
    waited: float


def round_trips(action: Callable[[], object], times: int = 200) -> Trips:
    """Watch the Redis client, connections being open. Commands that travel together are one write, and one wait."""
    from redis.connection import AbstractConnection  # noqa: PLC0415  # only needed by who measures

    send, read = AbstractConnection.send_packed_command, AbstractConnection.read_response
    begun: list[float] = []
    waited: list[float] = []

    def sending(self: Any, *args: Any, **kwargs: Any) -> Any:
        begun.append(time.perf_counter())
        waited.append(0.0)
        return send(self, *args, **kwargs)

    def reading(self: Any, *args: Any, **kwargs: Any) -> Any:
        reply = read(self, *args, **kwargs)
        waited[-1] = time.perf_counter() - begun[-1]
        return reply

    action()
    AbstractConnection.send_packed_command, AbstractConnection.read_response = sending, reading
    try:
        for _ in range(times):
            action()
    finally:
        AbstractConnection.send_packed_command, AbstractConnection.read_response = send, read
    return Trips(len(begun) / times, sum(waited) / times * 1e6)


def per_action(stats: Mapping[str, Mapping[str, int]], times: int) -> dict[str, float]:
    """Return what ``INFO commandstats`` says, per action and without what is not counted."""
    counts = {name.removeprefix("cmdstat_"): each["calls"] for name, each in stats.items()}
    return {name: calls / times for name, calls in counts.items() if name not in _NOT_COUNTED}


def as_note(counts: Mapping[str, float]) -> str:
    """Return the counts as one line: ``2 mget, 1 set``."""
    return ", ".join(f"{calls:g} {name}" for name, calls in sorted(counts.items()))


@dataclass(slots=True)
class Queries:
    """How many database queries there were."""

    count: int = 0

    def __call__(self, execute: Callable[..., Any], *args: Any) -> Any:
        """Count one and let it pass, as Django's ``execute_wrapper`` wants it."""
        self.count += 1
        return execute(*args)


@contextmanager
def queries() -> Iterator[Queries]:
    """Count the queries of the default database inside the block."""
    from django.db import connection  # noqa: PLC0415  # needs settings

    counted = Queries()
    with connection.execute_wrapper(counted):
        yield counted
