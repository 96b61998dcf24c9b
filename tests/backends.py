"""Which caches can a site have? Every backend that is promised anything, how it is opened here, and what it can do.

The tests over all of them, and the table of ``docs/explanation/backends.md``, go by this list.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

DATABASE = "django.core.cache.backends.db.DatabaseCache"
FILE = "django.core.cache.backends.filebased.FileBasedCache"
LOCMEM = "django.core.cache.backends.locmem.LocMemCache"
PYMEMCACHE = "django.core.cache.backends.memcached.PyMemcacheCache"
REDIS = "django.core.cache.backends.redis.RedisCache"
DJANGO_REDIS = "django_redis.cache.RedisCache"
CLUSTER = "catalog_fallback.contrib.redis_cluster.ClusterClient"
DOUBLE = "tests.stores.MemoryCache"

_MANY = {"MAX_ENTRIES": 1_000_000}
_TABLE = "catalog_cache"


@dataclass(frozen=True)
class Backend:
    """One of them."""

    path: str
    options: Mapping[str, Any] = field(default_factory=dict)
    #: The fixture that says where its server is, "" where it needs none.
    server: str = ""
    #: ``add`` and ``incr`` have one winner among all who use it.
    is_atomic: bool = True
    #: All processes see the same.
    is_shared: bool = True


BACKENDS: dict[str, Backend] = {
    "double": Backend(DOUBLE, is_shared=False),
    "local memory": Backend(LOCMEM, _MANY, is_shared=False),
    "file": Backend(FILE, _MANY, is_atomic=False),
    "database, SQLite": Backend(DATABASE, _MANY, is_atomic=False),
    "database, PostgreSQL": Backend(DATABASE, _MANY, "postgres", is_atomic=False),
    "database, MariaDB": Backend(DATABASE, _MANY, "mariadb", is_atomic=False),
    "Memcached": Backend(PYMEMCACHE, {"timeout": 5, "connect_timeout": 5}, "memcached"),
    "Redis, Django's own": Backend(REDIS, server="redis_url"),
    "Redis, django-redis": Backend(DJANGO_REDIS, server="redis_url"),
    "Redis, django-redis, JSON": Backend(
        DJANGO_REDIS, {"SERIALIZER": "django_redis.serializers.json.JSONSerializer"}, "redis_url"
    ),
    "Redis, django-redis, msgpack": Backend(
        DJANGO_REDIS, {"SERIALIZER": "django_redis.serializers.msgpack.MSGPackSerializer"}, "redis_url"
    ),
    "Redis Cluster": Backend(DJANGO_REDIS, {"CLIENT_CLASS": CLUSTER}, "redis_cluster"),
}


class _CacheTablesIn:
    """Sends the tables of caches, and nothing else, to one database."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return self.alias if model._meta.app_label == "django_cache" else None

    db_for_read = db_for_write


def params_of(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The entry of CACHES for an empty corner of a backend. Skips, loudly, where its server is not here."""
    backend = BACKENDS[name]
    if backend.path in {REDIS, DJANGO_REDIS}:
        pytest.importorskip("redis")
    if backend.path == DJANGO_REDIS:
        pytest.importorskip("django_redis")
    server = request.getfixturevalue(backend.server) if backend.server else ""
    place = _LOCATIONS.get(backend.path)
    location = getattr(server, "urls", server) if place is None else place(server, tmp_path)
    params = {"BACKEND": backend.path, "LOCATION": location, "KEY_PREFIX": uuid.uuid4().hex[:8]}
    return {**params, "OPTIONS": dict(backend.options)} if backend.options else params


def make_tables(name: str, request: pytest.FixtureRequest) -> None:
    """Make the table of a database cache, after CACHES was set; nothing for the others."""
    backend = BACKENDS[name]
    if backend.path != DATABASE:
        return
    alias = request.getfixturevalue(backend.server) if backend.server else "default"
    request.getfixturevalue("settings").DATABASE_ROUTERS = [_CacheTablesIn(alias)]
    call_command("createcachetable", _TABLE, database=alias, verbosity=0)


_LOCATIONS: dict[str, Callable[[Any, Path], Any]] = {
    DATABASE: lambda server, tmp_path: _TABLE,
    DOUBLE: lambda server, tmp_path: uuid.uuid4().hex,
    FILE: lambda server, tmp_path: str(tmp_path / uuid.uuid4().hex),
    LOCMEM: lambda server, tmp_path: uuid.uuid4().hex,
    PYMEMCACHE: lambda server, tmp_path: server.location,
}
