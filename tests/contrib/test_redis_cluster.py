"""Does everything hold on a real Redis Cluster: no command over two slots, and nothing wrong while a node is gone?"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import caches

from catalog_fallback import services
from catalog_fallback.cache import entries_of, store_of
from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.models import StoppedItem
from tests import loopback as wire
from tests.cluster import Cluster, Node, running_cluster
from tests.servers import freeze
from tests.sites import FOUND, NOT_FOUND, TEMPORARY, MovableClock, Site, words

redis = pytest.importorskip("redis")
pytest.importorskip("django_redis")

pytestmark = pytest.mark.slow

DJANGO_REDIS = "django_redis.cache.RedisCache"
DJANGO = "django.core.cache.backends.redis.RedisCache"
CLIENT = "catalog_fallback.contrib.redis_cluster.ClusterClient"
MANY = [f"M{number:03d}" for number in range(200)]
#: Seconds after which a node that hangs is given up.
TIMEOUT = 0.25


def options(**more: Any) -> dict[str, Any]:
    """OPTIONS of a cache on a cluster."""
    return {"CLIENT_CLASS": CLIENT, "SOCKET_TIMEOUT": TIMEOUT, "SOCKET_CONNECT_TIMEOUT": TIMEOUT, **more}


def use(site: Site, cluster: Cluster, **more: Any) -> None:
    """Give the site an empty corner of a cluster."""
    site.cache_in(DJANGO_REDIS, LOCATION=cluster.urls[:2], KEY_PREFIX=uuid.uuid4().hex, OPTIONS=options(**more))


def answer_each(request: wire.Wire) -> None:
    """Every ID is an item here."""
    item_id = request.request.path.rsplit("/", 1)[-1]
    wire.ok({"item": {"id": item_id, "name": "Tea"}})(request)


@pytest.fixture
def single_node() -> Iterator[Cluster]:
    """A cluster that looks like one server: a single node has every slot, as behind some providers' endpoints."""
    with running_cluster(1) as cluster:
        yield cluster


@pytest.mark.parametrize("backend", [DJANGO_REDIS, DJANGO])
@pytest.mark.django_db(transaction=True)
def test_a_plain_client_of_a_single_node_looks_at_the_guards_by_itself(
    site: Site, single_node: Cluster, backend: str
) -> None:
    """What names keys of two slots is refused there: noticed once, and no trouble of the cache."""
    site.cache_in(backend, LOCATION=single_node.urls[0], KEY_PREFIX=uuid.uuid4().hex)
    site.say(answer_each)
    single_node.reset_counts()
    assert [site.find(item_id).state for item_id in MANY[:5]] == ["found"] * 5
    store = entries_of["default"].store
    assert (store.runs_scripts, store.is_in_trouble) == (True, False)
    assert single_node.errors().get("CROSSSLOT") == 1
    assert [site.find(item_id).cache for item_id in MANY[:5]] == ["hit"] * 5


@pytest.fixture
def clustered(site: Site, redis_cluster: Cluster) -> Site:
    """A site on the cluster that all tests share, whose first catalog has every item."""
    use(site, redis_cluster)
    site.say(answer_each)
    redis_cluster.reset_counts()
    return site


