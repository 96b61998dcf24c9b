"""How many commands and queries does something take? Told by the server and by Django, not by us."""

from __future__ import annotations

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
