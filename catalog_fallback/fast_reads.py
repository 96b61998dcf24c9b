"""How are keys read with less work than the backend's own ``get_many``, and with the same answer?

Django's Redis backend makes a new client for each call; django-redis takes detours in and around redis-py's ``mget``.
A reader sends the same single MGET through the site's own connections, keys and serializer. It is used for exactly the
classes that it was written for; whatever else a site has (a subclass, another client, several servers) is read by
``get_many``.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

#: Returns the values under keys (at least one), None for what is missing. Raises Undecodable, or what the backend does.
Reader = Callable[[tuple[str, ...]], list[Any]]

_REDIS = "redis.client.Redis"
_DJANGO_CLIENT = "django.core.cache.backends.redis.RedisCacheClient"
_DJANGO_REDIS_CLIENT = "django_redis.client.default.DefaultClient"
_NOT_COMPRESSED = "django_redis.compressors.identity.IdentityCompressor"
_BEGINS_AN_INTEGER = b"0123456789+- \t\n\r\v\f"


class Undecodable(ValueError):
    """There is a value, but the cache's serializer does not understand it."""


def reader_of(cache: Any) -> Reader | None:
    """Return a reader that all threads may share, None where the cache's ``get_many`` has to do."""
    make = _MAKERS.get(_class_of(cache))
    if make is None or "get_many" in vars(cache):
        return None
    try:
        return make(cache)
    except Exception:  # noqa: BLE001 - a backend that cannot be set up says so itself when it is used
        return None


def _of_locmem(cache: Any) -> Reader:
    """The steps of its ``get``, but for the search for characters that Memcached would refuse: our keys have none."""
    make_key, lock, has_expired = cache.make_key, cache._lock, cache._has_expired
    pickles: OrderedDict[str, bytes] = cache._cache

    def pickle_of_locked(key: str) -> bytes | None:
        if has_expired(key):
            return None
        pickles.move_to_end(key, last=False)
        return pickles[key]

    def read(keys: tuple[str, ...]) -> list[Any]:
        with lock:
            found = [pickle_of_locked(make_key(key)) for key in keys]
        return _decoded(pickle.loads, found)

    return read


def _of_django(cache: Any) -> Reader | None:
    """One client for good. Its pool belongs to the backend, and opens its connections anew after a fork."""
    inner = cache._cache
    if _class_of(inner) != _DJANGO_CLIENT or len(inner._servers) != 1:
        return None
    client = inner.get_client(write=False)
    if _class_of(client) != _REDIS:
        return None
    return _over_redis(lambda: client, cache.make_and_validate_key, inner._serializer.loads)


def _of_django_redis(cache: Any) -> Reader | None:
    """The client is asked for on each call: DJANGO_REDIS_CLOSE_CONNECTION replaces it."""
    inner = cache.client
    if _class_of(inner) != _DJANGO_REDIS_CLIENT or _class_of(inner.get_client(write=False)) != _REDIS:
        return None
    decode = inner.decode if _class_of(inner._compressor) != _NOT_COMPRESSED else _without_detour(inner)
    return _over_redis(lambda: inner.get_client(write=False), inner.make_key, decode)


def _without_detour(client: Any) -> Callable[[bytes], Any]:
    """Its ``decode``, which takes every value for an integer at first; only what begins like one can be one."""
    decode, loads = client.decode, client._serializer.loads
    return lambda value: decode(value) if value[:1] in _BEGINS_AN_INTEGER else loads(value)


def _over_redis(
    get_client: Callable[[], Any], make_key: Callable[[str], str], decode: Callable[[bytes], Any]
) -> Reader:
    def read(keys: tuple[str, ...]) -> list[Any]:
        made = [make_key(key) for key in keys]
        return _decoded(decode, get_client().execute_command("MGET", *made, keys=made))

    return read


def _decoded(decode: Callable[[bytes], Any], found: list[bytes | None]) -> list[Any]:
    try:
        return [None if each is None else decode(each) for each in found]
    except Exception as error:
        raise Undecodable from error


def _class_of(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


_MAKERS: dict[str, Callable[[Any], Reader | None]] = {
    "django.core.cache.backends.locmem.LocMemCache": _of_locmem,
    "django.core.cache.backends.redis.RedisCache": _of_django,
    "django_redis.cache.RedisCache": _of_django_redis,
}