class Commands:
    """Every command that redis-py's cluster client was given: its name and the keys that it is about."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[tuple[str, tuple[str, ...]]] = []
        for kind in (redis.cluster.RedisCluster, redis.cluster.ClusterPipeline):
            monkeypatch.setattr(kind, "execute_command", self._noting(kind.execute_command))

    def _noting(self, send: Any) -> Any:
        def noting(client: Any, *arguments: Any, **more: Any) -> Any:
            if keys := tuple(str(each) for each in arguments[1:] if _is_key(each)):
                self.sent.append((str(arguments[0]), keys))
            return send(client, *arguments, **more)

        return noting

    def slots(self) -> list[set[int]]:
        """The slots that each command touches."""
        return [{redis.crc.key_slot(key.encode()) for key in keys} for _, keys in self.sent]


def _is_key(argument: object) -> bool:
    return isinstance(argument, str) and ":{" in argument


@pytest.fixture
def commands(clustered: Site, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """What is sent from now on."""
    return Commands(monkeypatch)


def wrong_slots(cluster: Cluster) -> dict[str, int]:
    """What nodes said to commands that did not belong to them, or to nobody.

    They also say which of the newest options of a connection they do not know, and that they see a script for the
    first time.
    """
    return {error: count for error, count in cluster.errors().items() if error not in {"ERR", "NOSCRIPT"}}


# ------------------------------------------------------------------------------------------------ slots


LIFE = {
    "miss and hit": lambda: [services.find_item("P001"), services.find_item("P001")],
    "language": lambda: services.find_item("P001", language="de"),
    "refresh": lambda: services.find_item("P001", refresh=True),
    "invalidate": lambda: services.invalidate_item("P001"),
    "stop": lambda: [services.stop_item("P001"), services.find_item("P001")],
    "release": lambda: [services.stop_item("P001"), services.release_item("P001"), services.find_item("P001")],
    "explain": lambda: services.explain_item("P001"),
}


@pytest.mark.parametrize("name", LIFE)
def test_a_command_about_one_item_stays_in_one_slot(
    clustered: Site, redis_cluster: Cluster, commands: Commands, name: str
) -> None:
    """That of the item or, for the guards of all its sources, that of the catalog."""
    clustered.configure({"RATE_LIMIT": {"CALLS": 100, "PER": 60}}, {"RATE_LIMIT": {"CALLS": 100, "PER": 60}})
    LIFE[name]()
    entries = entries_of["default"]
    item = redis.crc.key_slot(caches["default"].make_key(entries.gate_key("P001")).encode())
    guards = redis.crc.key_slot(b"{default}")
    touched = commands.slots()
    assert touched
    assert all(len(slots) == 1 for slots in touched), commands.sent
    assert set().union(*touched) <= {item, guards}
    assert wrong_slots(redis_cluster) == {}
    assert not store_of["default"].is_in_trouble


def test_the_guards_of_a_catalog_are_in_one_slot(
    clustered: Site, redis_cluster: Cluster, commands: Commands, moving: MovableClock
) -> None:
    """Breakers that open and close again, cool-downs, limits and figures of two sources: every key of theirs."""
    breaker = {"CONSECUTIVE_FAILURES": 1, "OPEN_FOR": 5}
    guarded = {"BREAKER": breaker, "RATE_LIMIT": {"CALLS": 100, "PER": 60}}
    clustered.configure(guarded, guarded)
    clustered.say(TEMPORARY, wire.reply(503, headers={"Retry-After": "3"}))
    assert words(services.find_item("P001")) == ("unavailable", "incomplete_search")
    assert clustered.calls == (1, 1)
    assert services.find_item("P001").trace[0].reason == "circuit_open"
    assert clustered.calls == (1, 1)
    moving.move(10)
    for source in ("primary", "secondary"):  # the server's clock is not the test's
        for key in redis_cluster.all_keys():
            if f":s:{source}:" in key and "open" in key:
                redis_cluster.home_of(key).ask("DEL", key)
    clustered.say(answer_each)
    assert services.find_item("P001").is_found
    prefix = caches["default"].key_prefix
    guards = {key for key in redis_cluster.all_keys() if key.startswith(prefix) and ":r:{" in key}
    assert len(guards) > 5
    assert len({redis.crc.key_slot(key.encode()) for key in guards}) == 1
    assert all(len(slots) == 1 for slots in commands.slots())
    assert wrong_slots(redis_cluster) == {}


def test_many_hits_are_one_read_a_slot(clustered: Site, redis_cluster: Cluster) -> None:
    """Two hundred items: as many MGETs as they have slots, on three nodes, and no detour."""
    assert all(lookup.is_found for lookup in services.find_items(MANY).values())
    redis_cluster.reset_counts()
    found = services.find_items(MANY)
    assert {(words(lookup), str(lookup.cache)) for lookup in found.values()} == {(("found", "ok"), "hit")}
    cache, entries = caches["default"], entries_of["default"]
    slots = {redis.crc.key_slot(cache.make_key(entries.gate_key(item_id)).encode()) for item_id in MANY}
    counts = redis_cluster.commands()
    assert (counts["mget"], counts.get("get", 0)) == (len(slots), 0)
    assert wrong_slots(redis_cluster) == {}
    assert clustered.calls == (len(MANY), 0)


def test_many_stops_invalidations_and_releases(clustered: Site, redis_cluster: Cluster) -> None:
    """Each is confirmed for every ID, over all slots."""
    services.find_items(MANY)
    assert services.stop_items(MANY) == len(MANY)
    assert {lookup.state for lookup in services.find_items(MANY).values()} == {"stopped"}
    assert not StoppedItem.objects.filter(published_at=None).exists()
    services.release_items(MANY)
    assert {lookup.state for lookup in services.find_items(MANY).values()} == {"found"}
    assert services.invalidate_items(MANY) == len(MANY)
    assert {str(lookup.cache) for lookup in services.find_items(MANY).values()} == {"miss"}
    assert wrong_slots(redis_cluster) == {}
    assert redis_cluster.keys_for_ever() == []


@pytest.mark.parametrize("name", ["fast", "django-redis"])
def test_a_read_over_slots_keeps_the_order(clustered: Site, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Through either way: what is missing is left out, each value is under its own key."""
    store, values = store_of["default"], {f"{{{at}}}": at for at in range(50)}
    _ = store.backend
    assert store._backend.fast is not None
    if name == "django-redis":
        monkeypatch.setattr(store._backend, "fast", None)
    store.set_many_or_raise(values, 60)
    keys = [key for at in range(50) for key in (f"{{{at}}}", f"missing{{{at}}}")]
    assert store.get_many(tuple(keys)) == values


