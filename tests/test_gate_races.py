"""Who wins when an item is forgotten, stopped or released while it is being fetched? A fetch frozen at each step.

Named after the reports of groups D, G and H: FusionCache 613, 625, 628; guava 1881; caffeine 193; otter 137;
hindsight 2315; cacheops 302, 424; cachalot 224.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import caches

from catalog_fallback import clock, services
from catalog_fallback.cache import EntryCache, entries_of
from catalog_fallback.fallback import Chain
from catalog_fallback.item_store import ItemStore
from catalog_fallback.redis_scripts import RedisScripts
from catalog_fallback.results import Lookup
from catalog_fallback.testing import FrozenClock
from tests import loopback as wire
from tests import servers
from tests.shops import later
from tests.sites import LOCMEM, MovableClock, Site, found

PATIENCE = 30
BACKENDS = {
    "locmem": LOCMEM,
    "django-redis": "django_redis.cache.RedisCache",
    "django-redis without scripts": "django_redis.cache.RedisCache",
    "django's redis": "django.core.cache.backends.redis.RedisCache",
}


class Frozen:
    """Holds whoever comes first to a method, before or while it runs, until the test lets go."""

    def __init__(self) -> None:
        self._reached, self._released = threading.Event(), threading.Event()
        self._first = threading.Lock()

    def before(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        """Hold the first caller of the method before it begins."""
        method = getattr(owner, name)

        def held(*arguments: Any, **keywords: Any) -> Any:
            if self._first.acquire(blocking=False):
                self._reached.set()
                assert self._released.wait(PATIENCE), "the test never let go"
            return method(*arguments, **keywords)

        monkeypatch.setattr(owner, name, held)

    def wait_until_reached(self) -> None:
        assert self._reached.wait(PATIENCE), "nobody ever came"

    def release(self) -> None:
        self._released.set()


#: Where the fetch stands still → how that is done.
STEPS: dict[str, tuple[type, str] | wire.Point] = {
    "before the call": (Chain, "search"),
    "before the head": "before the head",
    "in the body": "in the body",
    "after the body, before the gate is read": (EntryCache, "keep_if_same"),
    "before the entry is written": (ItemStore, "set_and_touch"),
}
#: Where a script looks at the gate and writes the entry, nothing comes between: the last moment is before it runs.
LAST_WITH_SCRIPTS = (RedisScripts, "keep")
#: What a server says from the first moment on that allows no scripts.
REFUSED = property(lambda _: True, lambda _, __: None)


@pytest.fixture(params=BACKENDS)
def fetching(
    request: pytest.FixtureRequest, site: Site, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Return a function that starts a fetch and freezes it at a step; over each cache."""
    if request.param != "locmem":
        pytest.importorskip(BACKENDS[request.param].split(".")[0])
        where = {"LOCATION": request.getfixturevalue("redis_url"), "KEY_PREFIX": uuid.uuid4().hex[:8]}
        site.cache_in(BACKENDS[request.param], **where)
    if request.param == "django-redis without scripts":
        monkeypatch.setattr(RedisScripts, "are_refused", REFUSED, raising=False)
    frozen: list[Any] = []

    def start(step: str) -> tuple[Callable[[], Lookup], Callable[[], None]]:
        entries_of["default"].open_gate(entries_of["default"].query("P001"))
        held = STEPS[step]
        if held == STEPS["before the entry is written"] and entries_of["default"].store.runs_scripts:
            held = LAST_WITH_SCRIPTS
        stop: Any = Frozen() if isinstance(held, tuple) else wire.Barrier()
        frozen.append(stop)
        if isinstance(held, tuple):
            site.say(found(name="Old"))
            stop.before(monkeypatch, *held)
        else:
            site.say(wire.paused(stop, at=held, body={"item": {"id": "P001", "name": "Old"}}))
        result = later(lambda: site.find(budget=PATIENCE))
        stop.wait_until_reached()
        site.say(found(name="New"))
        return result, stop.release

    yield start
    for each in frozen:
        each.release()
    caches.close_all()


