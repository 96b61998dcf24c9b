"""Is the table of docs/explanation/backends.md that of the tests and of the system checks?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks

from tests import backends
from tests.backends import BACKENDS
from tests.conf.making import raw_catalog

ROOT = Path(__file__).parents[1] / "docs"
PAGE = ROOT / "explanation" / "backends.md"
BOUNDED = {"socket_timeout": 0.25, "socket_connect_timeout": 0.25}
BOUNDED_DJANGO_REDIS = {"SOCKET_TIMEOUT": 0.25, "SOCKET_CONNECT_TIMEOUT": 0.25}
BOUNDED_MEMCACHED = {"timeout": 0.25, "connect_timeout": 0.25}
MANY = {"MAX_ENTRIES": 1_000_000}

#: Row → a configuration that follows the advice.
CONFIGURED: dict[str, dict[str, Any]] = {
    "local memory": {"BACKEND": backends.LOCMEM, "OPTIONS": MANY},
    "dummy": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
    "file": {"BACKEND": backends.FILE, "LOCATION": "/nowhere", "OPTIONS": MANY},
    "database, SQLite": {"BACKEND": backends.DATABASE, "LOCATION": "t", "OPTIONS": MANY},
    "database, PostgreSQL": {"BACKEND": backends.DATABASE, "LOCATION": "t", "OPTIONS": MANY},
    "database, MariaDB": {"BACKEND": backends.DATABASE, "LOCATION": "t", "OPTIONS": MANY},
    "Memcached": {"BACKEND": backends.PYMEMCACHE, "LOCATION": "a:11211", "OPTIONS": BOUNDED_MEMCACHED},
    "Memcached, several servers": {
        "BACKEND": backends.PYMEMCACHE,
        "LOCATION": ["a:11211", "b:11211"],
        "OPTIONS": BOUNDED_MEMCACHED,
    },
    "Memcached, pylibmc": {"BACKEND": "django.core.cache.backends.memcached.PyLibMCCache", "LOCATION": "a:11211"},
    "Redis, Django's own": {"BACKEND": backends.REDIS, "LOCATION": "redis://a", "OPTIONS": BOUNDED},
    "Redis, django-redis": {"BACKEND": backends.DJANGO_REDIS, "LOCATION": "redis://a", "OPTIONS": BOUNDED_DJANGO_REDIS},
    "Redis, several servers in `LOCATION`": {
        "BACKEND": backends.DJANGO_REDIS,
        "LOCATION": ["redis://a", "redis://b"],
        "OPTIONS": BOUNDED_DJANGO_REDIS,
    },
    "Redis Cluster": {
        "BACKEND": backends.DJANGO_REDIS,
        "LOCATION": ["redis://a", "redis://b"],
        "OPTIONS": {**BOUNDED_DJANGO_REDIS, "CLIENT_CLASS": backends.CLUSTER},
    },
}


def rows() -> dict[str, list[str]]:
    """Name → cells of the table."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    return {name: cells for name, *cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)}


def test_every_cache_has_a_row() -> None:
    """In the order of the configurations; none that the tests run over is missing."""
    assert list(rows()) == list(CONFIGURED)
    told_by_another = {"double", "Redis, django-redis, JSON", "Redis, django-redis, msgpack"}
    assert BACKENDS.keys() - told_by_another <= CONFIGURED.keys()


@pytest.mark.parametrize("name", sorted(BACKENDS.keys() & CONFIGURED.keys()))
def test_the_row_says_what_the_tests_go_by(name: str) -> None:
    """Whether all processes see the same, and whether there is one winner."""
    backend, (shared, atomic, *_) = BACKENDS[name], rows()[name]
    assert (shared, atomic) == ("yes" if backend.is_shared else "no", "yes" if backend.is_atomic else "no")


@pytest.mark.parametrize("name", CONFIGURED)
def test_the_row_names_the_checks(name: str, settings: Any) -> None:
    """Exactly those that speak up when a site is configured as the page advises."""
    if "django_redis" in CONFIGURED[name]["BACKEND"]:
        pytest.importorskip("django_redis")
    settings.CACHES = {"default": CONFIGURED[name]}
    settings.CATALOG_FALLBACK = raw_catalog()
    settings.ROOT_URLCONF = "tests.checks.plain_urls"
    said = [
        str(each.id).rpartition(".")[2]
        for each in run_checks(tags=["catalog_fallback"], include_deployment_checks=True)
    ]
    assert rows()[name][-1].split() == said


@pytest.mark.parametrize("page", ["explanation/backends.md", "how-to/redis-cluster.md"])
def test_the_settings_of_the_pages_pass_the_checks(page: str, settings: Any) -> None:
    """What somebody pastes from there is complained about by none of them."""
    pytest.importorskip("django_redis")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, page, "exec"), names)  # noqa: S102 - our own page
    settings.CACHES = names["CACHES"]
    settings.CATALOG_FALLBACK = raw_catalog()
    settings.ROOT_URLCONF = "tests.checks.plain_urls"
    assert run_checks(tags=["catalog_fallback"], include_deployment_checks=True) == []
    if "OPTIONS" in names:
        settings.CACHES = {"default": {**names["CACHES"]["default"], "OPTIONS": names["OPTIONS"]}}
        assert run_checks(tags=["catalog_fallback"], include_deployment_checks=True) == []
