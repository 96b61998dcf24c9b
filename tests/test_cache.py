"""What does an entry have to look like to count, whatever the cache hands out?"""

from __future__ import annotations

import json
import logging
import math
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import caches
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback import clock, entry_form
from catalog_fallback.cache import SHORT_LIFE, entries_of
from catalog_fallback.cache_backends import whole_seconds
from catalog_fallback.entry_form import Entry
from catalog_fallback.results import State
from catalog_fallback.testing import FrozenClock, fake_source
from tests import stores
from tests.shops import Shop

pytestmark = pytest.mark.django_db(transaction=True)
DJANGO_REDIS = "django_redis.cache.RedisCache"
SERIALIZERS = {
    "pickle": {},
    "json": {"OPTIONS": {"SERIALIZER": "django_redis.serializers.json.JSONSerializer"}},
    "msgpack": {"OPTIONS": {"SERIALIZER": "django_redis.serializers.msgpack.MSGPackSerializer"}},
}


@pytest.fixture(params=["double", *SERIALIZERS, "django"])
def shop(request: pytest.FixtureRequest, settings: Any) -> Shop:
    """A catalog over the double and over each serializer of a real Redis."""
    if request.param == "double":
        return Shop(settings)
    backend = "django.core.cache.backends.redis.RedisCache" if request.param == "django" else DJANGO_REDIS
    pytest.importorskip("redis" if request.param == "django" else "django_redis")
    place = {"LOCATION": request.getfixturevalue("redis_url"), "KEY_PREFIX": uuid.uuid4().hex[:8]}
    return Shop(settings, {"BACKEND": backend, **place, **SERIALIZERS.get(request.param, {})})


def stored(shop: Shop) -> list[Any]:
    """The entry's value as it is in the cache."""
    return list(caches["default"].get(shop.query().entry_key))


def put(shop: Shop, value: Any) -> None:
    """Put another value in its place."""
    caches["default"].set(shop.query().entry_key, value, 300)


NAME, TOKEN, STATE, FETCHED, EXPIRES, STALE, SOURCE, ITEM, CHECKED = range(9)
FUTURE = entry_form.MARGIN + 5

#: What is wrong with a value → how it is made from a right one.
WRONG: dict[str, Callable[[list[Any]], Any]] = {
    "a text": lambda right: "entry",
    "a number": lambda right: 5,
    "a mapping": lambda right: {"state": "found"},
    "empty": lambda right: [],
    "too short": lambda right: right[:-1],
    "too long": lambda right: [*right, None],
    "another version": lambda right: [right[NAME].replace(":1:1:", ":2:1:"), *right[1:]],
    "another item": lambda right: [right[NAME].replace("P001", "P002"), *right[1:]],
    "another variant": lambda right: [right[NAME] + "de", *right[1:]],
    "another gate": lambda right: [right[NAME], entry_form.new_token(), *right[2:]],
    "no gate": lambda right: [right[NAME], None, *right[2:]],
    "an unknown state": lambda right: [*right[:STATE], "unavailable", *right[STATE + 1 :]],
    "a state that is no text": lambda right: [*right[:STATE], ["found"], *right[STATE + 1 :]],
    "found without an item": lambda right: [*right[:ITEM], None, True],
    "not found with an item": lambda right: [*right[:STATE], "not_found", *right[STATE + 1 :]],
    "an item that is no mapping": lambda right: [*right[:ITEM], ["Tea"], True],
    "from the future": lambda right: [
        *right[:FETCHED],
        *(moment + FUTURE for moment in right[FETCHED:SOURCE]),
        *right[SOURCE:],
    ],
    "moments that are texts": lambda right: [*right[:FETCHED], "1", "2", "3", *right[SOURCE:]],
    "moments that are truths": lambda right: [*right[:FETCHED], True, True, True, *right[SOURCE:]],
    "a source that is no text": lambda right: [*right[:SOURCE], 5, *right[ITEM:]],
    "checked, perhaps": lambda right: [*right[:CHECKED], "yes"],
}


