"""Do the system checks say what is wrong in each place, and are they quiet where nothing is?"""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.http import HttpResponse
from django.urls import include, path

from tests.conf.adapters import PATH
from tests.conf.making import CATALOG, SECRET, SOURCE, URL, raw_catalog, raw_source

LOCMEM = "django.core.cache.backends.locmem.LocMemCache"
DUMMY = "django.core.cache.backends.dummy.DummyCache"
FILE = "django.core.cache.backends.filebased.FileBasedCache"
DATABASE = "django.core.cache.backends.db.DatabaseCache"
MEMCACHED = "django.core.cache.backends.memcached.PyMemcacheCache"
PYLIBMC = "django.core.cache.backends.memcached.PyLibMCCache"
REDIS = "django.core.cache.backends.redis.RedisCache"
DJANGO_REDIS = "tests.checks.test_checks.LikeDjangoRedis"
BOUNDED = {"socket_timeout": 0.25, "socket_connect_timeout": 0.25}
BOUNDED_MEMCACHED = {"timeout": 0.25, "connect_timeout": 0.25}
BOUNDED_DJANGO_REDIS = {"SOCKET_TIMEOUT": 0.25, "SOCKET_CONNECT_TIMEOUT": 0.25}
CLUSTER = {**BOUNDED_DJANGO_REDIS, "CLIENT_CLASS": "catalog_fallback.contrib.redis_cluster.ClusterClient"}


class LikeDjangoRedis:
    """Stands for the class of django-redis, which need not be installed: it is told by its module."""


LikeDjangoRedis.__module__ = "django_redis.cache"


def redis(**params: Any) -> dict[str, Any]:
    """A cache with which nothing is wrong, changed by these keys."""
    return {"BACKEND": REDIS, "LOCATION": "redis://cache:6379/1", "OPTIONS": BOUNDED, **params}


@pytest.fixture(autouse=True)
def fine(settings: Any) -> None:
    """Settings with which nothing is wrong; each test spoils one thing."""
    settings.CACHES = {"default": redis()}
    settings.CATALOG_FALLBACK = raw_catalog()
    settings.ROOT_URLCONF = "tests.checks.plain_urls"


def found(*, deploy: bool = True) -> list[CheckMessage]:
    """What the checks say."""
    return run_checks(tags=["catalog_fallback"], include_deployment_checks=deploy)


def ids(*, deploy: bool = True) -> list[str]:
    """The IDs of what the checks say, without their prefix."""
    return [str(message.id).removeprefix("catalog_fallback.") for message in found(deploy=deploy)]


def only(check_id: str, *, deploy: bool = True) -> str:
    """The text of the one message; an error or a warning by its ID."""
    messages = found(deploy=deploy)
    assert [message.id for message in messages] == [f"catalog_fallback.{check_id}"], messages
    assert messages[0].is_serious() is (check_id[0] == "E")
    assert messages[0].hint
    return f"{messages[0].msg} {messages[0].hint}"


def deployed_only(check_id: str) -> str:
    """The text of the one message of ``check --deploy``, about which plain ``check`` is quiet."""
    assert ids(deploy=False) == []
    return only(check_id)


def test_nothing_is_said_when_nothing_is_wrong() -> None:
    """A check that always complains is soon silenced."""
    assert found() == []


def test_a_wrong_setting_is_an_error(settings: Any) -> None:
    """What the runtime would refuse is named by ``manage.py check``, with place, value and remedy."""
    settings.CATALOG_FALLBACK = raw_catalog(TTL=-1)
    assert only("E003", deploy=False).startswith(f'{CATALOG}["TTL"] is -1. Set it to seconds')
    with pytest.raises(SystemCheckError, match=r"catalog_fallback.E003"):
        call_command("check")


def test_a_parsers_warning_is_a_warning(settings: Any) -> None:
    """What is only odd does not stop a command."""
    settings.CATALOG_FALLBACK = raw_source(CONNECT_TIMEOUT=5)
    assert only("W003", deploy=False).startswith(f'{SOURCE}["CONNECT_TIMEOUT"] is 5')


def test_wrong_settings_break_no_deploy_check(settings: Any) -> None:
    """The plain check names the error; the others look at what is right."""
    settings.CATALOG_FALLBACK = {**raw_source(URL="http://api.example.com/{id}"), "other": None}
    assert ids() == ["E003", "W016"]


# Sources


