"""Do the scripts do what the plain operations do, and does everything work where a server runs none?"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from django.core.cache import BaseCache, caches

from catalog_fallback import clock, leases, services
from catalog_fallback.boarding import Boarding, board
from catalog_fallback.cache import EntryCache, entries_of
from catalog_fallback.entry_form import new_token
from catalog_fallback.filling import Fill
from catalog_fallback.item_store import ItemStore
from catalog_fallback.leases import Lease
from catalog_fallback.queries import Query
from catalog_fallback.redis_scripts import Precondition, Unmet
from catalog_fallback.resilience.time_budget import Deadline
from tests import servers
from tests.sites import Site, found

redis = pytest.importorskip("redis")
pytest.importorskip("django_redis")

DJANGO_REDIS = "django_redis.cache.RedisCache"
#: Name → backend and options.
BACKENDS: dict[str, tuple[str, dict[str, Any]]] = {
    "django": ("django.core.cache.backends.redis.RedisCache", {}),
    "django-redis pickle": (DJANGO_REDIS, {}),
    "django-redis json": (DJANGO_REDIS, {"SERIALIZER": "django_redis.serializers.json.JSONSerializer"}),
    "django-redis zlib": (DJANGO_REDIS, {"COMPRESSOR": "django_redis.compressors.zlib.ZlibCompressor"}),
}
TOKEN, THEIRS = "o" + "a" * 32, "o" + "b" * 32
GATE, LEASE = ("gate", TOKEN, 300.0), ("lease", "me", 30.0)
ENTRY = ("entry", ["name", TOKEN, {"id": "P001"}], 60.0)

Opened = tuple[ItemStore, BaseCache]


@pytest.fixture(params=BACKENDS)
def opened(request: pytest.FixtureRequest, settings: Any, redis_url: str) -> Opened:
    """A store and its cache, empty, over each backend."""
    backend, options = BACKENDS[request.param]
    settings.CACHES = {
        "default": {"BACKEND": backend, "LOCATION": redis_url, "OPTIONS": options, "KEY_PREFIX": uuid.uuid4().hex[:8]}
    }
    store = ItemStore("default")
    store.get_pair("gate", "entry")
    assert store.runs_scripts
    return store, caches["default"]


def life(cache: Any, key: str) -> int:
    """Seconds that a key has to live; -2 where there is none."""
    if hasattr(cache, "client"):
        return int(cache.client.get_client().ttl(cache.client.make_key(key)))
    return int(cache._cache.get_client(None).ttl(cache.make_key(key)))


# ------------------------------------------------------------------------------------------------ gate and lease


def test_a_new_gate_comes_with_its_lease(opened: Opened) -> None:
    """Both are there, with their own lives."""
    store, cache = opened
    assert store.put_up(GATE, LEASE, "entry") == (True, TOKEN, None)
    assert (cache.get("gate"), cache.get("lease")) == (TOKEN, "me")
    assert (299 <= life(cache, "gate") <= 300, 29 <= life(cache, "lease") <= 30) == (True, True)


def test_somebody_faster_keeps_his_gate(opened: Opened) -> None:
    """What stands there is returned, and nothing is written, no lease either."""
    store, cache = opened
    cache.set("gate", THEIRS, 100)
    cache.set("entry", ["theirs"], 100)
    assert store.put_up(GATE, LEASE, "entry") == (False, THEIRS, ["theirs"])
    assert (cache.get("gate"), cache.get("lease")) == (THEIRS, None)
    assert life(cache, "gate") <= 100


def test_a_gate_that_cannot_be_read_is_left_to_the_plain_operations(opened: Opened) -> None:
    """They know how to replace it."""
    store, cache = opened
    raw(cache, "gate", b"\xc1\x80\x05junk")
    assert store.put_up(GATE, LEASE, "entry") is None
    assert cache.get("lease") is None


# ------------------------------------------------------------------------------------------------ a precondition


@pytest.mark.parametrize("held", [{}, {"one": 1}, {"one": 1, "two": {"g": "0"}}], ids=["nothing", "a number", "both"])
def test_what_was_seen_last_is_a_precondition_that_is_met(opened: Opened, held: dict[str, Any]) -> None:
    """Asked without one, the server says what there is; with that, gate and lease are put up."""
    store, cache = opened
    cache.set_many(held, 100)
    unmet = store.put_up(GATE, LEASE, "entry", Precondition(("one", "two"), None))
    assert isinstance(unmet, Unmet)
    assert unmet.found == held
    assert cache.get_many(["gate", "lease"]) == {}
    assert store.put_up(GATE, LEASE, "entry", Precondition(("one", "two"), unmet.values)) == (True, TOKEN, None)
    assert cache.get_many(["gate", "lease"]) == {"gate": TOKEN, "lease": "me"}


@pytest.mark.parametrize("now", [{}, {"one": 1, "two": 2}, {"one": 3}], ids=["gone", "one more", "another value"])
def test_nothing_is_written_while_a_precondition_is_unmet(opened: Opened, now: dict[str, Any]) -> None:
    """Whatever has changed, and though somebody's gate stands there."""
    store, cache = opened
    cache.set("one", 1, 100)
    seen = store.put_up(GATE, LEASE, "entry", Precondition(("one", "two"), None))
    assert isinstance(seen, Unmet)
    cache.delete("one")
    cache.set_many({**now, "gate": THEIRS}, 100)
    unmet = store.put_up(GATE, LEASE, "entry", Precondition(("one", "two"), seen.values))
    assert isinstance(unmet, Unmet)
    assert (unmet.found, unmet.values != seen.values) == (now, True)
    assert cache.get_many(["gate", "lease"]) == {"gate": THEIRS}