@pytest.mark.parametrize("shop", ["double", "json"], indirect=True)
@pytest.mark.parametrize("wrong", WRONG)
def test_h37_a_wrong_value_is_a_miss_and_is_overwritten(shop: Shop, wrong: str) -> None:
    """A reader believes only an entry that names what it asked for and carries the gate's token."""
    shop.find()
    put(shop, WRONG[wrong](stored(shop)))
    found = shop.find()
    assert (found.state, found.cache, shop.asked) == ("found", "miss", ["P001", "P001"])
    assert shop.find().cache == "hit"


def test_an_entry_survives_every_serializer(shop: Shop) -> None:
    """Plain JSON types: what comes back is what was found, with its provenance."""
    first, second = shop.find(), shop.find()
    assert (first.cache, second.cache, shop.asked) == ("miss", "hit", ["P001"])
    assert (second.item, second.source) == (first.item, first.source)
    assert (second.fetched_at, second.expires_at) == (first.fetched_at, first.expires_at)
    json.dumps(stored(shop))


@pytest.mark.parametrize("key", ["gate", "entry", "both"])
@pytest.mark.parametrize("kind", ["garbage", "empty", "foreign class"])
def test_h37_a_poisoned_value_on_redis(shop: Shop, key: str, kind: str) -> None:
    """Whatever the serializer raises over it, the lookup works and overwrites it, and the cache is not left alone."""
    shop.find()
    query, backend = shop.query(), caches["default"]
    poison = {"garbage": b"\x80\x05no value", "empty": b"", "foreign class": b"cno.such.module\nThing\n."}[kind]
    for name in {"gate": [query.gate_key], "entry": [query.entry_key]}.get(key, [query.gate_key, query.entry_key]):
        full = backend.make_key(name)
        if isinstance(backend, stores.MemoryCache):
            shop.shelf.values[full] = (clock.wall() + 300, poison)
        else:
            is_django_redis = hasattr(backend, "client")
            client = backend.client.get_client() if is_django_redis else backend._cache.get_client(None, write=True)
            client.set(full, poison, ex=300)
    for _ in range(4):
        assert shop.find().is_found
    assert shop.find().cache == "hit"
    assert not entries_of["default"].store.is_paused


@pytest.mark.parametrize("shop", ["double"], indirect=True)
@pytest.mark.parametrize("gate", ["", "o", "x" * 400, 5, None, ["o" * 33], b"o" * 33])
def test_a_value_that_is_no_token_is_no_gate(shop: Shop, gate: Any) -> None:
    """It is replaced, not joined."""
    shop.find()
    caches["default"].set(shop.query().gate_key, gate, 300)
    assert shop.find().cache == "miss"
    assert shop.find().cache == "hit"


@pytest.mark.parametrize("shop", ["double"], indirect=True)
@pytest.mark.parametrize("lost", ["gate_key", "entry_key"])
def test_half_a_pair_is_a_miss(shop: Shop, lost: str) -> None:
    """I8: a gate without an entry, or an entry without a gate, costs one fetch."""
    shop.find()
    caches["default"].delete(getattr(shop.query(), lost))
    assert shop.find().cache == "miss"
    assert (shop.find().cache, len(shop.asked)) == ("hit", 2)


# ------------------------------------------------------------------------------------------------ lives


@pytest.mark.parametrize("shop", ["double"], indirect=True)
def test_e4_a_wrong_life_in_the_cache_extends_nothing(shop: Shop, frozen_clock: FrozenClock) -> None:
    """The record says itself until when it counts: a time to live that a client multiplied by 1000 changes nothing."""
    shop.find()
    for key, (_, value) in list(shop.shelf.values.items()):
        shop.shelf.values[key] = (clock.wall() + 60_000, value)
    frozen_clock.advance(59.9)
    assert shop.find().cache == "hit"
    frozen_clock.advance(0.1)
    assert shop.find().cache == "miss"


@pytest.mark.parametrize("timeout", [1, None])
def test_h39_the_alias_timeout_decides_nothing(settings: Any, frozen_clock: FrozenClock, timeout: int | None) -> None:
    """Every key is written with a life of its own."""
    location = uuid.uuid4().hex
    cache = {"BACKEND": "tests.stores.MemoryCache", "LOCATION": location, "TIMEOUT": timeout}
    shop = Shop(settings, cache, NEGATIVE_TTL=30)
    shop.find(), shop.find("NONE")
    frozen_clock.advance(29)
    assert (shop.find().cache, shop.find("NONE").cache) == ("hit", "hit")
    lives = [life for _, life in stores.shelf(location).lives]
    assert all(life is not None and 1 < life <= 3600 for life in lives)