def test_a_sources_own_complaint_is_a_warning(settings: Any) -> None:
    """``Source.check`` of an adapter is asked, of a disabled source too."""
    settings.CATALOG_FALLBACK = raw_catalog(
        SOURCES={"a": {"URL": URL}, "primary": {"URL": URL, "BACKEND": PATH + "Keyed", "ENABLED": False}}
    )
    assert only("W006", deploy=False).startswith(f"{SOURCE} is incomplete: the key is missing.")


def test_a_secret_that_an_adapter_quotes_is_masked(settings: Any) -> None:
    """A careless adapter gives nothing away."""
    settings.CATALOG_FALLBACK = raw_source(BACKEND=PATH + "Keyed", OPTIONS={"key": SECRET})
    assert "the key '…' is odd" in only("W006")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"BACKEND": PATH + "Keyed", "OPTIONS": {"country": "nowhere", "key": SECRET}}, "ValueError: no country for …"),
        ({"BACKEND": PATH + "Fragile"}, "LookupError: broken check"),
    ],
    ids=["constructor", "check"],
)
def test_a_source_that_cannot_be_made_is_an_error(settings: Any, keys: dict[str, Any], words: str) -> None:
    """Whatever an adapter raises is a message, and quotes no secret."""
    settings.CATALOG_FALLBACK = raw_source(**keys)
    assert f"{SOURCE} cannot be made ({words})" in only("E017", deploy=False)


def test_a_missing_contact_is_asked_for(settings: Any) -> None:
    """Some APIs refuse clients that do not say who they are."""
    raw = raw_catalog(SOURCES={"digits": {"BACKEND": PATH + "Digits"}})
    settings.CATALOG_FALLBACK = raw
    assert "the APIs behind digits ask for a contact" in only("W009", deploy=False)
    raw["default"]["CONTACT"] = "me@example.com"
    settings.CATALOG_FALLBACK = dict(raw)
    assert found() == []


def test_h65_netrc_leak_userinfo_in_a_url_is_an_error(settings: Any) -> None:
    """Credentials in a URL end in logs, and switch on what requests does with them."""
    settings.CATALOG_FALLBACK = raw_source(URL=f"https://me:{SECRET}@api.example.com/{{id}}")
    text = only("E006", deploy=False)
    assert "user name or password" in text
    assert SECRET not in text


@pytest.mark.parametrize("host", ["api.example.com", "10.0.0.1", "[2001:db8::1]", "localhost.example.com"])
def test_plain_http_is_named_on_deployment(settings: Any, host: str) -> None:
    """Another machine, over a wire that others may share."""
    settings.CATALOG_FALLBACK = raw_source(URL=f"http://{host}/items/{{id}}")
    assert deployed_only("W016").startswith(f'{SOURCE}["URL"] is plain http')


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "127.8.9.1:80", "[::1]:8000", "catalog.localhost"])
def test_plain_http_to_this_machine_is_fine(settings: Any, host: str) -> None:
    """A sidecar or a tunnel."""
    settings.CATALOG_FALLBACK = raw_source(URL=f"http://{host}/items/{{id}}")
    assert found() == []


def test_a_simulated_source_is_named_on_deployment(settings: Any) -> None:
    """Nobody wants made-up items in production."""
    settings.CATALOG_FALLBACK = raw_catalog(SOURCES={"primary": {"BACKEND": PATH + "Pretend"}})
    assert deployed_only("W018").startswith(f'{SOURCE}["BACKEND"] is simulated')


# Times


@pytest.mark.parametrize("key", ["STALE_IF_ERROR", "REFRESH_AHEAD", "TTL_JITTER"])
def test_a_key_without_effect_is_named(settings: Any, key: str) -> None:
    """With TTL 0 nothing is kept that could be stale or refreshed."""
    settings.CATALOG_FALLBACK = raw_catalog(TTL=0, **{key: 0.5})
    assert only("W001", deploy=False).startswith(f'{CATALOG}["{key}"] is 0.5 and has no effect')


def test_h20_a_negative_ttl_above_ttl_is_a_warning(settings: Any) -> None:
    """A new item should not stay hidden for longer than a known one is kept."""
    settings.CATALOG_FALLBACK = raw_catalog(TTL=60, NEGATIVE_TTL=61)
    assert only("W002", deploy=False).startswith(f'{CATALOG}["NEGATIVE_TTL"] is 61, longer than TTL (60)')
    settings.CATALOG_FALLBACK = raw_catalog(TTL=60, NEGATIVE_TTL=60)
    assert found() == []