def test_somebody_faster_is_seen_when_it_is_met(opened: Opened) -> None:
    """His gate and entry are returned."""
    store, cache = opened
    cache.set_many({"gate": THEIRS, "entry": ["theirs"]}, 100)
    assert store.put_up(GATE, LEASE, "entry", Precondition(("one",), (b"",))) == (False, THEIRS, ["theirs"])


def test_what_a_first_sending_has_put_up_is_ours_whatever_has_changed_since(opened: Opened) -> None:
    """A client with retries sends again what lost its reply: nobody else would ever give that lease back."""
    store, cache = opened
    precondition = Precondition(("one",), (b"",))
    assert store.put_up(GATE, LEASE, "entry", precondition) == (True, TOKEN, None)
    cache.set("one", 1, 100)
    assert store.put_up(GATE, LEASE, "entry", precondition) == (True, TOKEN, None)


def test_what_cannot_be_decoded_is_left_to_the_plain_operations(opened: Opened) -> None:
    """Among the keys of a precondition too."""
    store, cache = opened
    raw(cache, "one", b"\xc1\x80\x05junk")
    assert store.put_up(GATE, LEASE, "entry", Precondition(("one",), None)) is None
    assert cache.get("gate") is None


# ------------------------------------------------------------------------------------------------ the lease alone

MET = Precondition(("one",), (b"",))


def test_a_free_lease_is_taken_and_what_stands_is_read(opened: Opened) -> None:
    """Gate and entry come with it; nothing else is touched."""
    store, cache = opened
    cache.set_many({"gate": TOKEN, "entry": ["old"]}, 100)
    assert store.take_lease(LEASE, "gate", "entry", MET) == (True, TOKEN, ["old"])
    assert cache.get_many(["gate", "lease", "entry"]) == {"gate": TOKEN, "lease": "me", "entry": ["old"]}
    assert (29 <= life(cache, "lease") <= 30, life(cache, "gate") <= 100) == (True, True)


def test_a_lease_of_somebody_else_is_left_alone(opened: Opened) -> None:
    """What stands there is read all the same."""
    store, cache = opened
    cache.set_many({"gate": TOKEN, "lease": "somebody"}, 10)
    assert store.take_lease(LEASE, "gate", "entry", MET) == (False, TOKEN, None)
    assert cache.get("lease") == "somebody"
    assert life(cache, "lease") <= 10


@pytest.mark.parametrize("lease", [{}, {"lease": "somebody"}], ids=["free", "taken"])
def test_no_lease_is_taken_while_a_precondition_is_unmet(opened: Opened, lease: dict[str, str]) -> None:
    """What the keys hold is returned, and met when it is expected next time."""
    store, cache = opened
    cache.set_many({**lease, "gate": TOKEN, "one": 1}, 100)
    unmet = store.take_lease(LEASE, "gate", "entry", MET)
    assert isinstance(unmet, Unmet)
    assert unmet.found == {"one": 1}
    assert isinstance(store.take_lease(LEASE, "gate", "entry", Precondition(("one",), None)), Unmet)
    assert cache.get("lease") == lease.get("lease")
    assert store.take_lease(LEASE, "gate", "entry", Precondition(("one",), unmet.values)) == (not lease, TOKEN, None)


