"""What does a miss cost beside the HTTP call that it cannot do without?"""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests

from benchmarks import counting, peers
from benchmarks.bars import SESSION_GET
from benchmarks.measuring import Case, Timing, interleave
from benchmarks.report import Row
from benchmarks.surroundings import Surroundings

_BASE = "one HTTP call: floor"
_CALL = "one source call, keep-alive"
_MISSES = {"miss, django-redis": "django-redis", "miss, Django's RedisCache": "django", "miss, LocMem": "locmem"}
_STANDING = "miss under a gate that stands, django-redis"
_STANDING_COMMANDS = f"{_STANDING}: commands"
_NAIVE = "naive: cache.get, the call, cache.set (django-redis)"
_QUERY = "part of a miss: the stop-list query (SQLite)"
_COMMANDS = "miss, django-redis: commands"
_PLAIN_COMMANDS = "miss, django-redis, plain operations: commands"
_QUERIES = "miss: database queries"
_ROUND_TRIP = "part of a miss: one round trip, MGET of 2 keys through redis-py"
_BARE_ROUND_TRIP = "the same on a bare socket"
_ROUND_TRIPS = "miss, django-redis: round trips to Redis"
_WAITING = "miss, django-redis, its parts: waiting for Redis"
_WITHOUT_REDIS = "miss, django-redis, its parts: call, query and work, as over LocMem"
_REST = "miss, django-redis, its parts: what is left (the client, around each exchange)"
_CALL_WITHIN = "miss, LocMem, its parts: the source call, inside the lookup"
_DOGPILE = "dogpile.cache over Redis, mutex in the process"
_REQUESTS_CACHE = "requests-cache over Redis"
_CALLS = 400
#: Optional peers: row → module.
_PEERS = {_DOGPILE: "dogpile.cache", _REQUESTS_CACHE: "requests_cache"}


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Measure a call and a whole lookup, each of an ID that nobody has asked for, beside the peers."""
    load = _loader(around)
    cases: dict[str, Case] = {
        _BASE: lambda: load(around.fresh_id()),
        _CALL: _source_call(around),
        **{name: miss_of(catalog, around) for name, catalog in _MISSES.items()},
        _STANDING: miss_again("django-redis", around),
        _QUERY: _stop_list_query(around),
        _ROUND_TRIP: _round_trip(around),
        _BARE_ROUND_TRIP: _bare_round_trip(around),
        _NAIVE: peers.bound(_naive(load), around.fresh_id),
    }
    cases |= _peer_cases(around, load)
    timings = interleave(cases, rounds, seconds=0.02)
    rows = [_row(name, timings) for name in cases]
    absent = peers.missing([name for name in _PEERS if name not in cases])
    return [*rows, *absent, *_counts(around), *_parts(around, timings)]


def row_names() -> list[str]:
    """The names of the rows of our own."""
    parts = [_ROUND_TRIP, _BARE_ROUND_TRIP, _ROUND_TRIPS, _CALL_WITHIN, _WITHOUT_REDIS, _WAITING, _REST]
    return [_CALL, *_MISSES, _STANDING, _QUERY, _COMMANDS, _STANDING_COMMANDS, _PLAIN_COMMANDS, _QUERIES, *parts]


def miss_of(catalog: str, around: Surroundings) -> Case:
    """A lookup of an item that is not in the cache, and that the catalog has."""
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    lookup = find_item(around.fresh_id(), catalog=catalog)
    assert lookup.is_found, lookup
    assert lookup.cache == "miss", lookup
    return lambda: find_item(around.fresh_id(), catalog=catalog)


def miss_again(catalog: str, around: Surroundings) -> Case:
    """A lookup of an item whose gate still stands, as it does when the item has expired."""
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    item_id = around.fresh_id()
    for _ in range(2):
        lookup = find_item(item_id, catalog=catalog, refresh=True)
        assert (lookup.is_found, lookup.cache) == (True, "miss"), lookup
    return lambda: find_item(item_id, catalog=catalog, refresh=True)


def _loader(around: Surroundings) -> peers.Load:
    """What a site writes without us: a session with time limits."""
    session = requests.Session()
    return lambda item_id: session.get(around.item_url(item_id), timeout=(1.0, 2.0)).json()


def _source_call(around: Surroundings) -> Case:
    """One call of our source: URL, GET with its hard limit, strict parsing."""
    from catalog_fallback import conf  # noqa: PLC0415  # needs settings
    from catalog_fallback.results import Reply  # noqa: PLC0415

    (config,) = conf.catalog("locmem").sources
    source = conf.build_source(config)

    def call() -> object:
        item_id = around.fresh_id()
        reply = source.fetch(item_id, "", {}, timeout=2.0)
        assert isinstance(reply, Reply), reply
        return source.parse(reply, item_id)

    return call


def _stop_list_query(around: Surroundings) -> Case:
    from catalog_fallback import stop_list  # noqa: PLC0415  # needs settings
    from catalog_fallback.cache import entries_of  # noqa: PLC0415

    entries = entries_of["locmem"]
    return lambda: stop_list.is_stopped(entries.query(around.fresh_id()))


def _naive(load: peers.Load) -> Callable[[str], Any]:
    from django.core.cache import caches  # noqa: PLC0415  # needs settings

    cache = caches["naive"]

    def ask(item_id: str) -> Any:
        item = cache.get(item_id)
        if item is None:
            item = load(item_id)
            cache.set(item_id, item, 3600)
        return item

    return ask


def _peer_cases(around: Surroundings, load: peers.Load) -> dict[str, Case]:
    makers: dict[str, Callable[[], Callable[[str], Any]]] = {
        _DOGPILE: lambda: peers.dogpile(around.redis, load),
        _REQUESTS_CACHE: lambda: peers.requests_cache(around.redis, around.catalog),
    }
    installed = [name for name, module in _PEERS.items() if peers.is_installed(module)]
    return {name: peers.bound(makers[name](), around.fresh_id) for name in installed}


def _row(name: str, timings: dict[str, Timing]) -> Row:
    return Row(name, timings[name].ratio_to(timings[_BASE]), SESSION_GET, timings[name].median)


def _counts(around: Surroundings) -> list[Row]:
    miss = miss_of("django-redis", around)
    counts = counting.commands(around.redis, miss)
    again = counting.commands(around.redis, miss_again("django-redis", around))
    with counting.queries() as counted:
        miss()
    with _without_scripts("django-redis"):
        plain = counting.commands(around.redis, miss)
    return [
        Row(_COMMANDS, sum(counts.values()), note=counting.as_note(counts)),
        Row(_STANDING_COMMANDS, sum(again.values()), note=counting.as_note(again)),
        Row(_PLAIN_COMMANDS, sum(plain.values()), note=counting.as_note(plain)),
        Row(_QUERIES, counted.count),
    ]


def _round_trip(around: Surroundings) -> Case:
    """What each exchange costs with the client that a miss uses, whatever is said."""
    from django_redis import get_redis_connection  # noqa: PLC0415  # needs settings

    client = get_redis_connection("django-redis")
    return lambda: client.mget("none", "no other")


def _bare_round_trip(around: Surroundings) -> Case:
    """The same command without a client: what the system and the server take."""
    host, port = around.redis.removeprefix("redis://").split(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange() -> bytes:
        connection.sendall(b"*3\r\n$4\r\nMGET\r\n$4\r\nnone\r\n$8\r\nno other\r\n")
        return connection.recv(4096)

    return exchange


def _parts(around: Surroundings, timings: dict[str, Timing]) -> list[Row]:
    """What a miss on django-redis consists of: the same without Redis, waiting for replies, and what is left."""
    trips = counting.round_trips(miss_of("django-redis", around))
    base, whole, without_redis = (timings[name].median for name in (_BASE, "miss, django-redis", "miss, LocMem"))
    parts = {
        _CALL_WITHIN: _call_within("locmem", around),
        _WITHOUT_REDIS: without_redis,
        _WAITING: trips.waited,
        _REST: whole - without_redis - trips.waited,
    }
    of_base = [Row(name, each / base, SESSION_GET, each) for name, each in parts.items()]
    return [Row(_ROUND_TRIPS, round(trips.count, 1)), *of_base]


def _call_within(catalog: str, around: Surroundings) -> float:
    """Return the microseconds of fetching and parsing inside a lookup, where the rest of its code comes in between."""
    from catalog_fallback.fallback import chain_of  # noqa: PLC0415  # needs settings

    miss = miss_of(catalog, around)
    source: Any = chain_of[catalog].callers[0].source
    times: list[float] = []

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                times.append((time.perf_counter() - started) * 1e6)

        return call

    source.fetch, source.parse = timed(source.fetch), timed(source.parse)
    try:
        for _ in range(_CALLS):
            miss()
    finally:
        del source.fetch, source.parse
    return statistics.median(fetch + parse for fetch, parse in zip(times[::2], times[1::2], strict=True))


@contextmanager
def _without_scripts(catalog: str) -> Iterator[None]:
    """What a server is to us that runs none."""
    from catalog_fallback.cache import entries_of  # noqa: PLC0415  # needs settings

    scripts = entries_of[catalog].store.scripts
    assert scripts is not None
    scripts.are_refused = True
    yield
    scripts.are_refused = False
