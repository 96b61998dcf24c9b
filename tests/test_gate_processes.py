"""Do the promises hold between real processes on a real Valkey, also when one is killed in the middle?"""

from __future__ import annotations

import multiprocessing
import signal
import uuid
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.cache import caches
from django.db import connection, connections

from catalog_fallback import services
from catalog_fallback.models import StoppedItem
from tests import hammering
from tests.hammering import Event

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
DJANGO_REDIS = "django_redis.cache.RedisCache"


@pytest.fixture
def where(settings: Any, redis_url: str) -> hammering.Site:
    """A catalog on an empty corner of a real cache, for this process and the others."""
    pytest.importorskip("django_redis")
    settings.CACHES = {"default": {"BACKEND": DJANGO_REDIS, "LOCATION": redis_url, "KEY_PREFIX": uuid.uuid4().hex}}
    catalog = {"SOURCES": {"only": hammering.source()}, "STALE_IF_ERROR": 60, "TTL": 30, "STOP_CHECK": "cache"}
    settings.CATALOG_FALLBACK = {"default": catalog}
    return hammering.Site(_plain(connection.settings_dict), settings.CACHES, settings.CATALOG_FALLBACK)


def _plain(database: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in database.items() if key not in {"TEST", "TIME_ZONE"}}


@pytest.fixture
def keys(where: hammering.Site, redis_url: str) -> Iterator[Any]:
    """Return a function that lists the test's keys of one kind with their lives in seconds."""
    redis = pytest.importorskip("redis")
    with redis.Redis.from_url(redis_url) as client:

        def listed(kind: str = "") -> dict[bytes, float]:
            pattern = f"{where.caches['default']['KEY_PREFIX']}:*{kind}*"
            return {key: client.pttl(key) / 1000 for key in client.keys(pattern)}

        listed.client = client  # type: ignore[attr-defined]
        yield listed


def killed(where: hammering.Site, step: str, verb: str) -> None:
    """A process is killed at that step."""
    process = hammering.run(hammering.die_at, where, step, verb, "P001")
    process.join(hammering.PATIENCE)
    assert process.exitcode == -signal.SIGKILL, f"it was not killed {step}: {process.exitcode}"


@pytest.mark.parametrize("step", hammering.LOOKUP_STEPS)
def test_dogpile_h12_a_lookup_that_is_killed_harms_nobody(where: hammering.Site, keys: Any, step: str) -> None:
    """What it leaves behind expires, the lease within seconds; the others find, stop and release as ever."""
    killed(where, step, "find_item")
    assert all(life > 0 for life in keys().values()), "a key without expiry"
    for lease, life in keys(":l:").items():
        assert life <= 4
        keys.client.delete(lease)  # as its expiry will
    assert services.find_item("P001").is_found
    services.stop_item("P001")
    assert services.find_item("P001").is_stopped
    services.release_item("P001")
    assert services.find_item("P001").is_found
    assert services.find_item("P001").cache == "hit"


@pytest.mark.parametrize("step", hammering.STOP_STEPS)
def test_a_stop_that_is_killed_is_shown_and_taken_along(where: hammering.Site, step: str) -> None:
    """Its row is there and not confirmed; a cache that lost everything knows of it; the next publish publishes it."""
    services.find_item("P001")
    killed(where, step, "stop_item")
    row = StoppedItem.objects.get()
    assert (row.is_active, row.published_at) == (True, None)
    if step != "between commit and publish":  # documented: until the next publish an old entry may serve
        assert services.find_item("P001").is_stopped
    services.invalidate_item("P002")
    assert services.find_item("P001").is_stopped
    assert StoppedItem.objects.get().published_at is not None


def test_a_stop_that_is_killed_before_its_publish_survives_a_flush(where: hammering.Site) -> None:
    """The database is the truth: nothing that was stopped comes back with an empty cache."""
    services.find_item("P001")
    killed(where, "between commit and publish", "stop_item")
    caches["default"].clear()
    assert services.find_item("P001").is_stopped


# ------------------------------------------------------------------------------------------------ hammering