def test_a_lease_that_a_first_sending_has_taken_is_ours(opened: Opened) -> None:
    """Whatever has changed since."""
    store, cache = opened
    assert store.take_lease(LEASE, "gate", "entry", MET) == (True, None, None)
    cache.set_many({"one": 1, "gate": TOKEN}, 100)
    assert store.take_lease(LEASE, "gate", "entry", MET) == (True, TOKEN, None)


@pytest.mark.parametrize("key", ["one", "gate", "entry"])
def test_what_cannot_be_decoded_beside_a_lease_is_left_to_the_plain_operations(opened: Opened, key: str) -> None:
    """Wherever it stands."""
    store, cache = opened
    raw(cache, key, b"\xc1\x80\x05junk")
    expected = Precondition(("one",), None) if key == "one" else MET
    assert store.take_lease(LEASE, "gate", "entry", expected) is None


# ------------------------------------------------------------------------------------------------ gate and entry


@pytest.mark.parametrize(
    ("gate_life", "lease_key", "gate_lives", "is_deleted"),
    [(None, None, range(1, 101), False), (500.0, "lease", range(499, 501), True)],
    ids=["nothing but the entry", "with the gate's life and the lease"],
)
def test_an_entry_is_written_under_its_gate(
    opened: Opened, gate_life: float | None, lease_key: str | None, gate_lives: range, is_deleted: bool
) -> None:
    """The gate's life and the lease are touched only where that is asked for."""
    store, cache = opened
    cache.set("gate", TOKEN, 100)
    cache.set("lease", "me", 30)
    assert store.keep_under("gate", TOKEN, ENTRY, gate_life, lease_key)[0]
    assert cache.get("entry") == ENTRY[1]
    assert 59 <= life(cache, "entry") <= 60
    assert life(cache, "gate") in gate_lives
    assert (cache.get("lease") is None) is is_deleted


@pytest.mark.parametrize("gate", [THEIRS, None], ids=["another token", "no gate"])
def test_nothing_is_written_under_another_gate(opened: Opened, gate: str | None) -> None:
    """Neither entry nor lives; the lease stays for its owner to give back."""
    store, cache = opened
    if gate is not None:
        cache.set("gate", gate, 100)
    cache.set("lease", "me", 30)
    assert store.keep_under("gate", TOKEN, ENTRY, 500.0, "lease") == (False, False)
    assert (cache.get("entry"), cache.get("lease")) == (None, "me")
    assert life(cache, "gate") <= 100


def test_a_value_that_cannot_be_kept_says_nothing_about_the_gate(opened: Opened) -> None:
    """The result is for everybody who waits, as without scripts: the gate is as it was."""
    store, cache = opened
    cache.set("gate", TOKEN, 100)
    assert store.keep_under("gate", TOKEN, ("entry", lambda: None, 60.0), None, None) == (True, False)
    assert cache.get("entry") is None
    assert not store.is_in_trouble


def test_the_same_token_written_by_another_version_counts(settings: Any, redis_url: str) -> None:
    """Bytes that differ are decoded before anybody says that the gate has changed."""
    settings.CACHES = {"default": {"BACKEND": DJANGO_REDIS, "LOCATION": redis_url, "KEY_PREFIX": uuid.uuid4().hex[:8]}}
    store, cache = ItemStore("default"), caches["default"]
    raw(cache, "gate", pickle.dumps(TOKEN, protocol=2))
    assert store.get_many(("gate",)) == {"gate": TOKEN}
    assert store.keep_under("gate", TOKEN, ENTRY, 500.0, None)[0]
    assert cache.get("entry") == ENTRY[1]


def raw(cache: Any, key: str, value: bytes) -> None:
    """Write bytes past the serializer."""
    if hasattr(cache, "client"):
        cache.client.get_client().set(cache.client.make_key(key), value, ex=300)
    else:
        cache._cache.get_client(None).set(cache.make_key(key), value, ex=300)


# ------------------------------------------------------------------------------------------------ servers