def test_fusioncache_115_a_stale_time_below_ttl_is_a_warning(settings: Any) -> None:
    """Whoever sets it so may think that it counts from the fetch."""
    settings.CATALOG_FALLBACK = raw_catalog(TTL=3600, STALE_IF_ERROR=10)
    assert only("W007", deploy=False).startswith(f'{CATALOG}["STALE_IF_ERROR"] is 10, shorter than TTL (3600)')
    settings.CATALOG_FALLBACK = raw_catalog(TTL=3600, STALE_IF_ERROR=3600)
    assert found() == []


@pytest.mark.parametrize(("budget", "outer"), [(30, 30), (5, 4), (60, 30)])
def test_a_budget_that_the_web_server_cuts_is_a_warning(settings: Any, budget: int, outer: int) -> None:
    """A worker that is killed first answers nothing at all."""
    settings.CATALOG_FALLBACK = raw_catalog(BUDGET=budget, OUTER_TIMEOUT=outer)
    assert f"is {budget} seconds, but the web server ends a request after {outer}" in only("W008", deploy=False)


def test_a_budget_below_the_sum_of_limits_is_named_on_deployment(settings: Any) -> None:
    """Slow sources would leave no time for the last ones."""
    sources = {name: {"URL": URL, "ATTEMPTS": 1 + (name == "c")} for name in "abc"}
    settings.CATALOG_FALLBACK = raw_catalog(SOURCES=sources)
    assert "is 5 seconds, less than the 8 that all calls may take together" in deployed_only("W017")
    settings.CATALOG_FALLBACK = raw_catalog(SOURCES=sources, BUDGET=8)
    assert found() == []


# Caches


@pytest.mark.parametrize(
    "params",
    [
        redis(LOCATION=["redis://a/1", "redis://b/1"]),
        redis(LOCATION="redis://a/1,redis://b/1"),
        redis(LOCATION="redis://a/1;redis://b/1"),
        {"BACKEND": DJANGO_REDIS, "LOCATION": ("redis://a/1", "redis://b/1"), "OPTIONS": BOUNDED_DJANGO_REDIS},
        {
            "BACKEND": DJANGO_REDIS,
            "LOCATION": "redis://main/1",
            "OPTIONS": {**BOUNDED_DJANGO_REDIS, "CLIENT_CLASS": "django_redis.client.SentinelClient"},
        },
    ],
    ids=["list", "comma", "semicolon", "django-redis", "sentinel"],
)
@pytest.mark.parametrize("key", ["CACHE", "STATE_CACHE"])
def test_reads_from_replicas_are_an_error(settings: Any, params: dict[str, Any], key: str) -> None:
    """A replica that lags brings back what was invalidated or stopped."""
    settings.CACHES = {"default": redis(LOCATION="redis://default"), "items": params}
    settings.CATALOG_FALLBACK = raw_catalog(**{key: "items"})
    assert only("E016", deploy=False).startswith('CACHES["items"]["LOCATION"] names several servers')


@pytest.mark.parametrize(
    "params",
    [
        {
            "BACKEND": DJANGO_REDIS,
            "LOCATION": ["redis://a/1", "redis://b/1"],
            "OPTIONS": {**BOUNDED_DJANGO_REDIS, "CLIENT_CLASS": "django_redis.client.ShardClient"},
        },
        {"BACKEND": DJANGO_REDIS, "LOCATION": ["redis://a", "redis://b"], "OPTIONS": CLUSTER},
        {"BACKEND": DJANGO_REDIS, "LOCATION": "redis://a,redis://b", "OPTIONS": CLUSTER},
    ],
    ids=["shards", "cluster", "cluster in one text"],
)
def test_shards_are_no_replicas(settings: Any, params: dict[str, Any]) -> None:
    """Each key has one home there."""
    settings.CACHES = {"default": params}
    assert found() == []


@pytest.mark.parametrize("option", ["read_from_replicas", "load_balancing_strategy"])
def test_a_cluster_whose_replicas_are_read_is_an_error(settings: Any, option: str) -> None:
    """What makes redis-py do so is named."""
    options = {**CLUSTER, "REDIS_CLIENT_KWARGS": {option: "round_robin"}}
    settings.CACHES = {"default": {"BACKEND": DJANGO_REDIS, "LOCATION": "redis://a", "OPTIONS": options}}
    text = only("E016", deploy=False)
    assert text.startswith('CACHES["default"]["OPTIONS"] let replicas of the cluster be read')
    assert option in text


