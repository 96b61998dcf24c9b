"""Does a gate that is put up together with the look at the guards obey whatever other processes did before?"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from catalog_fallback import conf, leases, operating, services
from catalog_fallback.cache import entries_of
from catalog_fallback.fallback import Chain, chain_of
from catalog_fallback.flight_table import table
from catalog_fallback.item_store import ItemStore
from catalog_fallback.resilience.circuit_breaker import CircuitBreaker
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.results import Lookup, Outcome
from catalog_fallback.sources.simulated import SimulatedSource
from tests.resilience.guards import exhaust, permit_of
from tests.sites import SIMULATED, Site, words

redis = pytest.importorskip("redis")
pytest.importorskip("django_redis")

pytestmark = pytest.mark.django_db(transaction=True)

BACKENDS = ("django_redis.cache.RedisCache", "django.core.cache.backends.redis.RedisCache")
ITEMS = {f"N{number:04}": f"Item {number}" for number in range(2_000)}
SOURCE = {"BACKEND": SIMULATED, "OPTIONS": {"items": ITEMS}, "BREAKER": {"CONSECUTIVE_FAILURES": 2, "OPEN_FOR": 60}}
#: A miss that finds the guards as they were, and one that has to read what others have changed.
AT_ONCE, ONE_BY_ONE = ["MGET", "EVALSHA", "EVALSHA"], ["MGET", "EVALSHA", "EVALSHA", "EVALSHA"]
#: A miss that looks at the guards by itself.
LOOKING = ["MGET", "MGET", "EVALSHA", "EVALSHA"]
#: One that nobody may be called for.
REFUSED = ["MGET", "EVALSHA"]

Sent = Callable[[], list[str]]


class Shop:
    """A site over Redis with one catalog, in which every lookup is a miss."""

    def __init__(self, site: Site, **caches: Any) -> None:
        self.site = site
        self._ids = iter(ITEMS)
        site._settings.CACHES = caches

    def configure(self, source: dict[str, Any] | None = None, **catalog: Any) -> None:
        """Use these settings; the scripts are loaded, and the guards were looked at."""
        sources = {"only": {**SOURCE, **(source or {})}}
        self.site._settings.CATALOG_FALLBACK = {"default": {"STOP_CHECK": "cache", "SOURCES": sources, **catalog}}
        for _ in range(2):
            assert self.find().is_found

    def find(self) -> Lookup:
        """Look the next item up."""
        self.asked = next(self._ids)
        return self.site.find(self.asked)

    def find_again(self) -> Lookup:
        """Fetch the last item anew: its gate stands."""
        return self.site.find(self.asked, refresh=True)

    def has_lease(self) -> bool:
        """Whether somebody has the lease of the last item."""
        entries = entries_of["default"]
        query = entries.query(self.asked)
        gate = entries.read_gate(query)
        return gate is not None and bool(entries.store.get_many((entries.lease_key(query, gate),)))

    def has_gate(self) -> bool:
        """Whether the last lookup left anything."""
        entries = entries_of["default"]
        return entries.read_gate(entries.query(self.asked)) is not None


@pytest.fixture(params=BACKENDS, ids=["django-redis", "django"])
def shop(request: pytest.FixtureRequest, site: Site, redis_url: str) -> Shop:
    """The shop, with another place for the guards besides."""
    redis_cache = {"BACKEND": request.param, "LOCATION": redis_url, "KEY_PREFIX": uuid.uuid4().hex}
    made = Shop(site, default=redis_cache, state={**redis_cache, "KEY_PREFIX": uuid.uuid4().hex})
    made.configure()
    return made


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """The commands that went to Redis since that was asked last."""
    names: list[str] = []
    execute: Callable[..., Any] = redis.Redis.execute_command

    def noted(self: Any, *args: Any, **options: Any) -> Any:
        names.append(args[0])
        return execute(self, *args, **options)

    monkeypatch.setattr(redis.Redis, "execute_command", noted)
    together: Callable[..., Any] = redis.client.Pipeline.execute

    def noted_together(self: Any, *args: Any, **options: Any) -> Any:
        names.append("PIPELINE")
        return together(self, *args, **options)

    monkeypatch.setattr(redis.client.Pipeline, "execute", noted_together)

    def since() -> list[str]:
        seen = names.copy()
        names.clear()
        return seen

    return since


@pytest.fixture
def other(shop: Shop) -> Iterator[Chain]:
    """The catalog in another process: the same cache, and nothing in common in memory."""
    chain = Chain(conf.catalog("default"))
    yield chain
    chain.close()


def fail(chain: Chain, times: int = 1) -> None:
    """Let calls of the only source fail."""
    for _ in range(times):
        permit_of(chain.callers[0].guard).fail()


def close_the_way(chain: Chain, kind: str) -> None:
    """Let nobody call the only source any more."""
    match kind:
        case "open":
            fail(chain, 2)
        case "cooling_down":
            exhaust(chain.callers[0].guard, kind)
        case "isolated":
            operating.isolate_source("default", "only")


# --- one round trip -------------------------------------------------------------------------------------------------


def test_a_miss_takes_three_commands(shop: Shop, sent: Sent) -> None:
    """Reading; looking at the guards and putting up gate and lease; keeping."""
    sent()
    assert shop.find().is_found
    assert (sent(), shop.has_gate()) == (AT_ONCE, True)


def test_a_miss_under_a_gate_that_stands_takes_three_commands_too(shop: Shop, sent: Sent) -> None:
    """Reading; looking at the guards, taking the lease and reading again; keeping."""
    shop.find_again()
    sent()
    lookup = shop.find_again()
    assert (lookup.is_found, lookup.cache) == (True, "miss")
    assert (sent(), shop.has_lease()) == (AT_ONCE, False)


def _key_and_gate(shop: Shop) -> tuple[str, str, str]:
    """The keys of the last item's lease and entry, and its gate."""
    entries = entries_of["default"]
    query = entries.query(shop.asked)
    gate = entries.read_gate(query)
    assert gate is not None
    return entries.lease_key(query, gate), query.entry_key, gate