def test_a_server_that_forgot_its_scripts_is_told_again(opened: Opened, redis_url: str) -> None:
    """After a restart, or a SCRIPT FLUSH, the text is sent once."""
    store, cache = opened
    with redis.Redis.from_url(redis_url) as server:
        server.script_flush()
    assert store.put_up(GATE, LEASE, "entry") == (True, TOKEN, None)
    assert store.keep_under("gate", TOKEN, ENTRY, None, None) == (True, True)
    assert cache.get("entry") == ENTRY[1]
    assert store.runs_scripts


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("backend", ["django_redis.cache.RedisCache", BACKENDS["django"][0]])
def test_a_server_that_allows_no_scripts(site: Site, valkey: servers.Valkey, backend: str) -> None:
    """The plain operations are used for good, and the cache is not taken for broken."""
    with redis.Redis.from_url(valkey.url) as server:
        server.execute_command("ACL", "SETUSER", "default", "-@scripting")
    site.cache_in(backend, LOCATION=valkey.url)
    site.say(found(name="Tea"))
    for _ in range(4):
        assert site.find(refresh=True).is_found
    store = entries_of["default"].store
    assert (store.runs_scripts, store.is_in_trouble) == (False, False)
    services.invalidate_item("P001")
    assert [site.find().cache for _ in range(2)] == ["miss", "hit"]


@pytest.mark.parametrize(
    "text",
    [
        "MISCONF Errors writing to disk",
        "BUSY Redis is busy running a script",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
    ],
)
def test_what_passes_turns_no_script_off(opened: Opened, text: str) -> None:
    """It is the cache's trouble for now, as it would be with the plain operations."""
    store, _ = opened
    with mock.patch("redis.Redis.execute_command", side_effect=redis.ResponseError(text)):
        assert store.put_up(GATE, LEASE, "entry") is None
    assert (store.runs_scripts, store.is_in_trouble) == (True, True)
    assert store.put_up(GATE, LEASE, "entry") == (True, TOKEN, None)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("precondition", [None, Precondition(("one",), (b"",))], ids=["plain", "precondition"])
def test_a_lost_reply_loses_no_lease(
    site: Site, redis_url: str, monkeypatch: pytest.MonkeyPatch, precondition: Precondition | None
) -> None:
    """The script ran, and only its answer got lost: gate and lease are found to be ours."""
    entries, query = _losing(site, redis_url, monkeypatch)
    token = new_token()
    lease = leases.put_up_gate(entries, query, token, "me", 2.0, precondition)
    assert isinstance(lease, Lease)
    assert lease.kept.gate == token
    assert leases.watch(entries, query, token).owner == lease.owner