@pytest.mark.parametrize("location", [["a:11211", "b:11211"], "a:11211;b:11211", "a:11211,b:11211"], ids=repr)
@pytest.mark.parametrize("backend", [MEMCACHED, PYLIBMC])
def test_several_memcached_servers_are_named_on_deployment(settings: Any, backend: str, location: Any) -> None:
    """One stands in for another, which later brings back what it held."""
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": location, "OPTIONS": BOUNDED_MEMCACHED}}
    assert "W021" in ids()
    assert "W021" not in ids(deploy=False)
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "a:11211", "OPTIONS": BOUNDED_MEMCACHED}}
    assert "W021" not in ids()


@pytest.mark.parametrize(
    ("backend", "first", "second"),
    [
        (DJANGO_REDIS, BOUNDED_DJANGO_REDIS, {**BOUNDED_DJANGO_REDIS, "SOCKET_TIMEOUT": 5}),
        (LOCMEM, {"MAX_ENTRIES": 100_000}, {"MAX_ENTRIES": 300}),
    ],
    ids=["django-redis", "locmem"],
)
def test_django_redis_685_a_shared_location_with_other_options(
    settings: Any, backend: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """The first alias's connection pool, or the smaller MAX_ENTRIES, would win silently."""
    settings.CACHES = {
        "default": {"BACKEND": backend, "LOCATION": f"redis://:{SECRET}@x/1", "OPTIONS": first},
        "sessions": {"BACKEND": backend, "LOCATION": f"redis://:{SECRET}@x/1", "OPTIONS": second},
        "gone": {"BACKEND": "no.such.Cache", "LOCATION": f"redis://:{SECRET}@x/1"},
        "other": {"BACKEND": backend, "LOCATION": "redis://y/1"},
    }
    text = only("W010", deploy=False)
    assert text.startswith('CACHES["default"]["LOCATION"] is also that of CACHES["sessions"]')
    assert SECRET not in text


def test_django_keeps_a_pool_for_each_alias(settings: Any) -> None:
    """Its own Redis cache may share a server and choose another database number by OPTIONS."""
    settings.CACHES = {"default": redis(), "sessions": redis(OPTIONS={**BOUNDED, "db": 5})}
    assert found() == []


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"BACKEND": LOCMEM, "OPTIONS": {"MAX_ENTRIES": 10_000}}, ["W011"]),
        ({"BACKEND": LOCMEM}, ["W011", "W013"]),
        ({"BACKEND": DUMMY}, ["W011"]),
        ({"BACKEND": FILE, "LOCATION": "/x", "OPTIONS": {"MAX_ENTRIES": 9_999}}, ["W012", "W013"]),
        ({"BACKEND": DATABASE, "LOCATION": "t", "OPTIONS": {"MAX_ENTRIES": 100_000}}, ["W012", "W020"]),
        (redis(OPTIONS={}), ["W015"]),
        (redis(OPTIONS={"socket_timeout": 1}), ["W015"]),
        (redis(LOCATION="redis://x/1?socket_timeout=1&socket_connect_timeout=1", OPTIONS={}), []),
        ({"BACKEND": DJANGO_REDIS, "LOCATION": "redis://x", "OPTIONS": BOUNDED_DJANGO_REDIS}, []),
        ({"BACKEND": DJANGO_REDIS, "LOCATION": "redis://x", "OPTIONS": {"CONNECTION_POOL_KWARGS": BOUNDED}}, []),
        ({"BACKEND": DJANGO_REDIS, "LOCATION": "redis://x", "OPTIONS": BOUNDED}, ["W015"]),
        ({"BACKEND": DJANGO_REDIS, "LOCATION": "redis://x", "OPTIONS": {"SOCKET_TIMEOUT": 0}}, ["W015"]),
        ({"BACKEND": DJANGO_REDIS, "LOCATION": "redis://x", "OPTIONS": CLUSTER}, []),
        ({"BACKEND": MEMCACHED, "LOCATION": "x:11211", "OPTIONS": BOUNDED_MEMCACHED}, []),
        ({"BACKEND": MEMCACHED, "LOCATION": "x:11211"}, ["W015"]),
        ({"BACKEND": MEMCACHED, "LOCATION": "x:11211", "OPTIONS": {"timeout": 1}}, ["W015"]),
        ({"BACKEND": MEMCACHED, "LOCATION": "x", "OPTIONS": {**BOUNDED_MEMCACHED, "default_noreply": True}}, ["W012"]),
        ({"BACKEND": PYLIBMC, "LOCATION": "x:11211"}, ["W022"]),
    ],
)  # fmt: skip
def test_what_a_cache_cannot_do_is_named_on_deployment(
    settings: Any, params: dict[str, Any], expected: list[str]
) -> None:
    """Per process, not atomic, culling, without socket time-outs, shared after a fork: each has its own warning."""
    settings.CACHES = {"default": params}
    assert ids(deploy=False) == []
    assert ids() == expected


