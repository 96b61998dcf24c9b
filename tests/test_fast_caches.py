"""Do the faster ways to a cache do what the backend's own methods do, in good times and in bad?"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import BaseCache, caches
from django.core.cache.backends.locmem import LocMemCache

from catalog_fallback.cache_trouble import ERRORS_BEFORE_PAUSE
from catalog_fallback.fast_cache import FastCache, Undecodable
from catalog_fallback.fast_caches import fast_cache
from catalog_fallback.item_store import ItemStore
from tests import servers

redis = pytest.importorskip("redis")
pytest.importorskip("django_redis")

LOCMEM = "django.core.cache.backends.locmem.LocMemCache"
DJANGO = "django.core.cache.backends.redis.RedisCache"
DJANGO_REDIS = "django_redis.cache.RedisCache"
SERIALIZERS = "django_redis.serializers"
#: Name → backend and options.
BACKENDS: dict[str, tuple[str, dict[str, Any]]] = {
    "locmem": (LOCMEM, {}),
    "django": (DJANGO, {}),
    "django-redis pickle": (DJANGO_REDIS, {}),
    "django-redis json": (DJANGO_REDIS, {"SERIALIZER": f"{SERIALIZERS}.json.JSONSerializer"}),
    "django-redis msgpack": (DJANGO_REDIS, {"SERIALIZER": f"{SERIALIZERS}.msgpack.MSGPackSerializer"}),
    "django-redis zlib": (DJANGO_REDIS, {"COMPRESSOR": "django_redis.compressors.zlib.ZlibCompressor"}),
    "django-redis silent": (DJANGO_REDIS, {"IGNORE_EXCEPTIONS": True}),
    "cluster": (DJANGO_REDIS, {"CLIENT_CLASS": "catalog_fallback.contrib.redis_cluster.ClusterClient"}),
}
OVER_REDIS = sorted(BACKENDS.keys() - {"locmem"})
VALUES = [
    "o" + "a" * 32,
    ["name", "token", 1.5, None, {"id": "P001"}, True],
    {"ü": "ß"},
    0,
    7,
    -7,
    10**12,
    1.5,
    True,
    "",
]

Make = Callable[..., BaseCache]


@pytest.fixture
def make(settings: Any, request: pytest.FixtureRequest) -> Make:
    """A function that opens one of the backends, empty, as the alias ``default``."""

    def open_cache(name: str, location: Any = None) -> BaseCache:
        backend, options = BACKENDS[name]
        prefix = uuid.uuid4().hex[:8]
        if name == "cluster":  # in one slot, as all keys of one item are
            location, prefix = request.getfixturevalue("redis_cluster").urls, f"{{{prefix}}}"
        elif location is None:
            location = uuid.uuid4().hex if name == "locmem" else request.getfixturevalue("redis_url")
        place = {"LOCATION": location, "KEY_PREFIX": prefix, "VERSION": 3}
        settings.CACHES = {"default": {"BACKEND": backend, "OPTIONS": options, **place}}
        return caches["default"]

    return open_cache


def fast(cache: BaseCache) -> FastCache:
    """The faster way to a cache that has one."""
    found = fast_cache(cache)
    assert found is not None, f"no faster way to {type(cache)}"
    return found


def raw(cache: Any) -> Any:
    """A Redis client beneath a cache."""
    return cache.client.get_client() if hasattr(cache, "client") else cache._cache.get_client(write=True)


def life_of(cache: Any, key: str) -> float:
    """Seconds that a key has still to live, -1 without an expiry."""
    return float(raw(cache).ttl(cache.client.make_key(key) if hasattr(cache, "client") else cache.make_key(key)))


@pytest.mark.parametrize("name", BACKENDS)
def test_reads_what_the_backend_wrote(make: Make, name: str) -> None:
    """Every kind of value comes back as ``get_many`` brings it, missing ones as None, in the order asked."""
    cache = make(name)
    values = {f"k{{é{at}}}": value for at, value in enumerate(VALUES)}
    cache.set_many(values, 300)
    keys = ("missing", *values)
    assert fast(cache).read(keys) == [cache.get_many(keys).get(key) for key in keys] == [None, *VALUES]


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_backend_reads_what_was_written(make: Make, name: str, value: Any) -> None:
    """``set`` and ``add`` keep what the backend itself would keep."""
    cache = make(name)
    fast(cache).set("set", value, 300)
    assert fast(cache).add("added", value, 300) is True
    assert fast(cache).add("added", "another", 300) is False
    assert [cache.get("set"), cache.get("added")] == [value, value]


@pytest.mark.parametrize("name", BACKENDS)
def test_touch_and_delete_say_whether_the_key_was_there(make: Make, name: str) -> None:
    """A missing key is neither touched nor deleted, and that is what the answer says."""
    cache = make(name)
    cache.set("there", 1, 300)
    assert [fast(cache).touch("there", 300), fast(cache).touch("missing", 300)] == [True, False]
    assert [fast(cache).delete("there"), fast(cache).delete("missing")] == [True, False]
    assert cache.get("there") is None


@pytest.mark.parametrize("name", OVER_REDIS)
def test_every_key_gets_the_life_it_was_given(make: Make, name: str) -> None:
    """No write leaves a key without an expiry."""
    cache = make(name)
    fast(cache).set("set", 1, 100)
    fast(cache).add("added", 1, 200)
    fast(cache).touch("set", 300)
    assert 290 < life_of(cache, "set") <= 300
    assert 190 < life_of(cache, "added") <= 200


@pytest.mark.parametrize("name", OVER_REDIS)
def test_one_read_is_one_command(make: Make, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many keys are read."""
    cache, sent = make(name), []
    client = type(raw(cache))
    send = client.execute_command
    fast(cache).read(("warm",))
    monkeypatch.setattr(client, "execute_command", lambda self, *a, **k: sent.append(a[0]) or send(self, *a, **k))
    fast(cache).read(("a", "b", "c"))
    assert sent == ["MGET"]