def name_of(lookup: Lookup) -> str:
    """The item's name, else the state."""
    return str(lookup.item["name"]) if lookup.item is not None else str(lookup.state)


@pytest.mark.parametrize("step", STEPS)
def test_fusioncache_625_hindsight_2315_an_invalidation_wins(
    fetching: Callable[..., Any], site: Site, step: str
) -> None:
    """Who comes after it joins no older flight and gets newer data, and what the older one brings is not kept.

    The older flight's own caller has its answer all the same (otter 137).
    """
    result, release = fetching(step)
    services.invalidate_item("P001")
    assert name_of(site.find()) == "New"
    release()
    assert result().is_found
    after = site.find()
    # An entry that was already on its way lands on the newer one: it counts for nobody, and costs a fetch.
    is_on_its_way = step == "before the entry is written" and not entries_of["default"].store.runs_scripts
    assert (name_of(after), after.cache) == ("New", "miss" if is_on_its_way else "hit")
    assert site.find().cache == "hit"


@pytest.mark.parametrize("step", STEPS)
def test_fusioncache_628_an_invalidation_without_a_reader_wins(
    fetching: Callable[..., Any], site: Site, step: str
) -> None:
    """Nobody asks between the invalidation and the end of the fetch; the next one fetches, and then it is kept."""
    result, release = fetching(step)
    services.invalidate_item("P001")
    release()
    assert result().is_found
    calls = site.calls[0]
    assert name_of(site.find()) == "New"
    assert site.calls[0] == calls + 1
    assert site.find().cache == "hit"


@pytest.mark.parametrize("step", STEPS)
def test_cacheops_302_a_stop_wins(fetching: Callable[..., Any], site: Site, step: str) -> None:
    """Nobody sees the item who asks after the stop, before and after the fetch has ended."""
    result, release = fetching(step)
    services.stop_item("P001")
    assert name_of(site.find()) == "stopped"
    release()
    assert name_of(result()) in {"stopped", "Old", "New"}
    assert name_of(site.find()) == "stopped"
    assert name_of(site.find(language="de")) == "stopped"


@pytest.mark.parametrize("fetching", ["locmem"], indirect=True)
@pytest.mark.parametrize("step", STEPS)
def test_a_fetch_that_ends_after_a_stop_says_so(fetching: Callable[..., Any], site: Site, step: str) -> None:
    """The gate has changed, so the stop list is asked once more: unless the gate was read before, "stopped" wins."""
    result, release = fetching(step)
    services.stop_item("P001")
    release()
    assert name_of(result()) == ("Old" if step == "before the entry is written" else "stopped")


@pytest.mark.parametrize("fetching", ["locmem"], indirect=True)
@pytest.mark.parametrize("step", STEPS)
def test_a_release_wins(fetching: Callable[..., Any], site: Site, step: str) -> None:
    """Stopped and released during one fetch: who asks afterwards finds the item, with data from after the release."""
    result, release = fetching(step)
    services.stop_item("P001")
    assert name_of(site.find()) == "stopped"
    services.release_item("P001")
    assert name_of(site.find()) == "New"
    release()
    assert result().is_found
    assert name_of(site.find()) == "New"


LOSSES: dict[str, Callable[[], Any]] = {
    "everything": lambda: (caches["default"].clear(), None),
    "the gate": lambda: caches["default"].delete(entries_of["default"].gate_key("P001")),
}


@pytest.mark.parametrize("fetching", ["locmem"], indirect=True)
@pytest.mark.parametrize("lost", LOSSES)
@pytest.mark.parametrize("step", STEPS)
def test_i3_losing_keys_costs_at_most_a_fetch(fetching: Callable[..., Any], site: Site, step: str, lost: str) -> None:
    """In the middle of a fetch, with an invalidation on top: the old data does not come back."""
    result, release = fetching(step)
    services.invalidate_item("P001")
    LOSSES[lost]()
    release()
    assert result().is_found
    assert name_of(site.find()) == "New"
    assert site.find().cache == "hit"


