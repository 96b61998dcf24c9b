"""What do we rely on in a Django cache, and does every backend, our test double too, keep it?"""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import caches

from catalog_fallback.cache_backends import whole_seconds
from tests import backends, stores
from tests.backends import BACKENDS, make_tables, params_of

#: Tables of caches are in real databases, too, whose aliases come with their fixtures.
pytestmark = [
    pytest.mark.django_db(transaction=True, databases="__all__"),
    # Django's cache forgets those of a thread that has ended.
    pytest.mark.usefixtures("forgotten_sockets"),
]

#: Where one winner is promised.
ATOMIC = [name for name, backend in BACKENDS.items() if backend.is_atomic]
ON_REDIS = [name for name, backend in BACKENDS.items() if backend.path in {backends.REDIS, backends.DJANGO_REDIS}]


@pytest.fixture
def make(settings: Any, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Return a function that opens one of the backends."""

    def opened(name: str) -> Any:
        settings.CACHES = {"default": {"BACKEND": backends.LOCMEM}, "mine": params_of(name, request, tmp_path)}
        make_tables(name, request)
        return caches["mine"]

    yield opened
    caches.close_all()


@pytest.fixture(params=BACKENDS)
def cache(request: pytest.FixtureRequest, make: Callable[[str], Any]) -> Any:
    """Each backend, empty."""
    return make(request.param)


def test_what_was_set_can_be_read(cache: Any) -> None:
    """Plain JSON types come back as they are, a tuple at most as a list."""
    value = ["e", "token", 1.5, None, True, {"id": "P001", "name": "Tee ☕", "tags": ["a", 2]}]
    cache.set("key", value, 30)
    assert cache.get("key") == value
    assert type(cache.get("key")[2]) is float


def test_a_missing_key_is_none(cache: Any) -> None:
    """Neither get nor get_many raises, and get_many leaves it out."""
    cache.set("here", 1, 30)
    assert cache.get("gone") is None
    assert dict(cache.get_many(("here", "gone"))) == {"here": 1}


def test_add_writes_only_what_is_new(cache: Any) -> None:
    """True for the first, False for the second, and the value is the first one's."""
    assert cache.add("key", "first", 30) is True
    assert cache.add("key", "second", 30) is False
    assert cache.get("key") == "first"


def test_set_many_and_get_many_take_a_batch(cache: Any) -> None:
    """All of it is there, whatever set_many returns."""
    batch = {f"key{number}": f"value{number}" for number in range(20)}
    assert cache.set_many(batch, 30) in ([], None)
    assert dict(cache.get_many(tuple(batch))) == batch


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_life_of_nothing_is_over_at_once(cache: Any, timeout: int) -> None:
    """0 means expired, not for ever: which is why whole_seconds() never returns it."""
    cache.set("key", "value", timeout)
    assert cache.get("key") is None
    assert whole_seconds(timeout) == 1


def test_touch_knows_whether_the_key_is_there(cache: Any) -> None:
    """A missing key stays missing."""
    cache.set("key", "value", 30)
    assert cache.touch("key", 60)
    assert not cache.touch("gone", 60)
    assert (cache.get("key"), cache.get("gone")) == ("value", None)


def test_deleting_twice_is_no_error(cache: Any) -> None:
    """The key is gone after the first."""
    cache.set("key", "value", 30)
    cache.delete("key")
    cache.delete("key")
    assert cache.get("key") is None


def test_incr_counts_and_refuses_a_missing_key(cache: Any) -> None:
    """ValueError everywhere, so add(key, 0) comes before."""
    assert cache.add("count", 0, 30)
    assert [cache.incr("count"), cache.incr("count", 2)] == [1, 3]
    with pytest.raises(ValueError, match="not found"):
        cache.incr("gone")


def test_no_reader_shares_an_object_with_the_cache(cache: Any) -> None:
    """Changing what was read changes nothing for the next reader."""
    cache.set("key", {"name": "Tea"}, 30)
    cache.get("key")["name"] = "Coffee"
    assert cache.get("key") == {"name": "Tea"}


@pytest.mark.parametrize("name", ATOMIC)
def test_add_has_one_winner(make: Callable[[str], Any], name: str) -> None:
    """Eight threads at one key, twenty times."""
    make(name)
    barrier = threading.Barrier(8)
    wins: list[int] = []

    def race() -> None:
        for number in range(20):
            barrier.wait(10)
            if caches["mine"].add(f"key{number}", "mine", 30):
                wins.append(number)
        caches.close_all()

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(wins) == list(range(20))


@pytest.mark.parametrize("name", ON_REDIS)
def test_every_write_sets_an_expiry_on_redis(make: Callable[[str], Any], name: str) -> None:
    """set, add, set_many and touch leave the life that was asked for; none leaves a key without one."""
    cache = make(name)
    client = cache._cache.get_client(write=True) if name == "Redis, Django's own" else cache.client.get_client()
    cache.set("set", 1, 100)
    cache.add("add", 1, 200)
    cache.set_many({"many": 1, "more": 2}, 300)
    cache.set("touched", 1, 100)
    cache.touch("touched", 400)
    lives = {key: client.pttl(cache.make_key(key)) / 1000 for key in ("set", "add", "many", "more", "touched")}
    assert lives == pytest.approx({"set": 100, "add": 200, "many": 300, "more": 300, "touched": 400}, abs=5)


def test_the_double_goes_by_the_movable_clock(make: Callable[[str], Any], frozen_clock: Any) -> None:
    """A key lives as long as it was given, to the second; touch starts its life anew; add works after the end."""
    cache = make("double")
    cache.set("key", 1, 10)
    cache.set("touched", 1, 10)
    frozen_clock.advance(9.5)
    cache.touch("touched", 10)
    assert cache.get("key") == 1
    frozen_clock.advance(0.5)
    assert cache.get("key") is None
    assert cache.get("touched") == 1
    assert cache.add("key", 2, 10) is True


@pytest.mark.parametrize("timeout", [None, 300])
def test_the_double_knows_the_alias_timeout(settings: Any, timeout: int | None) -> None:
    """Without a timeout the alias decides, None being for ever."""
    location = uuid.uuid4().hex
    settings.CACHES = {"default": {"BACKEND": backends.DOUBLE, "LOCATION": location, "TIMEOUT": timeout}}
    caches["default"].set("key", 1)
    assert stores.shelf(location).lives == [(":1:key", timeout)]


def test_the_broken_doubles_break_as_they_say(settings: Any) -> None:
    """Raises; says None; loses writes; writes and loses the reply; delivers late; holds what cannot be decoded."""
    location = uuid.uuid4().hex
    settings.CACHES = {"default": {"BACKEND": backends.DOUBLE, "LOCATION": location}}
    cache, shelf = caches["default"], stores.shelf(location)
    shelf.fault = stores.raising(ConnectionError("down"))
    with pytest.raises(ConnectionError):
        cache.get("key")
    shelf.fault = stores.SilentCache.fault
    assert (cache.add("key", 1, 9), cache.get_many(["key"]), cache.get("key")) == (None, {}, None)
    shelf.fault = stores.LossyCache.fault
    assert (cache.add("key", 1, 9), cache.get("key")) == (True, None)
    shelf.fault = stores.MuteCache.fault
    with pytest.raises(ConnectionError, match="reply lost"):
        cache.set("key", 2, 9)
    assert cache.get("key") == 2
    shelf.fault = late = stores.Late()
    cache.set("key", 3, 9)
    assert cache.get("key") == 2
    late.deliver()
    assert cache.get("key") == 3
    shelf.fault = None
    stores.poison(location, ":1:key")
    with pytest.raises(pickle.UnpicklingError):
        cache.get("key")