@pytest.mark.parametrize("name", BACKENDS)
def test_add_and_read_is_add_and_then_read(make: Make, name: str) -> None:
    """The read sees what was just added, and what somebody else had there."""
    cache = make(name)
    cache.set("there", "theirs", 300)
    assert fast(cache).add_and_read("new", "mine", 300, ("new", "there", "missing")) == (True, ["mine", "theirs", None])
    assert fast(cache).add_and_read("there", "mine", 300, ("there",)) == (False, ["theirs"])


@pytest.mark.parametrize("name", OVER_REDIS)
def test_set_and_touch_is_set_and_then_touch(make: Make, name: str) -> None:
    """Each key gets its own life; a missing one is not made."""
    cache = make(name)
    cache.set("gate", 1, 100)
    fast(cache).set_and_touch("entry", ["value"], 200, "gate", 300)
    fast(cache).set_and_touch("entry", ["value"], 200, "missing", 300)
    assert cache.get_many(["entry", "gate", "missing"]) == {"entry": ["value"], "gate": 1}
    assert 190 < life_of(cache, "entry") <= 200
    assert 290 < life_of(cache, "gate") <= 300


@pytest.mark.parametrize("name", OVER_REDIS)
def test_what_belongs_together_is_one_round_trip(make: Make, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands stay what they are, but nobody waits in between."""
    cache, sent = make(name), []
    send = redis.connection.AbstractConnection.send_packed_command
    fast(cache).read(("warm",))
    monkeypatch.setattr(
        redis.connection.AbstractConnection,
        "send_packed_command",
        lambda self, *arguments, **options: sent.append(1) or send(self, *arguments, **options),
    )
    fast(cache).add_and_read("lease", "owner", 300, ("gate", "entry"))
    fast(cache).set_and_touch("entry", 1, 300, "gate", 300)
    assert len(sent) == 2


# ------------------------------------------------------------------------------------------------ who gets none


class Subclass(LocMemCache):
    """A site's own backend."""


def test_a_subclass_is_used_through_its_own_methods() -> None:
    """What it overrides must not be passed by."""
    assert fast_cache(Subclass("mine", {})) is None


@pytest.mark.parametrize("name", ["django", "django-redis pickle"])
def test_several_servers_are_used_through_the_backend(make: Make, redis_url: str, name: str) -> None:
    """Which of them to ask is the backend's decision."""
    assert fast_cache(make(name, [redis_url, redis_url])) is None


def test_another_client_class_is_used_through_the_backend(settings: Any, redis_url: str) -> None:
    """django-redis has clients that shard, or hide expired values."""
    options = {"CLIENT_CLASS": "django_redis.client.HerdClient"}
    settings.CACHES = {"default": {"BACKEND": DJANGO_REDIS, "LOCATION": redis_url, "OPTIONS": options}}
    assert fast_cache(caches["default"]) is None


@pytest.mark.parametrize("name", BACKENDS)
def test_a_replaced_method_is_not_passed_by(make: Make, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test or a tracer may have put something else in its place."""
    cache = make(name)
    monkeypatch.setattr(cache, "get_many", dict)
    assert fast_cache(cache) is None


def test_a_backend_that_cannot_be_set_up_is_left_to_say_so(make: Make) -> None:
    """Nothing is raised before the cache is used."""
    assert fast_cache(make("django-redis pickle", "no://address")) is None


# ------------------------------------------------------------------------------------------------ LocMem


def test_an_expired_value_is_missing(make: Make) -> None:
    """A value whose time is over does not come back, although it still lies there."""
    cache = make("locmem")
    cache.set("k", 1, 300)
    cache._expire_info[cache.make_key("k")] = 1.0  # type: ignore[attr-defined]
    assert fast(cache).read(("k",)) == [None]


def test_what_is_read_is_the_last_to_be_culled(make: Make) -> None:
    """LocMem drops what was used longest ago; reading is using."""
    cache = make("locmem")
    for key in ("old", "middle", "new"):
        cache.set(key, key, 300)
    fast(cache).read(("old",))
    assert next(iter(cache._cache)) == cache.make_key("old")  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------ trouble


@pytest.mark.parametrize("name", BACKENDS)
def test_poison_hides_nothing_and_is_no_trouble(make: Make, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that cannot be decoded is missing, its neighbour is there, and the cache is not left alone for it."""
    cache = make(name)
    if name == "locmem":
        cache._cache[cache.make_key("bad")] = b"\x80\x05junk"  # type: ignore[attr-defined]
        cache._expire_info[cache.make_key("bad")] = None  # type: ignore[attr-defined]
    else:
        made = cache.client.make_key("bad") if hasattr(cache, "client") else cache.make_key("bad")
        raw(cache).set(made, b"\xc1\x80\x05junk", ex=300)
    cache.set("good", "value", 300)
    with pytest.raises(Undecodable):
        fast(cache).read(("good", "bad"))
    store = ItemStore("default")
    for _ in range(3 * ERRORS_BEFORE_PAUSE):
        assert store.get_pair("good", "bad") == ("value", None)
        assert store.get_many(("bad", "good")) == {"good": "value"}
    assert store.add_and_get_pair("lease", 1, 300, "good", "bad") == (True, ("value", None))
    assert not store.is_paused


@pytest.mark.parametrize("name", OVER_REDIS)
def test_trouble_is_counted_once_and_not_tried_twice(make: Make, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection costs one read one attempt, and only the third read in a row starts the pause."""
    client = type(raw(make(name)))
    store, sent = ItemStore("default"), []
    store.get_pair("a", "b")

    def refuse(self: Any, *args: Any, **options: Any) -> Any:
        sent.append(args[0])
        raise redis.ConnectionError("refused")

    monkeypatch.setattr(client, "execute_command", refuse)
    for attempt in range(1, ERRORS_BEFORE_PAUSE + 1):
        assert not store.is_paused
        assert store.get_pair("a", "b") == (None, None)
        assert len(sent) == attempt
    assert store.is_paused
    assert store.get_pair("a", "b") == (None, None)
    assert len(sent) == ERRORS_BEFORE_PAUSE


@pytest.mark.parametrize("name", OVER_REDIS)
def test_one_time_out_is_enough(make: Make, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a time-out nobody waits for a second one."""
    client = type(raw(make(name)))
    store, sent = ItemStore("default"), []
    store.get_pair("a", "b")

    def time_out(self: Any, *args: Any, **options: Any) -> Any:
        sent.append(args[0])
        raise redis.TimeoutError("Timeout reading from socket")

    monkeypatch.setattr(client, "execute_command", time_out)
    for _ in range(3):
        assert store.get_pair("a", "b") == (None, None)
        assert store.add("a", 1, 60) is None
    assert sent == ["MGET"]
    assert store.is_paused


@pytest.mark.parametrize("name", ["django", "django-redis pickle", "django-redis silent"])
def test_a_killed_server_raises_nothing_and_is_used_again(
    make: Make, valkey: servers.Valkey, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Reads are misses and writes no-ops while it is away; afterwards the same store works."""
    make(name, valkey.url)
    store = ItemStore("default")
    store.set("a", 1, 300)
    assert store.get_pair("a", "b") == (1, None)
    valkey.kill()
    with caplog.at_level(logging.CRITICAL, "catalog_fallback"):
        assert store.get_pair("a", "b") == (None, None)
        assert store.get_many(("a",)) == {}
        assert store.add("a", 1, 300) is None
        assert store.add_and_get_pair("a", 1, 300, "a", "b") == (None, (None, None))
        store.set_and_touch("a", 1, 300, "b", 300)
    valkey.start()
    monkeypatch.setattr(store._trouble, "paused_until", 1e-9)
    store.set("a", 2, 300)
    assert store.get_pair("a", "b") == (2, None)
    assert not store.is_paused


# ------------------------------------------------------------------------------------------------ threads, processes


@pytest.mark.parametrize("name", ["locmem", "django", "django-redis pickle"])
def test_threads_share_one_store_and_get_their_own_values(make: Make, name: str) -> None:
    """Nobody gets an answer to another's question."""
    cache, wrong = make(name), []
    store = ItemStore("default")
    cache.set_many({f"k{at}": at for at in range(8)}, 300)
    start = threading.Barrier(8)

    def read(at: int) -> None:
        start.wait()
        pairs = [store.get_pair(f"k{at}", f"k{7 - at}") for _ in range(100)]
        wrong.extend(pair for pair in pairs if pair != (at, 7 - at))

    threads = [threading.Thread(target=read, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", ["django", "django-redis pickle", "cluster"])
def test_forked_children_get_their_own_values(make: Make, name: str) -> None:
    """A connection that was open before the fork answers only one of the processes."""
    cache = make(name)
    store = ItemStore("default")
    cache.set_many({f"k{at}": at for at in range(4)}, 300)
    assert store.get_pair("k0", "k1") == (0, 1)
    children = [
        _fork(lambda at=at: all(store.get_pair(f"k{at}", "k0") == (at, 0) for _ in range(100))) for at in (1, 2, 3)
    ]
    mine = [store.get_pair("k0", "k1") for _ in range(100)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert set(mine) == {(0, 1)}


def _fork(is_right: Callable[[], bool]) -> int:
    """Start a child that ends with 0 if it is right; nothing of pytest runs in it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if is_right() else 2
        finally:
            os._exit(code)
    return child
