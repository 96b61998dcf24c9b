"""How is a cache asked with less work than through its backend's own methods, and to the same effect?

Django's Redis backend makes a new client for each call; django-redis takes detours around redis-py, and redis-py around
its own ``execute_command``. What stands here sends the same single command through the site's own connections, keys and
serializer. It is used for exactly the classes that it was written for; whatever else a site has (a subclass, another
client, several servers) is used through the methods of its backend.
"""

from __future__ import annotations

import functools
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from catalog_fallback.redis_scripts import RedisAccess, RedisScripts

_REDIS = "redis.client.Redis"
_DJANGO_CLIENT = "django.core.cache.backends.redis.RedisCacheClient"
_DJANGO_REDIS_CLIENT = "django_redis.client.default.DefaultClient"
_CLUSTER_CLIENT = "catalog_fallback.contrib.redis_cluster.ClusterClient"
_NOT_COMPRESSED = "django_redis.compressors.identity.IdentityCompressor"
_BEGINS_AN_INTEGER = b"0123456789+- \t\n\r\v\f"


class Undecodable(ValueError):
    """There is a value, but the cache's serializer does not understand it."""


class FastCache(Protocol):
    """The operations of one cache, for all threads. They raise whatever the cache raises, IGNORE_EXCEPTIONS or not."""

    @property
    def scripts(self) -> RedisScripts | None:
        """What the server can do by itself, if it is one that can."""

    def read(self, keys: tuple[str, ...]) -> list[Any]:
        """Return the values under keys (at least one), None for what is missing; may raise Undecodable."""

    def add(self, key: str, value: Any, seconds: int) -> bool:
        """Return whether the key was new."""

    def set(self, key: str, value: Any, seconds: int) -> None:
        """Write."""

    def touch(self, key: str, seconds: int) -> bool:
        """Give the key a new life; return whether it was there."""

    def delete(self, key: str) -> bool:
        """Delete; return whether it was there."""

    def add_and_read(self, key: str, value: Any, seconds: int, keys: tuple[str, ...]) -> tuple[bool, list[Any] | None]:
        """Do ``add``, then ``read``; None in the place of values of which one cannot be decoded."""

    def set_and_touch(
        self, key: str, value: Any, seconds: int, touched: str | None, touched_seconds: int, deleted: str | None = None
    ) -> None:
        """Do ``set``, then ``touch`` another key and ``delete`` a third one, where they are given."""


def fast_cache(cache: Any) -> FastCache | None:
    """Return the faster way to a Django cache, None where there is none."""
    make = _MAKERS.get(_class_of(cache))
    if make is None or not vars(cache).keys().isdisjoint(_REPLACED):
        return None
    try:
        return make(cache)
    except Exception:  # noqa: BLE001 - a backend that cannot be set up says so itself when it is used
        return None


#: Methods that somebody (a test, a tracer) may have replaced on the object itself.
_REPLACED = frozenset({"add", "delete", "get", "get_many", "set", "touch"})


class _OverLocMem:
    """The same, without the search for characters that Memcached would refuse: our keys have none."""

    scripts: RedisScripts | None = None

    def __init__(self, cache: Any) -> None:
        self._make_key, self._has_expired = cache.make_key, cache._has_expired
        self._set_locked, self._delete_locked = cache._set, cache._delete
        self._lock, self._pickles, self._expiries = cache._lock, cache._cache, cache._expire_info
        self._life_of, self._protocol = cache.get_backend_timeout, cache.pickle_protocol
        assert isinstance(self._pickles, OrderedDict)

    def read(self, keys: tuple[str, ...]) -> list[Any]:
        make_key, pickles = self._make_key, self._pickles
        made = [make_key(key) for key in keys]
        with self._lock:
            found = [self._pickle_locked(key) if key in pickles else None for key in made]
        return _decoded(pickle.loads, found)

    def add(self, key: str, value: Any, seconds: int) -> bool:
        made, pickled = self._make_key(key), pickle.dumps(value, self._protocol)
        with self._lock:
            if made in self._pickles and not self._has_expired(made):
                return False
            self._set_locked(made, pickled, seconds)
            return True

    def set(self, key: str, value: Any, seconds: int) -> None:
        made, pickled = self._make_key(key), pickle.dumps(value, self._protocol)
        with self._lock:
            self._set_locked(made, pickled, seconds)

    def touch(self, key: str, seconds: int) -> bool:
        made = self._make_key(key)
        with self._lock:
            if self._has_expired(made):
                return False
            self._expiries[made] = self._life_of(seconds)
            return True

    def delete(self, key: str) -> bool:
        with self._lock:
            return bool(self._delete_locked(self._make_key(key)))

    def add_and_read(self, key: str, value: Any, seconds: int, keys: tuple[str, ...]) -> tuple[bool, list[Any] | None]:
        return self.add(key, value, seconds), _or_none(self.read, keys)

    def set_and_touch(
        self, key: str, value: Any, seconds: int, touched: str | None, touched_seconds: int, deleted: str | None = None
    ) -> None:
        self.set(key, value, seconds)
        if touched is not None:
            self.touch(touched, touched_seconds)
        if deleted is not None:
            self.delete(deleted)

    def _pickle_locked(self, key: str) -> bytes | None:
        if self._has_expired(key):
            return None
        self._pickles.move_to_end(key, last=False)
        found: bytes = self._pickles[key]
        return found