def test_the_missing_socket_timeouts_are_named_as_the_backend_spells_them(settings: Any) -> None:
    """The remedy can be pasted."""
    settings.CACHES = {"default": redis(OPTIONS={"socket_timeout": 0.25})}
    assert 'CACHES["default"]["OPTIONS"] has no socket_connect_timeout' in only("W015")
    settings.CACHES = {"default": {"BACKEND": DJANGO_REDIS, "LOCATION": "redis://x"}}
    assert 'Add {"SOCKET_CONNECT_TIMEOUT": 0.25, "SOCKET_TIMEOUT": 0.25}.' in only("W015")
    settings.CACHES = {"default": {"BACKEND": MEMCACHED, "LOCATION": "x:11211"}}
    assert 'Add {"connect_timeout": 0.25, "timeout": 0.25}.' in only("W015")


def test_a_cache_is_named_once(settings: Any) -> None:
    """However many catalogs use it."""
    settings.CACHES = {"default": redis(OPTIONS={}), "unused": {"BACKEND": LOCMEM}}
    settings.CATALOG_FALLBACK = {**raw_catalog(), "other": raw_catalog()["default"]}
    assert ids() == ["W015"]


def test_django_30601_a_database_cache_under_atomic_requests(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rolled-back request wrote is gone, an invalidation too."""
    settings.CACHES = {
        "default": redis(),
        "rows": {"BACKEND": DATABASE, "LOCATION": "t", "OPTIONS": {"MAX_ENTRIES": 10**6}},
    }
    settings.CATALOG_FALLBACK = raw_catalog(CACHE="rows", STATE_CACHE="default")
    assert ids() == ["W012"]
    monkeypatch.setitem(settings.DATABASES["default"], "ATOMIC_REQUESTS", True)
    assert ids() == ["W012", "W014"]


def test_a_database_cache_for_state_is_named(settings: Any) -> None:
    """Guards write on each miss."""
    settings.CACHES = {
        "default": redis(),
        "rows": {"BACKEND": DATABASE, "LOCATION": "t", "OPTIONS": {"MAX_ENTRIES": 10**6}},
    }
    settings.CATALOG_FALLBACK = raw_catalog(STATE_CACHE="rows")
    assert ids() == ["W012", "W020"]
    assert f'{CATALOG}["STATE_CACHE"] is "rows", a DatabaseCache' in found()[1].msg


# Notices


@pytest.fixture
def notice_url(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URLconf with the route for deletion notices."""
    routes = types.ModuleType("catalog_urls")
    routes.app_name = "catalog_fallback"  # type: ignore[attr-defined]
    routes.urlpatterns = [path("<slug:catalog>/notices/", lambda request, catalog: HttpResponse(), name="notice")]  # type: ignore[attr-defined]
    root = types.ModuleType("root_urls")
    root.urlpatterns = [path("catalog/", include(routes))]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "root_urls", root)
    settings.ROOT_URLCONF = "root_urls"


@pytest.mark.usefixtures("notice_url")
def test_a_notice_url_without_secrets_is_named_on_deployment(settings: Any) -> None:
    """Every notice would be refused."""
    assert deployed_only("W019").startswith(f'{CATALOG}["NOTICE_SECRETS"] is empty')
    settings.CATALOG_FALLBACK = raw_catalog(NOTICE_SECRETS=["whsec_" + "A" * 32])
    assert found() == []


def test_without_urls_there_is_no_notice_url(settings: Any) -> None:
    """A worker without a URLconf is fine."""
    settings.ROOT_URLCONF = None
    assert found() == []
