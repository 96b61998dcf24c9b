"""Who else is measured? Libraries of the group ``bench``; one that is not installed becomes a row that says so."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measuring import Case
from benchmarks.report import Row
from benchmarks.site import DATABASES_OF_PEERS

Load = Callable[[str], Any]


def is_installed(module: str) -> bool:
    """Can it be imported?"""
    return importlib.util.find_spec(module) is not None


def missing(names: Iterator[str] | list[str]) -> list[Row]:
    """Return a row for each peer that is not there."""
    return [Row(name, note="not installed: pip install --group bench") for name in names]


def dogpile_region(redis: str, **arguments: Any) -> Any:
    """A region of dogpile.cache over Redis, with its mutex in the process; ``arguments`` are those of its backend."""
    from dogpile.cache import make_region  # noqa: PLC0415  # optional

    url = f"{redis}/{DATABASES_OF_PEERS['dogpile']}"
    return make_region().configure("dogpile.cache.redis", expiration_time=3600, arguments={"url": url, **arguments})


def dogpile(redis: str, load: Load, **arguments: Any) -> Callable[[str], Any]:
    """``get_or_create`` of one key."""
    region = dogpile_region(redis, **arguments)
    return lambda item_id: region.get_or_create(item_id, load, creator_args=((item_id,), {}))


def requests_cache(redis: str, url: str) -> Callable[[str], Any]:
    """A session that keeps whole HTTP replies in Redis; what it returns is parsed each time."""
    from redis import Redis  # noqa: PLC0415  # only needed by who measures
    from requests_cache import CachedSession  # noqa: PLC0415  # optional
    from requests_cache.backends.redis import RedisCache  # noqa: PLC0415

    backend = RedisCache(connection=Redis.from_url(f"{redis}/{DATABASES_OF_PEERS['requests-cache']}"))
    session = CachedSession(backend=backend, expire_after=3600)
    return lambda item_id: session.get(f"{url}/items/{item_id}", timeout=(1.0, 2.0)).json()


def open_pybreaker(redis: str) -> Callable[[], object]:
    """One breaker of pybreaker that is open, its state in Redis."""
    import pybreaker  # noqa: PLC0415  # optional
    from redis import Redis  # noqa: PLC0415  # only needed by who measures

    server = Redis.from_url(f"{redis}/{DATABASES_OF_PEERS['pybreaker']}")
    storage = pybreaker.CircuitRedisStorage(pybreaker.STATE_OPEN, server)
    breaker = pybreaker.CircuitBreaker(fail_max=5, reset_timeout=3600, state_storage=storage)
    breaker.open()

    def call() -> object:
        try:
            return breaker.call(object)
        except pybreaker.CircuitBreakerError as error:
            return error

    assert isinstance(call(), pybreaker.CircuitBreakerError)
    return call


def bound(function: Callable[[str], Any], next_id: Callable[[], str]) -> Case:
    """A case that asks for what ``next_id`` says."""
    return lambda: function(next_id())
