"""What does a site meet when its Redis becomes a replica, or a replica takes over?

Never an item that is stopped, unless the replica never heard of the stop and nobody asks the database; and never "not
found" for "could not find out".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from catalog_fallback import services
from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.models import StoppedItem
from catalog_fallback.publishing import TRY_FOR
from tests import loopback as wire
from tests import servers
from tests.crew import wait_until
from tests.sites import FOUND, NOT_FOUND, TEMPORARY, MovableClock, Site, words

pytestmark = pytest.mark.slow

PAUSE = 5.0
BACKENDS = ["django_redis.cache.RedisCache", "django.core.cache.backends.redis.RedisCache"]


@pytest.fixture
def standby() -> Iterator[servers.Valkey]:
    """A second server, which may follow the first one and take its place."""
    with servers.running_valkey() as server:
        yield server


@pytest.fixture(params=BACKENDS, ids=["django-redis", "Django's own"])
def primary(site: Site, valkey: servers.Valkey, request: pytest.FixtureRequest) -> servers.Valkey:
    """The server of the site, whose cache has P001."""
    pytest.importorskip("django_redis" if request.param.startswith("django_redis") else "redis")
    site.cache_in(request.param, LOCATION=valkey.url)
    site.configure(STALE_IF_ERROR=600, NEGATIVE_TTL=60)
    site.say(FOUND)
    assert [site.find().cache for _ in range(2)] == ["miss", "hit"]
    return valkey


def tell(server: servers.Valkey, *words: Any) -> Any:
    """Send a server a command of its operator's."""
    redis = pytest.importorskip("redis")
    with redis.Redis.from_url(server.url) as client:
        return client.execute_command(*words)


def follow(standby: servers.Valkey, primary: servers.Valkey) -> None:
    """Let it copy all that the other holds, now and later."""
    tell(primary, "CONFIG", "SET", "repl-diskless-sync-delay", 0)
    tell(standby, "REPLICAOF", "127.0.0.1", primary.port)
    in_step(standby, primary)


def in_step(standby: servers.Valkey, primary: servers.Valkey) -> None:
    """Wait until it has all that was written so far."""

    def has_all() -> bool:
        theirs, ours = (tell(server, "INFO", "replication") for server in (standby, primary))
        return theirs["master_link_status"] == "up" and theirs["slave_repl_offset"] >= ours["master_repl_offset"]

    wait_until(has_all)


def take_over(standby: servers.Valkey, primary: servers.Valkey) -> None:
    """The primary dies, and the other one answers at its address."""
    primary.kill()
    tell(standby, "REPLICAOF", "NO", "ONE")
    tell(standby, "CONFIG", "SET", "port", primary.port)


def test_a_primary_that_became_a_replica(site: Site, primary: servers.Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    """It still answers reads and refuses writes: lookups go on, and no stop counts as published that is not."""
    moving = MovableClock(monkeypatch)
    tell(primary, "REPLICAOF", "127.0.0.1", servers.free_port())
    assert site.find().cache == "hit"
    site.say(wire.ok({"item": {"id": "P002", "name": "Coffee"}}))
    for _ in range(4):  # nothing can be kept
        lookup = site.find("P002")
        assert (lookup.is_found, lookup.cache) == (True, "miss")
    site.say(NOT_FOUND)
    assert words(site.find("P004")) == ("not_found", "all_not_found")
    site.say(TEMPORARY)
    assert words(site.find("P005")) == ("unavailable", "incomplete_search")
    started = moving.ahead
    with pytest.raises(InvalidationFailed):
        services.stop_item("P003")
    assert moving.ahead - started <= TRY_FOR + 1
    assert StoppedItem.objects.get().published_at is None
    tell(primary, "REPLICAOF", "NO", "ONE")
    moving.move(PAUSE + 1)
    services.invalidate_item("P009")  # takes along what was not confirmed
    assert StoppedItem.objects.get().published_at is not None
    assert site.find("P003").is_stopped
    site.say(FOUND)
    services.invalidate_item("P001")
    assert [site.find().cache for _ in range(2)] == ["miss", "hit"]


def test_a_replica_that_has_heard_of_all_takes_over(
    site: Site, primary: servers.Valkey, standby: servers.Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hits stay hits, what is stopped stays stopped, and it runs the scripts that it has never seen."""
    follow(standby, primary)
    services.stop_item("P002")
    assert site.find("P002").is_stopped
    in_step(standby, primary)
    take_over(standby, primary)
    for _ in range(4):  # connections that are gone show as errors, each once
        assert site.find().is_found
        assert site.find("P002").is_stopped
    MovableClock(monkeypatch).move(PAUSE + 1)
    site.find()
    assert site.find().cache == "hit"
    services.invalidate_item("P001")
    assert [site.find().cache for _ in range(2)] == ["miss", "hit"]
    assert site.find("P002").is_stopped


@pytest.mark.parametrize("stop_check", ["cache", "database"])
def test_a_replica_that_has_not_heard_of_a_stop_takes_over(
    site: Site, primary: servers.Valkey, standby: servers.Valkey, monkeypatch: pytest.MonkeyPatch, stop_check: str
) -> None:
    """What a fail-over loses, as the docs say: STOP_CHECK="database" loses nothing; else publishing again mends it."""
    site.configure(STALE_IF_ERROR=600, STOP_CHECK=stop_check)
    site.find()
    follow(standby, primary)
    tell(standby, "REPLICAOF", "127.0.0.1", servers.free_port())  # the network between them is gone
    services.stop_item("P001")
    assert site.find().is_stopped
    take_over(standby, primary)
    moving = MovableClock(monkeypatch)
    for _ in range(4):
        site.find()
    moving.move(PAUSE + 1)
    assert site.find().is_stopped is (stop_check == "database")
    StoppedItem.objects.get().save()  # as "publish again" does
    assert site.find().is_stopped
