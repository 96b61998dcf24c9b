"""What becomes of lookups when all connections to Redis are in use? The cache is in trouble for a while, no more."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.cache import caches
from django.db import connections

from catalog_fallback import services
from catalog_fallback.cache import store_of
from catalog_fallback.cache_trouble import PAUSE
from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.results import Lookup
from tests import backends
from tests.sites import FOUND, MovableClock, Site, words

redis = pytest.importorskip("redis")
pytest.importorskip("django_redis")

#: Backend and how it is told that there are so many connections.
BACKENDS: dict[str, tuple[str, dict[str, Any]]] = {
    "Django's own": (backends.REDIS, {"max_connections": 3}),
    "django-redis": (backends.DJANGO_REDIS, {"CONNECTION_POOL_KWARGS": {"max_connections": 3}}),
}


@pytest.fixture(params=BACKENDS)
def crowded(request: pytest.FixtureRequest, site: Site, redis_url: str) -> Site:
    """A site whose process may open three connections."""
    path, options = BACKENDS[request.param]
    # django-redis has one pool for each URL: this one must not be that of other tests.
    location = f"{redis_url.rpartition('/')[0]}/{7 if path == backends.REDIS else 8}"
    site.cache_in(path, LOCATION=location, KEY_PREFIX=uuid.uuid4().hex[:8], OPTIONS=options)
    site.say(FOUND)
    return site


@contextmanager
def all_in_use() -> Iterator[None]:
    """Somebody else of this process has every connection."""
    cache: Any = caches["default"]
    client = cache.client.get_client() if hasattr(cache, "client") else cache._cache.get_client(write=True)
    pool = client.connection_pool
    held = [pool.get_connection() for _ in range(pool.max_connections - len(pool._in_use_connections))]
    try:
        with pytest.raises(redis.exceptions.MaxConnectionsError):
            pool.get_connection()
        yield
    finally:
        for connection in held:
            pool.release(connection)


def test_h31_no_connection_left_is_a_cache_in_trouble(crowded: Site, moving: MovableClock) -> None:
    """Lookups fetch, an invalidation is refused, nothing raises; afterwards there are hits again."""
    assert [str(crowded.find().cache) for _ in range(2)] == ["miss", "hit"]
    with all_in_use():
        lookups = [crowded.find() for _ in range(5)]
        with pytest.raises(InvalidationFailed):
            services.invalidate_item("P001")
        assert store_of["default"].is_paused
    assert {(words(lookup), str(lookup.cache)) for lookup in lookups} == {(("found", "ok"), "miss")}
    moving.move(PAUSE + 1)
    assert str(crowded.find().cache) == "hit"


def test_more_threads_than_connections(crowded: Site) -> None:
    """Thirty threads that ask for hits, misses and batches at once: every answer is right."""
    crowded.configure({"MAX_CONCURRENT": 100})
    crowded.find()
    together = threading.Barrier(30)
    seen: list[Lookup] = []

    def ask(number: int) -> None:
        try:
            together.wait(30)
            for _ in range(10):
                seen.append(crowded.find())
            seen.append(crowded.find(language=f"l{number}"))
            seen.extend(services.find_items(["P001"], language="de").values())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {words(lookup) for lookup in seen} == {("found", "ok")}
    assert len(seen) == 30 * 12