def test_a_lease_of_another_process_is_seen_by_the_way(shop: Shop, sent: Sent) -> None:
    """It is not asked for once more: the next step is to watch whoever has it."""
    shop.find_again()
    lease_key, _, _ = _key_and_gate(shop)
    entries_of["default"].store.add(lease_key, "elsewhere", 60)
    sent()
    lookup = shop.site.find(shop.asked, refresh=True, budget=0.05)
    assert words(lookup) == ("unavailable", "deadline")
    assert sent()[:3] == ["MGET", "EVALSHA", "MGET"]
    assert entries_of["default"].store.get_many((lease_key,)) == {lease_key: "elsewhere"}


def test_a_lease_that_another_process_has_lost_is_taken_over(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waited for it fetches under a lease of his own, and not before the other one's is gone."""
    shop.find_again()
    lease_key, _, _ = _key_and_gate(shop)
    store = entries_of["default"].store
    store.add(lease_key, "elsewhere", 60)
    look, owners = leases.watch_many, []

    def killed(*arguments: Any) -> Any:
        store.delete(lease_key)
        return look(*arguments)

    fetch = SimulatedSource.fetch

    def fetched(*arguments: Any, **options: Any) -> Any:
        owners.append(store.get_many((lease_key,)).get(lease_key))
        return fetch(*arguments, **options)

    monkeypatch.setattr(leases, "watch_many", killed)
    monkeypatch.setattr(SimulatedSource, "fetch", fetched)
    assert shop.find_again().is_found
    assert len(owners) == 1
    assert owners[0] not in {None, "elsewhere"}


def test_a_gate_that_changes_as_the_lease_is_taken_means_a_new_flight(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others can join the one that fetches, by the name of the new gate."""
    shop.find_again()
    take, fetch, seen = ItemStore.take_lease, SimulatedSource.fetch, []

    def late(*arguments: Any) -> Any:
        if not seen:
            seen.append(services.invalidate_item(shop.asked))
        return take(*arguments)

    def fetched(*arguments: Any, **options: Any) -> Any:
        _, entry_key, gate = _key_and_gate(shop)
        seen.append(table.find((entry_key, gate)) is not None)
        return fetch(*arguments, **options)

    monkeypatch.setattr(ItemStore, "take_lease", late)
    monkeypatch.setattr(SimulatedSource, "fetch", fetched)
    assert shop.find_again().is_found
    assert seen == [1, True]
    assert len(table) == 0


def test_what_has_changed_costs_one_more(shop: Shop, sent: Sent, other: Chain) -> None:
    """A failure elsewhere opens nothing yet: the call is made, and what was seen is what is expected next."""
    fail(other)
    sent()
    assert shop.find().is_found
    assert sent() == [*ONE_BY_ONE[:-1], "DEL", ONE_BY_ONE[-1]]
    shop.find()  # the failures in a row have been cleared, which is new again
    sent()
    assert shop.find().is_found
    assert sent() == AT_ONCE


@pytest.mark.parametrize("kind", ["open", "cooling_down", "isolated"])
def test_nothing_is_written_when_another_process_has_closed_the_way(
    shop: Shop, sent: Sent, other: Chain, kind: str
) -> None:
    """Nobody may be called, whatever was seen last: no gate, no lease, no record."""
    close_the_way(other, kind)
    sent()
    lookup = shop.find()
    assert lookup.state == "unavailable"
    assert [attempt.called for attempt in lookup.trace] == [False]
    assert not shop.has_gate()
    shop.find()
    sent()
    shop.find()
    assert sent() == REFUSED


@pytest.mark.parametrize("kind", ["open", "cooling_down", "isolated"])
def test_no_lease_is_taken_when_another_process_has_closed_the_way(shop: Shop, other: Chain, kind: str) -> None:
    """Nor under a gate that stands; the entry stays, and whoever waits for this lookup is told."""
    shop.find_again()
    close_the_way(other, kind)
    lookup = shop.find_again()
    assert [attempt.called for attempt in lookup.trace] == [False]
    assert not shop.has_lease()
    assert shop.site.find(shop.asked).cache == "hit"


def test_the_way_is_open_again_when_another_process_has_opened_it(shop: Shop, other: Chain) -> None:
    """Restored, closed and forgotten: each is seen by the next lookup."""
    operating.isolate_source("default", "only")
    assert not shop.find().is_found
    operating.restore_source("default", "only")
    assert shop.find().is_found
    fail(other, 2)
    assert not shop.find().is_found
    other.callers[0].guard.reset()
    assert shop.find().is_found


def test_a_rate_limit_is_kept(shop: Shop) -> None:
    """Its counters change with each call, so that they are looked at each time."""
    shop.configure({"RATE_LIMIT": {"CALLS": 4, "PER": 3600}})
    assert [shop.find().state for _ in range(3)] == ["found", "found", "unavailable"]
    assert not shop.has_gate()


def test_guards_in_another_cache_are_looked_at_there(shop: Shop, sent: Sent) -> None:
    """One server cannot see to what another one has."""
    shop.configure(STATE_CACHE="state")
    sent()
    assert shop.find().is_found
    assert sent() == LOOKING
    assert chain_of["default"].expect(entries_of["default"].store) is None


def test_copies_that_are_missing_are_not_expected(shop: Shop, sent: Sent) -> None:
    """Where they cannot be written, the database is asked each time."""
    chain = chain_of["default"]
    keys = chain.isolation.keys
    for key in keys:
        entries_of["default"].store.delete(key)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("catalog_fallback.store.Store.add", lambda *arguments: None)
        for _ in range(3):
            sent()
            assert shop.find().is_found
            assert sent() == ONE_BY_ONE
    shop.find()
    shop.find()
    sent()
    assert shop.find().is_found
    assert sent() == AT_ONCE


def test_garbage_among_the_guards_is_left_to_an_ordinary_look(shop: Shop, sent: Sent) -> None:
    """It is as good as missing there."""
    server, made = _server_and_key(chain_of["default"].isolation.keys[0])
    server.set(made, b"\xc1\x80\x05junk", ex=60)
    sent()
    assert shop.find().is_found
    assert sent()[:3] == ["MGET", "EVALSHA", "MGET"]
    server.delete(made)
    shop.find()
    shop.find()
    sent()
    assert shop.find().is_found
    assert sent() == AT_ONCE


def _server_and_key(key: str) -> tuple[Any, str]:
    """A client of its own, and the key as the server has it."""
    cache: Any = entries_of["default"].store.backend
    if hasattr(cache, "client"):
        return cache.client.get_client(), str(cache.client.make_key(key))
    return cache._cache.get_client(None), cache.make_key(key)


def test_a_reply_that_was_lost_says_nothing_about_the_guards(
    shop: Shop, other: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are looked at before anything else is done, and the call that they forbid is not made."""
    execute: Callable[..., Any] = redis.Redis.execute_command
    lost: list[str] = []

    def lose(self: Any, *args: Any, **options: Any) -> Any:
        answer = execute(self, *args, **options)
        if args[0] == "EVALSHA" and not lost:
            lost.append(args[0])
            raise redis.ConnectionError("closed by the server")
        return answer

    fail(other, 2)
    monkeypatch.setattr(redis.Redis, "execute_command", lose)
    assert words(shop.find()) == ("unavailable", "incomplete_search")
    assert (lost, shop.has_gate()) == (["EVALSHA"], False)


def test_what_led_to_other_keys_is_not_what_is_expected(shop: Shop, other: Chain) -> None:
    """Keys that were read later are not among those that are compared, whatever a process remembers of them."""
    fail(other, 2)
    with mock.patch.object(CircuitBreaker, "remember"):
        assert [shop.find().is_found for _ in range(3)] == [False] * 3
    assert not shop.has_gate()


# --- as without it --------------------------------------------------------------------------------------------------

#: What another process may do between two lookups.
DEEDS: dict[str, Callable[[Chain], object]] = {
    "nothing": lambda _: None,
    "a failure": fail,
    "two failures": lambda chain: [_try(chain, fails=True) for _ in range(2)],
    "a success": lambda chain: _try(chain, fails=False),
    "a cool-down": lambda chain: _patterns(chain).cool_down.start(60, Outcome.STOP),
    "a reset": lambda chain: chain.callers[0].guard.reset(),
    "its time is over": lambda chain: _forget(chain, ":open:"),
    "the cool-down is over": lambda chain: _forget(chain, ":on:"),
    "everything is lost": lambda chain: _forget(chain, ""),
    "isolated": lambda _: operating.isolate_source("default", "only"),
    "restored": lambda _: operating.restore_source("default", "only"),
}
DEEDS["a failure"] = lambda chain: _try(chain, fails=True)


def _patterns(chain: Chain) -> Any:
    return chain.callers[0].guard.patterns(chain.stores.shared)


def _try(chain: Chain, *, fails: bool) -> None:
    """One call, if it may be made."""
    permit = chain.callers[0].guard.take()
    if isinstance(permit, Permit):
        (permit.fail if fails else permit.succeed)()


def _forget(chain: Chain, part: str) -> None:
    """Let the keys of the guards go that have this in their name."""
    view = chain.look().view
    for key in view.found:
        if part in key:
            chain.stores.shared.delete(key)


@given(deeds=st.lists(st.lists(st.sampled_from(sorted(DEEDS)), max_size=3), min_size=1, max_size=8))
@hypothesis_settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], print_blob=True
)
def test_it_decides_as_a_look_of_its_own(shop: Shop, deeds: list[list[str]]) -> None:
    """Whatever others do: somebody is called, and a gate is put up, just when a fresh pair of eyes would allow it."""
    operating.restore_source("default", "only")
    shop.site._settings.CACHES = {
        alias: {**cache, "KEY_PREFIX": uuid.uuid4().hex} for alias, cache in shop.site._settings.CACHES.items()
    }
    shop._ids = iter(ITEMS)
    other = Chain(conf.catalog("default"))
    shop.find()
    for each in deeds:
        for deed in each:
            DEEDS[deed](other)
        fresh = Chain(conf.catalog("default"))
        may_call = fresh.refused(fresh.look()) is None
        again = shop.find_again()
        assert (again.is_found, shop.has_lease()) == (may_call, False), (each, again)
        lookup = shop.find()
        assert (lookup.is_found, shop.has_gate()) == (may_call, may_call), (each, lookup)
        fresh.close()