@pytest.mark.django_db(transaction=True)
def test_a_lost_reply_loses_no_lease_under_a_gate_that_stands(
    site: Site, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found to be ours; somebody else's says nothing about the precondition, which may have been unmet."""
    entries, query = _losing(site, redis_url, monkeypatch)
    caches["default"].set(query.gate_key, TOKEN, 300)
    lease = leases.take_if_met(entries, query, TOKEN, "me", 2.0, MET)
    assert isinstance(lease, Lease)
    assert (lease.owner, lease.kept.gate, leases.watch(entries, query, TOKEN).owner) == ("me", TOKEN, "me")
    assert leases.take_if_met(entries, query, TOKEN, "somebody", 2.0, MET) is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_taken", [True, False], ids=["somebody's", "nobody's"])
def test_a_lost_reply_does_not_hide_whose_the_lease_is(
    site: Site, redis_url: str, monkeypatch: pytest.MonkeyPatch, *, is_taken: bool
) -> None:
    """Somebody's is waited for; where nobody has it, and it cannot be told who had, none is needed."""
    site.cache_in(DJANGO_REDIS, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex[:8])
    entries = entries_of["default"]
    query = entries.query("P001")
    entries.look(query)
    caches["default"].set(query.gate_key, TOKEN, 300)
    if is_taken:
        caches["default"].set(entries.lease_key(query, TOKEN), "somebody", 300)
    monkeypatch.setattr(ItemStore, "add_and_get_pair", lambda *arguments: (None, (None, None)))
    assert leases.take(entries, query, TOKEN, "me", 2.0) is not is_taken


@pytest.mark.django_db(transaction=True)
def test_a_lost_reply_does_not_say_that_a_precondition_was_met(
    site: Site, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody's gate stands there; whether the guards allow a call has to be looked at."""
    entries, query = _losing(site, redis_url, monkeypatch)
    caches["default"].set(query.gate_key, THEIRS, 300)
    assert leases.put_up_gate(entries, query, TOKEN, "me", 2.0, Precondition(("one",), (b"changed",))) is None
    assert leases.put_up_gate(entries, query, TOKEN, "me", 2.0) == THEIRS


def _losing(site: Site, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[EntryCache, Query]:
    """Use a Redis whose replies to scripts get lost; an empty cache, and a question."""
    site.cache_in(DJANGO_REDIS, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex[:8])
    entries = entries_of["default"]
    query = entries.query("P001")
    entries.look(query)
    execute: Callable[..., Any] = redis.Redis.execute_command

    def lose(self: Any, *args: Any, **options: Any) -> Any:
        answer = execute(self, *args, **options)
        if args[0] in {"EVALSHA", "EVAL"}:
            raise redis.ConnectionError("closed by the server")
        return answer

    monkeypatch.setattr(redis.Redis, "execute_command", lose)
    return entries, query


@pytest.mark.django_db(transaction=True)
def test_a_gate_that_was_replaced_after_a_lost_reply_is_the_one_that_counts(site: Site, redis_url: str) -> None:
    """The lease that was taken under the older one is of no use: whoever publishes a gate ends what began before."""
    site.cache_in(DJANGO_REDIS, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex[:8])
    entries = entries_of["default"]
    query = entries.query("P001")
    entries.look(query)
    put_up = ItemStore.put_up

    def replaced(self: ItemStore, *arguments: Any) -> None:
        put_up(self, *arguments)
        caches["default"].set(query.gate_key, THEIRS, 300)

    with mock.patch.object(ItemStore, "put_up", replaced):
        assert leases.put_up_gate(entries, query, TOKEN, "me", 2.0) == THEIRS


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("backend", [DJANGO_REDIS, BACKENDS["django"][0]], ids=["django-redis", "django"])
@pytest.mark.parametrize("taken", ["with the gate", "alone", "with a look at the guards"])
def test_nobody_waits_for_himself_when_a_command_is_sent_again(
    site: Site, redis_url: str, monkeypatch: pytest.MonkeyPatch, *, backend: str, taken: str
) -> None:
    """A client with retries sends again what lost its reply, and then finds its own lease: it is ours all the same."""
    again = {"retry": redis.retry.Retry(redis.backoff.NoBackoff(), 1)}
    options = {"CONNECTION_POOL_KWARGS": again} if backend == DJANGO_REDIS else again
    site.cache_in(backend, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex[:8], OPTIONS=options)
    site.say(found())
    entries = entries_of["default"]
    query = entries.query("P001")
    entries.look(query)
    if taken == "with a look at the guards":
        assert [site.find(refresh=True).is_found for _ in range(2)] == [True, True]
    elif taken == "alone":
        entries.open_gate(query)
    calls = site.primary.calls()
    parse: Callable[..., Any] = redis.Redis.parse_response
    lost: list[str] = []

    def lose(self: Any, connection: Any, name: str, **options: Any) -> Any:
        answer = parse(self, connection, name, **options)
        takes_the_lease = isinstance(self, redis.client.Pipeline) if taken == "alone" else name in {"EVALSHA", "EVAL"}
        if takes_the_lease and not lost:
            lost.append(name)
            raise redis.ConnectionError("closed by the server")
        return answer

    monkeypatch.setattr(redis.Redis, "parse_response", lose)
    with mock.patch("catalog_fallback.flights.judge", side_effect=AssertionError("it waits for its own lease")):
        assert site.find(refresh=True).is_found
    assert lost
    assert site.primary.calls() == calls + 1


@pytest.mark.django_db(transaction=True)
def test_a_lease_that_went_with_the_entry_is_not_deleted_again(site: Site, redis_url: str) -> None:
    """By then it may be somebody else's."""
    site.cache_in(DJANGO_REDIS, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex[:8])
    site.say(found())
    with mock.patch.object(ItemStore, "delete") as delete:
        assert site.find().is_found
    assert delete.call_args_list == []


@pytest.mark.django_db(transaction=True)
def test_whoever_sees_an_old_state_shares_nothing_under_a_new_gate(site: Site, redis_url: str) -> None:
    """Neither flight nor lease: nobody may wait for what an old view of the stop list brings."""
    site.cache_in(DJANGO_REDIS, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex[:8])
    entries = entries_of["default"]
    query = entries.query("P001")
    kept = entries.look(query)
    fill = Fill(query, entries, Deadline(clock.monotonic() + 5), is_old_view=True)
    boarding = board(fill, kept, fill.ask_guards()[0])
    assert isinstance(boarding, Boarding)
    assert (boarding.flight, boarding.lease) == (None, None)
    assert entries.read_gate(query) == boarding.gate