class _OverRedis:
    """One command an operation and one round trip a method, through redis-py."""

    takes_any_keys = True

    def __init__(self, access: RedisAccess) -> None:
        self._client, self._make_key, self._encode, self._decode = access
        self.scripts: RedisScripts | None = RedisScripts(access, takes_any_keys=self.takes_any_keys)

    def read(self, keys: tuple[str, ...]) -> list[Any]:
        made = [self._make_key(key) for key in keys]
        return _decoded(self._decode, self._client().execute_command("MGET", *made, keys=made))

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
        return bool(is_new), _or_none(functools.partial(_decoded, self._decode), found)

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

    def read(self, keys: tuple[str, ...]) -> list[Any]:
        client, made = self._client(), [self._make_key(key) for key in keys]
        if len({client.keyslot(key) for key in made}) == 1:
            return _decoded(self._decode, client.execute_command("MGET", *made))
        return _decoded(self._decode, client.mget_nonatomic(made))


def _of_django(cache: Any) -> FastCache | None:
    """One client for good. Its pool belongs to the backend, and opens its connections anew after a fork."""
    inner = cache._cache
    if _class_of(inner) != _DJANGO_CLIENT or len(inner._servers) != 1:
        return None
    client, serializer = inner.get_client(write=True), inner._serializer
    if _class_of(client) != _REDIS:
        return None
    return _OverRedis(RedisAccess(lambda: client, cache.make_and_validate_key, serializer.dumps, serializer.loads))


def _of_django_redis(cache: Any) -> FastCache | None:
    """The client is asked for on each call: DJANGO_REDIS_CLOSE_CONNECTION replaces it."""
    inner = cache.client
    is_cluster = _class_of(inner) == _CLUSTER_CLIENT
    if not (is_cluster or _is_plain(inner)):
        return None
    decode = inner.decode if _class_of(inner._compressor) != _NOT_COMPRESSED else _decode_directly(inner)
    access = RedisAccess(inner.get_client, inner.make_key, inner.encode, decode)
    return (_OverCluster if is_cluster else _OverRedis)(access)


def _is_plain(client: Any) -> bool:
    """One server, and django-redis' own way to it."""
    is_own = (_class_of(client), len(client._server)) == (_DJANGO_REDIS_CLIENT, 1)
    return is_own and _class_of(client.get_client()) == _REDIS


def _decode_directly(client: Any) -> Callable[[bytes], Any]:
    """Its ``decode``, which takes every value for an integer at first; only what begins like one can be one."""
    decode, loads = client.decode, client._serializer.loads
    return lambda value: decode(value) if value[:1] in _BEGINS_AN_INTEGER else loads(value)


def _decoded(decode: Callable[[bytes], Any], found: list[bytes | None]) -> list[Any]:
    try:
        return [None if each is None else decode(each) for each in found]
    except Exception as error:
        raise Undecodable from error


def _or_none(read: Callable[[Any], list[Any]], what: Any) -> list[Any] | None:
    try:
        return read(what)
    except Undecodable:
        return None


def _class_of(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


_MAKERS: dict[str, Callable[[Any], FastCache | None]] = {
    "django.core.cache.backends.locmem.LocMemCache": _OverLocMem,
    "django.core.cache.backends.redis.RedisCache": _of_django,
    "django_redis.cache.RedisCache": _of_django_redis,
}
