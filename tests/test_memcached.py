"""What is different on Memcached: limits for keys and values, a server that is gone, several servers?"""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import caches

from catalog_fallback import services
from catalog_fallback.cache import entries_of, store_of
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.models import StoppedItem
from tests import backends
from tests.memcached import Memcached, running_memcached
from tests.servers import freeze
from tests.sites import FOUND, TEMPORARY, MovableClock, Site, found, words

pytestmark = [
    # pymemcache forgets the socket of a server that it takes for dead.
    pytest.mark.usefixtures("forgotten_sockets"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

#: Seconds after which a server that hangs is given up.
BOUNDED = {"timeout": 0.25, "connect_timeout": 0.25}


@pytest.fixture
def on_memcached(site: Site, memcached: Memcached) -> Site:
    """A site with an empty corner of a real server."""
    site.cache_in(backends.PYMEMCACHE, LOCATION=memcached.location, KEY_PREFIX=uuid.uuid4().hex[:8], OPTIONS=BOUNDED)
    return site


@pytest.fixture(params=[False, True], ids=["raises", "ignore_exc"])
def breakable(site: Site, request: pytest.FixtureRequest) -> Iterator[Memcached]:
    """A server of the test's own, with a client that raises errors, and with one that hides them."""
    with running_memcached() as server:
        options = {**BOUNDED, "ignore_exc": request.param}
        site.cache_in(backends.PYMEMCACHE, LOCATION=server.location, OPTIONS=options)
        yield server


def test_h38_a_value_that_is_too_large_is_not_kept(on_memcached: Site) -> None:
    """Each lookup brings it, however often; the cache is in no trouble, and what was there before is gone."""
    on_memcached.configure({"MAX_BYTES": 3_000_000})
    on_memcached.say(found(text="small"))
    assert [str(on_memcached.find().cache) for _ in range(2)] == ["miss", "hit"]
    on_memcached.say(found(text="x" * 1_200_000))
    assert on_memcached.find(refresh=True).is_found
    for _ in range(5):
        lookup = on_memcached.find()
        assert lookup.item is not None
        assert (str(lookup.cache), len(lookup.item["text"])) == ("miss", 1_200_000)
    assert not store_of["default"].is_paused


def test_large_values_in_a_row_are_no_trouble(on_memcached: Site) -> None:
    """Three errors in a row mean a cache in trouble; these are about the values."""
    store = store_of["default"]
    for _ in range(5):
        store.set("key", "x" * 1_200_000, 60)
    assert not store.is_in_trouble


def test_a_value_below_the_limit_is_kept(on_memcached: Site) -> None:
    """Most of a megabyte is no problem."""
    on_memcached.say(found(text="x" * 900_000))
    assert [str(on_memcached.find().cache) for _ in range(2)] == ["miss", "hit"]


@pytest.mark.parametrize("item_id", ["I" * 255, "a b/é\u0000☕ü" * 20], ids=["long", "odd"])
def test_every_key_is_taken_by_the_server(site: Site, memcached: Memcached, item_id: str) -> None:
    """The longest settings that the checks allow, and IDs that are no keys: all of it is stored and found again."""
    site.cache_in(backends.PYMEMCACHE, LOCATION=memcached.location, KEY_PREFIX="s" * 10 + uuid.uuid4().hex[:8])
    site.simulate(404, KEY_PREFIX="p" * 30, ID_PATTERN=r"(?s:.+)")
    before = set(memcached.expiries())
    services.invalidate_item(item_id)
    services.find_item(item_id)
    services.stop_item(item_id)
    assert services.find_item(item_id).is_stopped
    keys = set(memcached.expiries()) - before
    assert {kind for key in keys for kind in (":g:", ":e:", ":r:") if kind in key or kind.replace(":", "%3A") in key}
    assert not store_of["default"].is_in_trouble


def test_i5_every_key_has_a_life(on_memcached: Site, memcached: Memcached) -> None:
    """The server's own list of its keys: nothing is kept for ever."""
    on_memcached.configure({"RATE_LIMIT": {"CALLS": 100, "PER": 60}, "BREAKER": {"CONSECUTIVE_FAILURES": 1}})
    on_memcached.say(TEMPORARY, FOUND)
    on_memcached.find()
    on_memcached.find("P002")
    services.stop_item("P003")
    on_memcached.find("P003")
    expiries = memcached.expiries()
    assert len(expiries) > 5
    assert {key for key, second in expiries.items() if second == -1} == set()


@pytest.mark.parametrize("how", ["killed", "hanging"])
def test_a_server_that_is_gone(breakable: Memcached, site: Site, how: str, moving: MovableClock) -> None:
    """Lookups fetch; what was stopped stays so; an invalidation is refused, although the client hides all errors."""
    site.say(FOUND)
    assert [str(site.find().cache) for _ in range(2)] == ["miss", "hit"]
    breakable.kill() if how == "killed" else freeze(breakable.process)
    assert [words(site.find()) for _ in range(6)] == [("found", "ok")] * 6
    with pytest.raises(InvalidationFailed):
        services.stop_item("P001")
    assert StoppedItem.objects.get().published_at is None
    assert site.find().is_stopped
    with pytest.raises(InvalidationFailed):
        services.invalidate_item("P002")


def test_a_breaker_opens_without_the_server(breakable: Memcached, site: Site) -> None:
    """Guards go by a store in the process: a failing source is left alone although nothing can be counted together."""
    site.configure({"BREAKER": {"CONSECUTIVE_FAILURES": 3}}, {"ENABLED": False})
    site.say(TEMPORARY)
    breakable.kill()
    for _ in range(20):
        assert words(site.find()) == ("unavailable", "incomplete_search")
    assert site.calls[0] <= 10
    assert site.find().trace[0].reason == "circuit_open"


def test_a_rate_limit_holds_without_the_server(breakable: Memcached, site: Site) -> None:
    """For the process: it may refuse too much, never too little for long."""
    site.configure({"RATE_LIMIT": {"CALLS": 5, "PER": 60}}, {"ENABLED": False})
    site.say(FOUND)
    breakable.kill()
    for number in range(30):
        site.find(f"P{number:03d}")
    assert site.calls[0] <= 10


def test_i3_a_full_server_forgets_no_stop(site: Site) -> None:
    """It evicts gates, entries and counters: that costs a fetch, and the database is asked."""
    with running_memcached(megabytes=2) as small:
        site.cache_in(backends.PYMEMCACHE, LOCATION=small.location, OPTIONS=BOUNDED)
        site.say(FOUND)
        services.stop_item("P002")
        assert [str(site.find().cache) for _ in range(2)] == ["miss", "hit"]
        cache, query = caches["default"], entries_of["default"].query("P002")
        for number in range(100):
            cache.set_many({f"{number}:{at}": "x" * 33 for at in range(500)}, 300)
            if cache.get(query.gate_key) is None:
                break
        cache.close()
        assert small.count_of("evictions") > 0
        assert site.find("P002").is_stopped
        assert words(site.find()) == ("found", "ok")


def test_one_connection_a_thread(on_memcached: Site, memcached: Memcached) -> None:
    """Not one for each job of a batch, as Django would open them."""
    ids = [f"P{number:03d}" for number in range(30)]
    on_memcached.say(FOUND)
    services.find_items(ids)
    before = memcached.connections_so_far()
    for _ in range(5):
        services.invalidate_items(ids)
        services.find_items(ids)
    assert memcached.connections_so_far() - before <= 1 + 5 * CatalogConfig("default", ()).max_parallel


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_after_a_fork_the_child_has_a_connection_of_its_own(on_memcached: Site) -> None:
    """Two processes that read from one connection get each other's answers."""
    store = store_of["default"]
    store.set_many_or_raise({f"k{at}": at for at in range(3)}, 60)
    assert store.get_pair("k0", "k1") == (0, 1)
    child = os.fork()
    if child == 0:
        os._exit(0 if all(store.get_pair("k2", "k1") == (2, 1) for _ in range(200)) else 1)
    mine = {store.get_pair("k0", "k1") for _ in range(200)}
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert mine == {(0, 1)}


def test_two_servers_bring_back_what_was_replaced(site: Site) -> None:
    """Why the check W021 is there: a client that loses one writes to the other, another client reads the first."""
    with running_memcached() as one, running_memcached() as two:
        options = {**BOUNDED, "retry_attempts": 0, "dead_timeout": 60, "use_pooling": True}
        site.cache_in(backends.PYMEMCACHE, LOCATION=[one.location, two.location], OPTIONS=options)
        mine, another = (caches.create_connection("default") for _ in range(2))
        keys = [f"key{number}" for number in range(20)]
        mine.set_many(dict.fromkeys(keys, "old"), 60)
        freeze(one.process)
        for key in keys:
            _until_taken(mine, key)
        one.process.send_signal(signal.SIGCONT)
        again = {another.get(key) for key in keys}
        for cache in (mine, another):
            cache._cache.disconnect_all()
    assert again == {"old", "new"}


def _until_taken(cache: Any, key: str) -> None:
    for _ in range(10):
        try:
            cache.set(key, "new", 60)
            if cache.get(key) == "new":
                return
        except Exception:  # noqa: BLE001, S112  # a time-out: the client tries the other server next
            continue
    raise AssertionError("no server took it")
