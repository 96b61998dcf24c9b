"""Which caches can be asked with less work than through their backend's own methods?

Only those of exactly the classes that the faster ways were written for; whatever else a site has (a subclass, another
client, several servers) is used through the methods of its backend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catalog_fallback.fast_cache import FastCache, class_of
from catalog_fallback.fast_local_memory import OverLocMem
from catalog_fallback.fast_redis import of_django, of_django_redis

#: Methods that somebody (a test, a tracer) may have replaced on the object itself.
_REPLACED = frozenset({"add", "delete", "get", "get_many", "set", "touch"})


def fast_cache(cache: Any) -> FastCache | None:
    """Return the faster way to a Django cache, None where there is none."""
    make = _MAKERS.get(class_of(cache))
    if make is None or not vars(cache).keys().isdisjoint(_REPLACED):
        return None
    try:
        return make(cache)
    except Exception:  # noqa: BLE001 - a backend that cannot be set up says so itself when it is used
        return None


_MAKERS: dict[str, Callable[[Any], FastCache | None]] = {
    "django.core.cache.backends.locmem.LocMemCache": OverLocMem,
    "django.core.cache.backends.redis.RedisCache": of_django,
    "django_redis.cache.RedisCache": of_django_redis,
}
