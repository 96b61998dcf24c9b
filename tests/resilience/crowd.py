"""What do the processes of the race tests do? Started afresh by ``spawn``, they share nothing but the server."""

from __future__ import annotations

import threading
import time
from multiprocessing.synchronize import Barrier, Event
from typing import Any

from catalog_fallback.configuration import BreakerConfig, RateLimitConfig
from catalog_fallback.resilience.guard import Guard, Stores
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.permit import Permit
from tests.resilience.redis_store import RedisStore

#: How long anybody waits for anybody, in seconds.
PATIENCE = 60


def guard_over(url: str, alias: str, **changes: Any) -> Guard:
    """One process's guard over the server; the alias is the test's own."""
    return Guard(Names("default", alias), Stores(RedisStore(url)), **changes)


def probing(url: str, alias: str, config: BreakerConfig, start: Barrier, leave: Event, admitted: Any) -> None:
    """Twenty-five threads come at the same moment; whoever is let through stays until everybody has come."""
    guarded = guard_over(url, alias, breaker=config, max_concurrent=100)
    together = threading.Barrier(26)

    def come() -> None:
        together.wait(PATIENCE)
        permit = guarded.take()
        admitted.put(isinstance(permit, Permit))
        leave.wait(PATIENCE)
        if isinstance(permit, Permit):
            permit.succeed()

    threads = [threading.Thread(target=come) for _ in range(25)]
    for each in threads:
        each.start()
    start.wait(PATIENCE)
    together.wait(PATIENCE)
    for each in threads:
        each.join()


def probe_for_ever(url: str, alias: str, config: BreakerConfig, call_limit: float, has_probe: Event) -> None:
    """Take the probe, and never give it back."""
    permit = guard_over(url, alias, breaker=config, call_limit=call_limit).take()
    assert isinstance(permit, Permit)
    has_probe.set()
    time.sleep(PATIENCE)


def boot(url: str, alias: str, config: BreakerConfig, refused: Any) -> None:
    """Start, look, ask."""
    guarded = guard_over(url, alias, breaker=config)
    view = guarded.stores.read((guarded,))
    is_refused = guarded.look(view) is not None and not isinstance(guarded.take(view), Permit)
    refused.put((is_refused, str(guarded.status(view).state)))


def hammer(url: str, alias: str, limit: RateLimitConfig, seconds: float, start: Barrier, starts: Any) -> None:
    """Two threads ask for calls as fast as they can, and note when they were let through."""
    guarded = guard_over(url, alias, rate_limit=limit, max_concurrent=100)
    seen: list[float] = []

    def ask() -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            permit = guarded.take()
            if isinstance(permit, Permit):
                seen.append(time.time())
                permit.succeed()

    start.wait(PATIENCE)
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    starts.put(seen)


def fail(url: str, alias: str, config: BreakerConfig, calls: int, start: Barrier, told: Any) -> None:
    """Let calls fail; report the changes that this process made."""
    changes: list[tuple[str, str, str]] = []
    guarded = guard_over(
        url, alias, breaker=config, on_change=lambda old, new, why: changes.append((str(old), str(new), why))
    )
    permits = [guarded.take() for _ in range(calls)]
    start.wait(PATIENCE)
    for permit in permits:
        if isinstance(permit, Permit):
            permit.fail()
    told.put(changes)