@pytest.mark.parametrize("fetching", ["locmem"], indirect=True)
def test_guava_2971_forgetting_everything_under_load_does_not_stop_the_filling(
    fetching: Callable[..., Any], site: Site
) -> None:
    """After it, lookups fill the cache as before."""
    result, release = fetching("in the body")
    services.invalidate_items([f"P{number:03}" for number in range(500)])
    release()
    result()
    assert [site.find().cache for _ in range(3)] == ["miss", "hit", "hit"]


# ------------------------------------------------------------------------------------------------ tokens


def test_cachalot_224_tokens_are_no_time_stamps(site: Site, frozen_clock: FrozenClock) -> None:
    """Two invalidations in the same moment are two, and the data between them is gone."""
    gates = set()
    for name in ("A", "B", "C"):
        site.say(found(name=name))
        services.invalidate_item("P001")
        gates.add(entries_of["default"].read_gate(entries_of["default"].query("P001")))
        assert name_of(site.find()) == name
    assert len(gates) == 3


@pytest.mark.parametrize("skew", [-120.0, 120.0])
def test_cachalot_27_clocks_that_differ_do_not_bring_old_data_back(
    site: Site, monkeypatch: pytest.MonkeyPatch, skew: float
) -> None:
    """A host whose clock is two minutes off forgets and stops as well as any other."""
    site.say(found(name="Old"))
    right = clock.wall
    site.find()
    site.say(found(name="New"))
    monkeypatch.setattr(clock, "wall", lambda: right() + skew)
    services.invalidate_item("P001")
    monkeypatch.setattr(clock, "wall", right)
    assert name_of(site.find()) == "New"
    monkeypatch.setattr(clock, "wall", lambda: right() + skew)
    services.stop_item("P001")
    assert site.find().is_stopped
    monkeypatch.setattr(clock, "wall", right)
    assert site.find().is_stopped


def test_fusioncache_648_a_stale_entry_does_not_survive_an_invalidation(site: Site, moving: MovableClock) -> None:
    """Nor a stop, nor a release: nothing that was kept before is shown when the sources fail."""
    site.configure(STALE_IF_ERROR=3600)
    site.say(found())
    site.find()
    moving.move(61)
    site.say(wire.reply(503), wire.reply(503))
    assert site.find().is_stale
    services.stop_item("P001")
    assert site.find().is_stopped
    services.release_item("P001")
    assert site.find().is_unavailable


# ------------------------------------------------------------------------------------------------ what it costs


@pytest.mark.parametrize("backend", ["django-redis", "django's redis"])
def test_django_redis_609_an_invalidation_costs_the_same_in_a_full_cache(
    site: Site, valkey: servers.Valkey, backend: str
) -> None:
    """A few commands whatever the cache holds, and never one that walks through the keys or empties it."""
    redis = pytest.importorskip("redis")
    pytest.importorskip(BACKENDS[backend].split(".")[0])
    site.cache_in(BACKENDS[backend], LOCATION=valkey.url)
    site.say(found())
    with redis.Redis.from_url(valkey.url) as client:
        costs = []
        for filling in (10, 2000):
            client.mset({f":1:other:{number}": "x" for number in range(filling)})
            for language in ("", "de", "fr"):
                site.find(language=language)
            costs.append((_commands_of(client, services.invalidate_item), _commands_of(client, services.stop_item)))
            services.release_item("P001")
    assert costs[0] == costs[1]
    for commands in costs[0]:
        assert not commands.keys() & {"scan", "keys", "flushdb", "flushall", "del", "unlink", "eval", "sort"}
        assert sum(commands.values()) <= 8, commands


def _commands_of(client: Any, verb: Callable[[str], Any]) -> dict[str, int]:
    """How often each command ran meanwhile, as the server counts."""
    client.config_resetstat()
    verb("P001")
    counts = {name.removeprefix("cmdstat_"): each["calls"] for name, each in client.info("commandstats").items()}
    return {name: count for name, count in counts.items() if not name.startswith(("config", "client", "hello", "info"))}