@pytest.mark.parametrize(
    ("ttl", "negative", "stale"), [(60, 0, 0), (0.4, 0.4, 0), (5, 900, 0), (86_400, 30, 7200), (1, 1, 100_000)]
)
def test_i5_every_key_has_a_bounded_life(
    settings: Any, frozen_clock: FrozenClock, ttl: float, negative: float, stale: float
) -> None:
    """An unknown ID leaves nothing that lives longer than max(5 minutes, NEGATIVE_TTL) and the margin."""
    shop = Shop(settings, TTL=ttl, NEGATIVE_TTL=negative, STALE_IF_ERROR=stale)
    shop.find("NONE")
    short = max(SHORT_LIFE, negative) + entry_form.MARGIN
    of_item = {life for key, life in shop.shelf.lives if "NONE" in key}
    assert {life for life in of_item if life is None or not 1 <= life <= short} == set()
    shop.shelf.lives.clear()
    shop.find(), shop.find()
    gate, entry = (f":1:{key}" for key in (shop.query().gate_key, shop.query().entry_key))
    assert shop.shelf.life_of(entry) == pytest.approx(math.ceil(ttl + stale), abs=1)
    assert (shop.shelf.life_of(gate) or 0) >= min(short, ttl + stale + negative + entry_form.MARGIN)
    assert (shop.shelf.life_of(gate) or 0) > (shop.shelf.life_of(entry) or 0)


@pytest.mark.parametrize("shop", ["double"], indirect=True)
def test_a_stopped_entry_lives_shortly_and_is_never_stale(shop: Shop, frozen_clock: FrozenClock) -> None:
    """Five minutes, without a stale end."""
    entries, query = entries_of["default"], shop.query()
    gate = entries.open_gate(query)
    assert gate is not None
    entries.keep_stopped(query, gate)
    kept = shop.entry()
    assert kept == Entry(State.STOPPED, clock.wall(), clock.wall() + 300, clock.wall() + 300)


@given(st.floats(-1e6, 1e9))
def test_c21_no_life_is_ever_nothing(seconds: float) -> None:
    """Whole seconds, rounded up, at least 1: some backends cut fractions, and 0 means expired."""
    whole = whole_seconds(seconds)
    assert whole >= 1
    assert isinstance(whole, int)
    assert whole - 1 < max(1, seconds) <= whole


@pytest.mark.parametrize("shop", ["double"], indirect=True)
def test_what_is_over_already_is_not_written(shop: Shop, frozen_clock: FrozenClock) -> None:
    """An entry whose life has ended while it was fetched removes the older one."""
    shop.find()
    entries, now = entries_of["default"], clock.wall()
    entries.keep(
        shop.query(), shop.gate(), Entry(State.FOUND, now - 9, now, now, "only", {"id": "P001", "name": "Tea"})
    )
    assert shop.entry() is None


def test_h47_what_a_serializer_refuses_is_not_kept(shop: Shop, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A careless adapter's item is a fault of the adapter's, and does not cost the cache for everybody else."""
    settings.CATALOG_FALLBACK = {
        "default": {"STOP_CHECK": "cache", "SOURCES": {"only": {"BACKEND": "tests.scripted.Unkeepable"}}},
        "good": {"STOP_CHECK": "cache", "SOURCES": {"only": fake_source({"P001": "Tea"})}},
    }
    with caplog.at_level(logging.WARNING, "catalog_fallback"):
        for _ in range(5):
            assert shop.find().reason == "source_error"
    shop.find(catalog="good")
    assert shop.find(catalog="good").cache == "hit"


def test_hits_and_misses_are_counted(shop: Shop) -> None:
    """Each lookup once, from nothing on."""
    entries = entries_of["default"]
    assert (entries.hits, entries.misses) == (0, 0)
    for item_id in ("P001", "P001", "P002"):
        shop.find(item_id)
    assert (entries.hits, entries.misses) == (1, 2)