def test_a_moved_slot_is_followed(clustered: Site, redis_cluster: Cluster) -> None:
    """A node that says MOVED is believed, and the lookup is a lookup like any other."""
    item_id = next(item_id for item_id in (f"V{at}" for at in range(1000)) if _slot_is_empty(redis_cluster, item_id))
    key = caches["default"].make_key(entries_of["default"].gate_key(item_id))
    services.find_item("P001")  # the client has its map
    old = redis_cluster.home_of(key)
    new = next(node for node in redis_cluster.nodes if node is not old)
    slot = redis.crc.key_slot(key.encode())
    redis_cluster.move(slot, new)
    try:
        assert [str(services.find_item(item_id).cache) for _ in range(2)] == ["miss", "hit"]
        assert wrong_slots(redis_cluster).keys() == {"MOVED"}
        assert old.ask("CLUSTER", "COUNTKEYSINSLOT", slot) == 0
        services.stop_item(item_id)
        assert services.find_item(item_id).is_stopped
    finally:
        for key in new.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
            new.ask("DEL", key)
        redis_cluster.move(slot, old)


def _slot_is_empty(cluster: Cluster, item_id: str) -> bool:
    key = caches["default"].make_key(entries_of["default"].gate_key(item_id))
    count: int = cluster.home_of(key).ask("CLUSTER", "COUNTKEYSINSLOT", redis.crc.key_slot(key.encode()))
    return count == 0


# ------------------------------------------------------------------------------------------------ a node is gone


@pytest.fixture
def breakable(site: Site) -> Iterator[Cluster]:
    """A cluster of the test's own, under a site whose first catalog has every item."""
    with running_cluster() as cluster:
        use(site, cluster)
        site.say(answer_each)
        yield cluster


def on_node(cluster: Cluster, node: Node, count: int) -> list[str]:
    """So many IDs whose keys are on that node."""
    cache, entries = caches["default"], entries_of["default"]
    ids = (item_id for item_id in MANY if cluster.home_of(cache.make_key(entries.gate_key(item_id))) is node)
    return [item_id for item_id, _ in zip(ids, range(count), strict=False)]


@pytest.mark.parametrize("how", ["killed", "hanging"])
def test_items_of_a_node_that_is_gone_are_fetched(
    breakable: Cluster, site: Site, moving: MovableClock, how: str
) -> None:
    """Its items are misses, or all are while the process leaves the cache alone; nobody is told anything wrong."""
    dead, alive = breakable.nodes[:2]
    lost, kept = on_node(breakable, dead, 4), on_node(breakable, alive, 4)
    services.find_items([*lost, *kept])
    dead.kill() if how == "killed" else freeze(dead.process)
    for item_id in (*lost, *kept):
        lookup = services.find_item(item_id)
        assert (words(lookup), lookup.item) == (("found", "ok"), {"id": item_id, "name": "Tea"})
    assert store_of["default"].is_paused
    site.say(NOT_FOUND, TEMPORARY)
    assert {words(services.find_item(each)) for each in lost} == {("unavailable", "incomplete_search")}
    moving.move(6)
    assert str(services.find_item(kept[0]).cache) == "hit"


def test_a_batch_over_a_dead_node_is_fetched(breakable: Cluster, site: Site) -> None:
    """One dead node makes misses of the whole read: more calls, and every answer right."""
    services.find_items(MANY[:30])
    breakable.nodes[2].kill()
    found = services.find_items(MANY[:30])
    assert {words(lookup) for lookup in found.values()} == {("found", "ok")}
    assert [lookup.item["id"] for lookup in found.values() if lookup.item] == MANY[:30]


