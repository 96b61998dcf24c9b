"""What do the guards cost: when every source refuses, and when nothing is wrong?"""

from __future__ import annotations

import threading
from typing import Any

from benchmarks import counting, peers
from benchmarks.measuring import Case, interleave
from benchmarks.report import Row
from benchmarks.surroundings import Surroundings

#: Base of the ratios.
GET_MANY = "get_many of the guards' keys"
_FLOOR = "all sources refused: floor"
_REFUSED = "all sources refused: a whole lookup"
_COMMANDS = "all sources refused: cache commands"
_QUERIES = "all sources refused: database queries"
_NOBODY = "all sources refused: calls, threads and connections"
_PYBREAKER = "pybreaker over Redis, one open breaker"
#: Row → the catalog (named after its cache).
_TAKEN = {"look, take, settle, django-redis": "django-redis", "look, take, settle, LocMem": "locmem"}
_TAKEN_COMMANDS = "look, take, settle, django-redis: commands"
CATALOG = "refused"


def row_names() -> list[str]:
    """The names of the rows of our own."""
    taken = [each for name in _TAKEN for each in (f"{name}: floor", name)]
    return [_FLOOR, _REFUSED, _COMMANDS, _QUERIES, _NOBODY, *taken, _TAKEN_COMMANDS]


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Measure a lookup whose two sources have open breakers, and the guards of a call that is let through."""
    refused = refused_lookup()
    cases: dict[str, Case] = {_FLOOR: read_of(CATALOG), _REFUSED: refused}
    for name, catalog in _TAKEN.items():
        cases |= {f"{name}: floor": read_of(catalog), name: taken(catalog)}
    if peers.is_installed("pybreaker"):
        cases[_PYBREAKER] = peers.open_pybreaker(around.redis)
    timings = interleave(cases, rounds)
    rows = []
    for name in cases:
        floor = timings.get(f"{name}: floor") or timings[name if name.endswith(": floor") else _FLOOR]
        rows.append(Row(name, timings[name].ratio_to(floor), GET_MANY, timings[name].median))
    missing = [] if _PYBREAKER in cases else peers.missing([_PYBREAKER])
    return [*rows, *missing, *_counts(around, refused)]


def refused_lookup() -> Case:
    """A lookup of an item that is not in the cache, while the breakers of both sources are open for an hour."""
    from catalog_fallback import classify  # noqa: PLC0415  # needs settings
    from catalog_fallback.fallback import chain_of  # noqa: PLC0415
    from catalog_fallback.services import find_item  # noqa: PLC0415

    for caller in chain_of[CATALOG].callers:
        while caller.refusal(chain_of[CATALOG].look()) is None:
            permit: Any = caller.guard.take()
            permit.settle(classify.verdict("timeout"))
    lookup = find_item("REFUSED", catalog=CATALOG)
    assert [attempt.reason for attempt in lookup.trace] == ["circuit_open", "circuit_open"], lookup
    return lambda: find_item("REFUSED", catalog=CATALOG)


def read_of(catalog: str) -> Case:
    """``get_many`` of the keys that one look at these guards reads, through Django's cache."""
    from django.core.cache import caches  # noqa: PLC0415  # needs settings

    from catalog_fallback.fallback import chain_of  # noqa: PLC0415

    chain = chain_of[catalog]
    of_guards = [caller.guard.patterns(chain.stores.shared).keys() for caller in chain.callers]
    keys = [*chain.isolation.keys, *(key for keys in of_guards for key in keys)]
    cache = caches[chain.config.state_cache]
    return lambda: cache.get_many(keys)


def taken(catalog: str) -> Case:
    """A call that ends well at once, behind all guards: one look, one permit, one result."""
    from catalog_fallback import classify  # noqa: PLC0415  # needs settings
    from catalog_fallback.fallback import chain_of  # noqa: PLC0415

    chain, good = chain_of[catalog], classify.verdict("ok")
    guard = chain.callers[0].guard

    def call() -> None:
        permit: Any = guard.take(chain.look().view)
        permit.settle(good)

    return call


def _counts(around: Surroundings, refused: Case) -> list[Row]:
    counts = counting.commands(around.redis, refused)
    with counting.queries() as counted:
        refused()
    taken_counts = counting.commands(around.redis, taken("django-redis"))
    return [
        Row(_COMMANDS, sum(counts.values()), note=counting.as_note(counts)),
        Row(_QUERIES, counted.count),
        Row(_NOBODY, _started_by(refused)),
        Row(_TAKEN_COMMANDS, sum(taken_counts.values()), note=counting.as_note(taken_counts)),
    ]


def _started_by(refused: Case) -> int:
    """Threads that are there afterwards and were not before, and sessions that a source has opened."""
    from catalog_fallback.fallback import chain_of  # noqa: PLC0415  # needs settings

    threads = threading.active_count()
    refused()
    sessions = sum(len(caller.source._transport._sessions) for caller in chain_of[CATALOG].callers)
    return threading.active_count() - threads + sessions
