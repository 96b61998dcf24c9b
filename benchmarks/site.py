"""Which site is measured? Django's settings: one catalog a cache, one source, databases in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_LOCMEM = "django.core.cache.backends.locmem.LocMemCache"
_DJANGO_REDIS = "django_redis.cache.RedisCache"
_DJANGO = "django.core.cache.backends.redis.RedisCache"

#: Database alias → how many stopped IDs the benchmark ``growth`` puts there.
STOP_LISTS = {"stopped_100": 100, "stopped_10_000": 10_000, "stopped_1_000_000": 1_000_000}
#: Database numbers of the Valkey server: one a cache, so that nobody shares pools, keys or counts with another.
DATABASES_OF_PEERS = {
    "dogpile": 8,
    "requests-cache": 9,
    "pybreaker": 10,
    "cashews": 0,
    "cacheops": 14,
    "cachecontrol": 15,
    "hishel": 11,
}

#: Caches of the benchmark ``outage``, each with a pool of connections and a memory of its troubles of its own.
OUTAGES = tuple(f"outage-{number}" for number in range(12))
#: Seconds that they wait for a socket.
SOCKET_TIMEOUT = 0.25


def caches(redis: str) -> dict[str, dict[str, Any]]:
    """Return CACHES."""
    many = {"MAX_ENTRIES": 10_000_000}
    return {
        "default": {"BACKEND": _LOCMEM, "LOCATION": "default", "OPTIONS": many},
        "locmem": {"BACKEND": _LOCMEM, "LOCATION": "locmem", "OPTIONS": many},
        "django-redis": {"BACKEND": _DJANGO_REDIS, "LOCATION": f"{redis}/1"},
        "django": {"BACKEND": _DJANGO, "LOCATION": f"{redis}/2"},
        "naive": {"BACKEND": _DJANGO_REDIS, "LOCATION": f"{redis}/3"},
        "guards": {"BACKEND": _DJANGO_REDIS, "LOCATION": f"{redis}/5"},
        "soak-locmem": {"BACKEND": _LOCMEM, "LOCATION": "soak", "OPTIONS": {"MAX_ENTRIES": 500}},
        "soak-redis": {"BACKEND": _DJANGO_REDIS, "LOCATION": f"{redis}/6"},
        "simulation": {"BACKEND": _DJANGO_REDIS, "LOCATION": f"{redis}/7"},
        **{alias: _limited(redis, alias) for alias in (*OUTAGES, "outage-raw")},
        "growth-small": {"BACKEND": _DJANGO_REDIS, "LOCATION": f"{redis}/12"},
        "growth-large": {"BACKEND": _DJANGO_REDIS, "LOCATION": f"{redis}/13"},
        "herd": {
            "BACKEND": _DJANGO_REDIS,
            "LOCATION": f"{redis}/4",
            # Two hundred threads of one process read at the same moment; redis-py's own limit is a hundred.
            "OPTIONS": {"CONNECTION_POOL_KWARGS": {"max_connections": 1000}},
        },
    }


def _limited(redis: str, alias: str) -> dict[str, Any]:
    """A cache with time-outs; the name in its address gives it a pool of its own."""
    limits = {"SOCKET_TIMEOUT": SOCKET_TIMEOUT, "SOCKET_CONNECT_TIMEOUT": SOCKET_TIMEOUT}
    return {"BACKEND": _DJANGO_REDIS, "LOCATION": f"{redis}/11?client_name={alias}", "OPTIONS": limits}


def catalogs(url: str) -> dict[str, dict[str, Any]]:
    """Return CATALOG_FALLBACK: the catalogs are named after their caches."""
    source = {"URL": f"{url}/items/{{id}}"}
    closed = {**source, "BREAKER": {"OPEN_FOR": 3600, "MAX_OPEN_FOR": 3600}}
    common = {"SOURCES": {"primary": source}, "TTL": 3600, "STOP_CHECK": "cache"}
    return {
        "locmem": {**common, "CACHE": "locmem"},
        "locmem-auto": {**common, "CACHE": "locmem", "STOP_CHECK": "auto"},
        "django-redis": {**common, "CACHE": "django-redis"},
        "django": {**common, "CACHE": "django"},
        "refused": {**common, "CACHE": "guards", "SOURCES": {"primary": closed, "secondary": closed}},
        "herd": {**common, "CACHE": "herd", "SOURCES": {"primary": {**source, "TIMEOUT": 5, "BREAKER": None}}},
        "soak-locmem": {**common, "CACHE": "soak-locmem", "SOURCES": {"primary": {**source, "TIMEOUT": 60}}},
        "soak-redis": {**common, "CACHE": "soak-redis", "SOURCES": {"endless": {"BACKEND": "benchmarks.soak.Endless"}}},
        **{alias: {**common, "CACHE": alias} for alias in OUTAGES},
        **{alias: {**common, "CACHE": alias} for alias in ("growth-small", "growth-large")},
        "ten-sources": {
            **common,
            "CACHE": "growth-small",
            "SOURCES": {f"source-{number}": source for number in range(10)},
        },
        **_of_benchmarks(url),
    }


def _of_benchmarks(url: str) -> dict[str, dict[str, Any]]:
    """Catalogs that a benchmark describes itself."""
    from benchmarks import budget  # noqa: PLC0415  # it imports this module

    return {**budget.catalogs(url), **_simulation()}


def _simulation() -> dict[str, dict[str, Any]]:
    """A catalog for the visitors of the simulation, and one whose primary never answers, to count by."""
    from benchmarks.simulation import OPTIONS, SMALL  # noqa: PLC0415  # it imports the package, which needs settings

    breaker = {"OPEN_FOR": SMALL.open_for, "MAX_OPEN_FOR": SMALL.max_open_for}
    counted = {"BACKEND": "benchmarks.traffic.Counted", "MAX_CONCURRENT": 64}
    visited = {name: {**counted, "BREAKER": breaker, "OPTIONS": options} for name, options in OPTIONS.items()}
    closed = {**counted, "BREAKER": {"OPEN_FOR": 3600, "MAX_OPEN_FOR": 3600}}
    down = {name: {**closed, "OPTIONS": {**options, "down": name == "primary"}} for name, options in OPTIONS.items()}
    common = {"CACHE": "simulation", "TTL": SMALL.ttl, "STOP_CHECK": "cache"}
    return {"simulation": {**common, "SOURCES": visited}, "simulation-down": {**common, "SOURCES": down}}


def set_up(redis: str, url: str, directory: Path) -> None:
    """Configure Django for this process and make the tables, in files of this directory. Good for one call."""
    import django  # noqa: PLC0415  # the tests import this module under settings of their own
    from django.conf import settings  # noqa: PLC0415
    from django.core.management import call_command  # noqa: PLC0415

    settings.configure(
        CACHEOPS={},
        CACHEOPS_REDIS=f"{redis}/{DATABASES_OF_PEERS['cacheops']}",
        CACHES=caches(redis),
        CATALOG_FALLBACK=catalogs(url),
        DATABASES=_databases(directory),
        DATABASE_ROUTERS=["benchmarks.site.StopListRouter"],
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "catalog_fallback"],
        SECRET_KEY="only for benchmarks",  # noqa: S106  # nothing is signed with it
        USE_TZ=True,
    )
    django.setup()
    _forgive_the_machine()
    call_command("migrate", verbosity=0)


def _forgive_the_machine() -> None:
    """A cache that answers late while others use the processor is not in trouble; a pause would spoil the figures."""
    from catalog_fallback import cache_trouble  # noqa: PLC0415  # needs settings

    cache_trouble.SLOW = 60.0


class StopListRouter:
    """Says in which database the stop list is; the benchmark ``growth`` changes that between two lookups."""

    alias = "default"

    def db_for_read(self, model: type, **_hints: object) -> str:
        """The one that was chosen last, for every model: there is but the stop list."""
        return self.alias

    db_for_write = db_for_read


def _databases(directory: Path) -> dict[str, dict[str, Any]]:
    engine = "django.db.backends.sqlite3"
    return {alias: {"ENGINE": engine, "NAME": directory / f"{alias}.sqlite3"} for alias in ("default", *STOP_LISTS)}