@pytest.fixture
def without_scripts(where: hammering.Site, keys: Any, redis_url: str) -> Iterator[hammering.Site]:
    """The same place for a process whose user may run no scripts, as some hosts have it."""
    user = f"plain-{uuid.uuid4().hex}"
    keys.client.execute_command("ACL", "SETUSER", user, "on", ">open", "~*", "&*", "+@all", "-@scripting")
    parts = urlsplit(redis_url)
    location = parts._replace(netloc=f"{user}:open@{parts.netloc.rpartition('@')[2]}").geturl()
    redis = pytest.importorskip("redis")
    with redis.Redis.from_url(location) as client, pytest.raises(redis.exceptions.NoPermissionError):
        client.eval("return 1", 0)
    yield where._replace(caches={"default": {**where.caches["default"], "LOCATION": location}})
    keys.client.execute_command("ACL", "DELUSER", user)


@pytest.mark.parametrize("loses_keys", [False, True], ids=["calm", "losing keys"])
def test_the_promises_hold_between_processes(where: hammering.Site, keys: Any, loses_keys: bool) -> None:
    """Four of them look up, stop, release and forget two items; what each saw is judged afterwards."""
    _judge(_hammer([where] * 4, keys, loses_keys=loses_keys))


def test_they_hold_where_some_may_run_no_scripts(
    where: hammering.Site, without_scripts: hammering.Site, keys: Any
) -> None:
    """Two take each step by itself, two take several in a script: they are one fleet."""
    _judge(_hammer([where, without_scripts] * 2, keys))


@pytest.mark.parametrize("apart", [40.0, 3600.0], ids=["less than a minute", "an hour"])
def test_they_hold_where_clocks_disagree(where: hammering.Site, keys: Any, apart: float) -> None:
    """One host is ahead, one behind: who comes last wins all the same, whatever his clock says."""
    _judge(_hammer([where._replace(ahead=ahead) for ahead in (0.0, apart, -apart, apart / 2)], keys))


def _hammer(places: Sequence[hammering.Site], keys: Any, *, loses_keys: bool = False) -> list[Event]:
    """One process in each place; return what they did. Meanwhile the cache may lose half of its keys all the time."""
    if connections["default"].vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode=wal")
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(len(places)), context.Queue()
    processes = [hammering.run(hammering.hammer, place, seed, 400, start, results) for seed, place in enumerate(places)]
    events: list[Event] = []
    ended = 0
    while ended < len(places):
        if loses_keys and (lost := list(keys())):
            keys.client.delete(*lost[::2])
        try:
            events += results.get(timeout=0.02 if loses_keys else hammering.PATIENCE)
            ended += 1
        except Exception:  # noqa: BLE001 - not yet
            assert any(process.is_alive() for process in processes), "they died"
    for process in processes:
        process.join(hammering.PATIENCE)
    assert all(life > 0 for life in keys().values()), "I5: a key without expiry"
    return events


def _judge(events: list[Event]) -> None:
    """I1, I2 and I4 over what all of them did. Nobody can say how two overlapping operations followed each other."""
    seen = {"found": 0, "stopped": 0}
    for item_id in ("P001", "P002"):
        of_item = [event for event in events if event.item_id == item_id]
        changes = {verb: [each for each in of_item if each.verb == verb] for verb in set(hammering.VERBS)}
        confirmed = [each for each in of_item if each.outcome == "confirmed"]
        for lookup in changes["find_item"]:
            assert lookup.outcome in seen, f"neither found nor stopped: {lookup}"
            seen[lookup.outcome] += 1
            before = [each for each in confirmed if each.ended < lookup.began]
            wanted, contrary = (
                ("stop_item", "release_item") if lookup.outcome == "found" else ("release_item", "stop_item")
            )
            for change in before:
                if change.verb == wanted:
                    undone = [
                        each for each in changes[contrary] if each.ended > change.began and each.began < lookup.ended
                    ]
                    assert undone, f"{'I1' if wanted == 'stop_item' else 'I4'}: {change} and then {lookup}"
                if lookup.sent is not None:
                    assert lookup.sent >= change.began, f"I2: {change} and then {lookup}"
    assert min(seen.values()) > 20, f"the test proves nothing: {seen}"
