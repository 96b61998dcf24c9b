"""What kind of cache is behind an alias of CACHES? Facts from the settings; no cache is opened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.memcached import BaseMemcachedCache, PyLibMCCache, PyMemcacheCache
from django.core.cache.backends.redis import RedisCache
from django.utils.module_loading import import_string

from catalog_fallback.conf.complaints import Place, did_you_mean, shown

_DJANGO_REDIS = "django_redis."
#: What makes redis-py's cluster client read from replicas.
_CLUSTER_REPLICAS = ("read_from_replicas", "load_balancing_strategy")
#: What Memcached takes, after prefix and encoding.
LONGEST_KEY = 250
#: Room for what our keys hold beside KEY_PREFIX, VERSION and the catalog's alias: kind, ID or its digest, variant or
#: source, token.
OWN_KEY_BYTES = 170


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """One alias of CACHES. Location and options may hold passwords and are in no repr."""

    alias: str
    backend: type
    params: Mapping[str, Any] = field(repr=False)

    @property
    def servers(self) -> tuple[str, ...]:
        """LOCATION as a tuple of one or more."""
        location = self.params.get("LOCATION") or ""
        if isinstance(location, (list, tuple, set)):
            return tuple(map(str, location))
        is_list = self.is_redis or self.is_memcached
        return tuple(re.split("[;,]", str(location))) if is_list else (str(location),)

    @property
    def options(self) -> Mapping[str, Any]:
        """OPTIONS, empty where there are none."""
        return self.params.get("OPTIONS") or {}

    @property
    def name(self) -> str:
        """The backend's name for people."""
        return self.backend.__name__

    @property
    def key_head(self) -> str:
        """What Django puts before each key."""
        return f"{self.params.get('KEY_PREFIX') or ''}:{self.params.get('VERSION') or 1}:"

    @property
    def is_per_process(self) -> bool:
        """Each process has its own content, or none at all."""
        return issubclass(self.backend, (LocMemCache, DummyCache))

    @property
    def is_dummy(self) -> bool:
        """It keeps nothing."""
        return issubclass(self.backend, DummyCache)

    @property
    def is_database(self) -> bool:
        """It is a table of the database."""
        return issubclass(self.backend, DatabaseCache)

    @property
    def is_atomic(self) -> bool:
        """``add`` and ``incr`` have exactly one winner."""
        return not issubclass(self.backend, (FileBasedCache, DatabaseCache))

    @property
    def is_unanswered(self) -> bool:
        """Its writes are not answered: ``add`` says yes to everybody."""
        return issubclass(self.backend, PyMemcacheCache) and bool(self.options.get("default_noreply"))

    @property
    def is_memcached(self) -> bool:
        """It is Memcached, through whichever client."""
        return issubclass(self.backend, BaseMemcachedCache)

    @property
    def mixes_up_after_fork(self) -> bool:
        """Its client goes on using the connection that its parent process has open."""
        return issubclass(self.backend, PyLibMCCache)

    @property
    def is_culling(self) -> bool:
        """It throws keys away at random above MAX_ENTRIES."""
        return issubclass(self.backend, (LocMemCache, FileBasedCache, DatabaseCache))

    @property
    def max_entries(self) -> Any:
        """MAX_ENTRIES, Django's default where it is not set."""
        return self.options.get("MAX_ENTRIES", 300)

    @property
    def is_django_redis(self) -> bool:
        """It is the cache of the package django-redis, or made from it."""
        return any(each.__module__.startswith(_DJANGO_REDIS) for each in self.backend.__mro__)

    @property
    def is_redis(self) -> bool:
        """It is Django's own Redis cache or django-redis."""
        return self.is_django_redis or issubclass(self.backend, RedisCache)

    @property
    def is_cluster(self) -> bool:
        """It is a Redis Cluster, of which LOCATION names some nodes."""
        return self.is_django_redis and "Cluster" in self._client_class

    @property
    def _client_class(self) -> str:
        return str(self.options.get("CLIENT_CLASS", ""))

    @property
    def reads_replicas(self) -> bool:
        """It writes to one server and reads from others."""
        if not self.is_django_redis:
            return self.is_redis and len(self.servers) > 1
        if self.is_cluster:
            return any((self.options.get("REDIS_CLIENT_KWARGS") or {}).get(option) for option in _CLUSTER_REPLICAS)
        client = self._client_class
        return "Sentinel" in client or (len(self.servers) > 1 and "Shard" not in client)

    @property
    def missing_socket_timeouts(self) -> list[str]:
        """The OPTIONS that would bound an operation on a server that hangs, and are not there."""
        if issubclass(self.backend, PyMemcacheCache):
            return [name for name in ("connect_timeout", "timeout") if self.options.get(name) is None]
        if not self.is_redis:
            return []
        pool = self.options.get("CONNECTION_POOL_KWARGS") or {}
        names = ("socket_connect_timeout", "socket_timeout")
        missing = [name for name in names if not self._has_socket_option(name, pool)]
        return [name.upper() if self.is_django_redis else name for name in missing]

    def _has_socket_option(self, name: str, pool: Mapping[str, Any]) -> bool:
        if all(name in parse_qs(urlsplit(server).query) for server in self.servers):
            return True
        if self.is_django_redis:
            return bool(self.options.get(name.upper()) or pool.get(name))
        return self.options.get(name) is not None

    def shares_options_with(self, other: CacheFacts) -> bool:
        """Two aliases are one store in this process, so that the options of only one of them count."""
        if self.backend is not other.backend or not (self.is_django_redis or self.is_culling):
            return False
        return not set(self.servers).isdisjoint(other.servers)


def cache_facts(alias: str) -> CacheFacts | None:
    """Return what the settings say of an alias; None where CACHES has no such alias or its backend is not there."""
    params: Mapping[str, Any] | None = settings.CACHES.get(alias)
    if params is None:
        return None
    try:
        backend = import_string(params["BACKEND"])
    except Exception:  # noqa: BLE001  # whatever its module raises
        return None
    return CacheFacts(alias, backend, params) if isinstance(backend, type) else None


def check_cache(key: str, alias: str, place: Place, key_head: str) -> None:
    """Complain when an alias cannot be used, or when keys that begin with ``key_head`` would be too long in it."""
    known = [str(each) for each in settings.CACHES]
    facts = cache_facts(alias)
    if alias not in known:
        place.at(key).complain("E012", f"is {shown(alias)}, which is not in CACHES.", did_you_mean(alias, known))
    elif facts is None:
        hint = f'Correct CACHES["{alias}"]["BACKEND"], or install its package.'
        place.at(key).complain("E012", f'is "{alias}", whose BACKEND cannot be imported.', hint)
    elif (length := len(f"{facts.key_head}{key_head}") + OWN_KEY_BYTES) > LONGEST_KEY:
        place.at("KEY_PREFIX").complain(
            "E013",
            f'makes keys of up to {length} bytes in the cache "{alias}"; Memcached takes {LONGEST_KEY}.',
            f'Shorten it, VERSION, the catalog\'s alias, or CACHES["{alias}"]["KEY_PREFIX"].',
        )