def test_a_stop_that_a_dead_node_cannot_take_is_told(breakable: Cluster, site: Site, moving: MovableClock) -> None:
    """The caller sees that it was not confirmed; nobody sees the item, neither meanwhile nor when the node is back."""
    (item_id,) = on_node(breakable, breakable.nodes[0], 1)
    (other,) = on_node(breakable, breakable.nodes[1], 1)
    services.find_items([item_id, other])
    breakable.nodes[0].kill()
    with pytest.raises(InvalidationFailed):
        services.stop_item(item_id)
    assert StoppedItem.objects.get(item_id=item_id).published_at is None
    assert services.find_item(item_id).is_stopped
    services.stop_item(other)  # on a node that is there
    assert services.find_item(other).is_stopped
    breakable.nodes[0].start()
    breakable.wait()
    moving.move(6)
    assert services.find_item(item_id).is_stopped
    services.invalidate_item(item_id)
    assert not StoppedItem.objects.filter(published_at=None).exists()
    assert services.find_item(item_id).is_stopped


def test_no_node_at_all(site: Site, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A cluster that cannot be reached is a cache in trouble: lookups go on without, an invalidation is refused."""
    with running_cluster() as cluster:
        use(site, cluster)
    site.say(FOUND)
    with caplog.at_level(logging.CRITICAL, "catalog_fallback"):
        assert [words(site.find()) for _ in range(5)] == [("found", "ok")] * 5
        with pytest.raises(InvalidationFailed):
            services.invalidate_item("P001")


# ------------------------------------------------------------------------------------------------ the client itself


def test_one_connection_map_for_all_threads(clustered: Site) -> None:
    """A second object of the backend, as another thread gets it, uses the same client of redis-py."""
    one = caches.create_connection("default")
    other = caches.create_connection("default")
    assert one.client is not other.client
    assert one.client.get_client() is other.client.get_client()


def test_other_options_are_another_client(clustered: Site, redis_cluster: Cluster, settings: Any) -> None:
    """No alias silently gets the time-outs of the first one."""
    first = caches["default"].client.get_client()
    use(clustered, redis_cluster, SOCKET_TIMEOUT=3)
    assert caches["default"].client.get_client() is not first


def test_nothing_is_sent_twice_of_its_own_accord(clustered: Site) -> None:
    """An ``add`` whose reply was lost would find its own key the second time; a site may say otherwise."""
    assert caches["default"].client.get_client().retry.get_retries() == 0


def test_options_of_redis_py_are_passed_on(clustered: Site, redis_cluster: Cluster) -> None:
    """Those of its client, and those of its connections."""
    use(
        clustered,
        redis_cluster,
        REDIS_CLIENT_KWARGS={"reinitialize_steps": 7},
        CONNECTION_POOL_KWARGS={"max_connections": 11},
        PASSWORD=None,
    )
    client = caches["default"].client.get_client()
    assert client.reinitialize_steps == 7
    assert client.get_default_node().redis_connection.connection_pool.max_connections == 11


def test_closed_connections_are_opened_again(clustered: Site) -> None:
    """As DJANGO_REDIS_CLOSE_CONNECTION does at the end of each request."""
    cache = caches["default"]
    cache.set("key", 1, 60)
    cache.client.do_close_clients()
    assert cache.get("key") == 1


def test_an_empty_read_asks_nobody(clustered: Site) -> None:
    """Nothing is sent for no keys."""
    cache = caches["default"]
    assert (cache.get_many([]), cache.delete_many([])) == ({}, 0)


def test_a_dead_node_is_the_connection_error_that_django_redis_knows(breakable: Cluster) -> None:
    """So that IGNORE_EXCEPTIONS hides it, and nothing else is hidden."""
    cache = caches["default"]
    keys = [f"{{{at}}}" for at in range(30)]
    cache.set_many(dict.fromkeys(keys, 1), 60)
    breakable.nodes[1].kill()
    with pytest.raises(redis.exceptions.ConnectionError):
        cache.get_many(keys)


# ------------------------------------------------------------------------------------------------ other ways


@pytest.mark.parametrize(
    ("backend", "more"), [(DJANGO, {}), (DJANGO_REDIS, {})], ids=["Django's own", "django-redis' default client"]
)
def test_a_client_that_knows_no_slots_is_a_cache_in_trouble(
    site: Site, redis_cluster: Cluster, backend: str, more: dict[str, Any]
) -> None:
    """It gets MOVED for two keys of three: lookups still say the truth, and an invalidation says that it failed."""
    site.cache_in(backend, LOCATION=redis_cluster.urls[0], KEY_PREFIX=uuid.uuid4().hex, **more)
    site.say(answer_each)
    item_ids = on_node(redis_cluster, redis_cluster.nodes[1], 3)
    for item_id in item_ids:
        assert words(services.find_item(item_id)) == ("found", "ok")
        assert str(services.find_item(item_id).cache) == "miss"
    with pytest.raises(InvalidationFailed):
        services.invalidate_item(item_ids[0])
