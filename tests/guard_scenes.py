"""How do tests of the whole chain make a guard refuse, and what did a lookup cost?"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog_fallback import operating
from catalog_fallback.calling import Caller
from catalog_fallback.fallback import chain_of
from catalog_fallback.results import Lookup
from tests import stores
from tests.crew import DJANGO_REDIS
from tests.resilience.guards import exhaust
from tests.sites import LOCMEM, Site

#: What makes every guard easy to exhaust.
EASY = {"BREAKER": {"CONSECUTIVE_FAILURES": 2}, "RATE_LIMIT": {"CALLS": 3, "PER": 60}, "MAX_CONCURRENT": 2}
#: Guard → the outcome that its refusal has.
REFUSALS = {
    "cooling_down": "stop",
    "bulkhead_full": "temporary",
    "rate_limited": "temporary",
    "circuit_open": "temporary",
    "isolated": "temporary",
}
CACHES = ("LocMem", "Valkey")
MEMORY = "tests.stores.MemoryCache"


def caller(source: str, catalog: str = "default") -> Caller:
    """One source of this process, behind its guard."""
    return next(each for each in chain_of[catalog].callers if each.config.alias == source)


def refuse(source: str, what: str) -> None:
    """Let one guard of a source refuse from now on."""
    if what == "isolated":
        operating.isolate_source("default", source)
    else:
        exhaust(caller(source).guard, what)


def over(site: Site, name: str, redis_url: str) -> None:
    """Use this cache, empty."""
    if name == "Valkey":
        site.cache_in(DJANGO_REDIS, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex)
    else:
        site.cache_in(LOCMEM, OPTIONS={"MAX_ENTRIES": 1_000_000})


def over_memory(site: Site) -> stores.Shelf:
    """Use a cache whose clock the test may move, and into which it may look."""
    location = uuid.uuid4().hex
    site.cache_in(MEMORY, LOCATION=location)
    return stores.shelf(location)


def trace(lookup: Lookup) -> list[tuple[str, str, str, bool]]:
    """The trace without its times: source, outcome, reason, called."""
    return [(each.source, str(each.outcome), each.reason, each.called) for each in lookup.trace]


class Cost:
    """What was spent inside the block of :func:`spent`."""

    operations: list[str]
    queries: list[str]


@contextmanager
def spent(shelf: stores.Shelf) -> Iterator[Cost]:
    """Count cache operations and database queries."""
    cost, before = Cost(), len(shelf.log)
    with CaptureQueriesContext(connection) as captured:
        yield cost
    cost.operations = [name for name, _ in shelf.log[before:]]
    cost.queries = [each["sql"] for each in captured.captured_queries]


def no_jitter(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """Let every random pause be the longest it may be; the bounds that were asked for."""
    asked: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        asked.append((low, high))
        return high

    monkeypatch.setattr("catalog_fallback.calling.random.uniform", uniform)
    return asked


def set_up(site: Site, **catalog: Any) -> None:
    """Two sources with all guards."""
    site.configure(EASY, EASY, **catalog)
