"""How is Redis asked with less work than through a backend's own methods, and to the same effect?

Django's Redis backend makes a new client for each call; django-redis takes detours around redis-py, and redis-py around
its own ``execute_command``. What stands here sends the same single command through the site's own connections, keys and
serializer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from catalog_fallback.fast_cache import FastCache, class_of, decoded, or_none
from catalog_fallback.redis_scripts import RedisAccess, RedisScripts

_REDIS = "redis.client.Redis"
_DJANGO_CLIENT = "django.core.cache.backends.redis.RedisCacheClient"
_DJANGO_REDIS_CLIENT = "django_redis.client.default.DefaultClient"
_CLUSTER_CLIENT = "catalog_fallback.contrib.redis_cluster.ClusterClient"
_NOT_COMPRESSED = "django_redis.compressors.identity.IdentityCompressor"
_BEGINS_AN_INTEGER = b"0123456789+- \t\n\r\v\f"


class _OverRedis:
    """One command an operation and one round trip a method, through redis-py."""

    takes_any_keys = True

    def __init__(self, access: RedisAccess) -> None:
        self._client, self._make_key, self._encode, self._decode = access
        self.scripts: RedisScripts | None = RedisScripts(access, takes_any_keys=self.takes_any_keys)

    def read(self, keys: tuple[str, ...]) -> list[Any]:
        return decoded(self._decode, self.raw(keys))

    def raw(self, keys: tuple[str, ...]) -> list[bytes | None]:
        made = [self._make_key(key) for key in keys]
        found: list[bytes | None] = self._client().execute_command("MGET", *made, keys=made)
        return found

    def decoded(self, values: list[bytes | None]) -> list[Any]:
        return decoded(self._decode, values)

    def add(self, key: str, value: Any, seconds: int) -> bool:
        return bool(self._client().execute_command(*self._set(key, value, seconds), "NX"))

    def set(self, key: str, value: Any, seconds: int) -> None:
        self._client().execute_command(*self._set(key, value, seconds))

    def touch(self, key: str, seconds: int) -> bool:
        return bool(self._client().execute_command("EXPIRE", self._make_key(key), seconds))

    def delete(self, key: str) -> bool:
        return bool(self._client().execute_command("DEL", self._make_key(key)))

    def add_and_read(self, key: str, value: Any, seconds: int, keys: tuple[str, ...]) -> tuple[bool, list[Any] | None]:
        together = self._client().pipeline(transaction=False)
        together.execute_command(*self._set(key, value, seconds), "NX")
        together.execute_command("MGET", *map(self._make_key, keys))
        is_new, found = together.execute()
        return bool(is_new), or_none(functools.partial(decoded, self._decode), found)

    def set_and_touch(
        self, key: str, value: Any, seconds: int, touched: str | None, touched_seconds: int, deleted: str | None = None
    ) -> None:
        together = self._client().pipeline(transaction=False)
        together.execute_command(*self._set(key, value, seconds))
        if touched is not None:
            together.execute_command("EXPIRE", self._make_key(touched), touched_seconds)
        if deleted is not None:
            together.execute_command("DEL", self._make_key(deleted))
        together.execute()

    def _set(self, key: str, value: Any, seconds: int) -> tuple[Any, ...]:
        return "SET", self._make_key(key), self._encode(value), "EX", seconds


class _OverCluster(_OverRedis):
    """The same on a Redis Cluster. All keys of one item are in one slot, so that only batches have several."""

    takes_any_keys = False

    def raw(self, keys: tuple[str, ...]) -> list[bytes | None]:
        client, made = self._client(), [self._make_key(key) for key in keys]
        is_one_slot = len({client.keyslot(key) for key in made}) == 1
        found: list[bytes | None] = (
            client.execute_command("MGET", *made) if is_one_slot else client.mget_nonatomic(made)
        )
        return found


def of_django(cache: Any) -> FastCache | None:
    """One client for good. Its pool belongs to the backend, and opens its connections anew after a fork."""
    inner = cache._cache
    if class_of(inner) != _DJANGO_CLIENT or len(inner._servers) != 1:
        return None
    client, serializer = inner.get_client(write=True), inner._serializer
    if class_of(client) != _REDIS:
        return None
    return _OverRedis(RedisAccess(lambda: client, cache.make_and_validate_key, serializer.dumps, serializer.loads))


def of_django_redis(cache: Any) -> FastCache | None:
    """The client is asked for on each call: DJANGO_REDIS_CLOSE_CONNECTION replaces it."""
    inner = cache.client
    is_cluster = class_of(inner) == _CLUSTER_CLIENT
    if not (is_cluster or _is_plain(inner)):
        return None
    decode = inner.decode if class_of(inner._compressor) != _NOT_COMPRESSED else _decode_directly(inner)
    access = RedisAccess(inner.get_client, inner.make_key, inner.encode, decode)
    return (_OverCluster if is_cluster else _OverRedis)(access)


def _is_plain(client: Any) -> bool:
    """One server, and django-redis' own way to it."""
    is_own = (class_of(client), len(client._server)) == (_DJANGO_REDIS_CLIENT, 1)
    return is_own and class_of(client.get_client()) == _REDIS


def _decode_directly(client: Any) -> Callable[[bytes], Any]:
    """Its ``decode``, which takes every value for an integer at first; only what begins like one can be one."""
    decode, loads = client.decode, client._serializer.loads
    return lambda value: decode(value) if value[:1] in _BEGINS_AN_INTEGER else loads(value)
