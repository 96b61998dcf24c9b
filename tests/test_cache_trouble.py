"""What does a broken, silent or hanging cache or database cost a lookup? Bounded time, never the answer; and nothing
that must not be lost is swallowed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models import QuerySet

from catalog_fallback import clock, conf, services
from catalog_fallback.cache import entries_of
from catalog_fallback.cache_trouble import Trouble
from catalog_fallback.conf import PerAlias, registry
from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.models import StoppedItem
from catalog_fallback.results import NoReply
from catalog_fallback.store import Store
from tests import loopback as wire
from tests import servers, stores
from tests.scripted import PATH, Programmed
from tests.sites import ALSO_FOUND, FOUND, NOT_FOUND, TEMPORARY, MovableClock, Site, words

TIMEOUT = 5.0  # seconds that an operation on the hanging cache costs, by the movable clock
PAUSE = 5.0
EVERYTHING = frozenset({"get", "get_many", "add", "set", "set_many", "touch", "delete"})


class Slow:
    """Operations that cost TIMEOUT seconds of the movable clock; then they raise, or answer if told so."""

    def __init__(self, moving: MovableClock, names: frozenset[str] = EVERYTHING, *, answers: bool = False) -> None:
        self.moving = moving
        self.names = names
        self.answers = answers
        self.count = 0

    def __call__(self, name: str, keys: tuple[str, ...], effect: stores.Effect) -> Any:
        if name not in self.names:
            return effect()
        self.count += 1
        self.moving.move(TIMEOUT)
        if not self.answers:
            raise TimeoutError("timed out")
        return effect()


@pytest.fixture
def shelf(site: Site) -> stores.Shelf:
    """The content of the site's cache, which the test may break."""
    site.cache_in("tests.stores.MemoryCache", LOCATION=f"trouble-{id(site)}")
    site.configure(BUDGET=30)
    site.say(FOUND, ALSO_FOUND)
    shelf = stores.shelf(f"trouble-{id(site)}")
    shelf.__init__()  # type: ignore[misc]  # another test's site may have had this address
    return shelf


# --- lookups work ---------------------------------------------------------------------------------------------------

BROKEN = ["RaisingCache", "TimingOutCache", "SilentCache", "LossyCache", "MuteCache"]


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("stop_check", ["cache", "database"])
def test_g5_lookups_answer_without_a_cache(site: Site, name: str, stop_check: str) -> None:
    """Found, not found, unavailable and stopped are what they are; only the calls become more."""
    site.cache_in(f"tests.stores.{name}")
    site.configure(STOP_CHECK=stop_check, NEGATIVE_TTL=30, STALE_IF_ERROR=30)
    site.say(FOUND)
    for _ in range(5):
        assert words(site.find()) == ("found", "ok")
    site.say(NOT_FOUND)
    assert words(site.find("P002")) == ("not_found", "all_not_found")
    site.say(TEMPORARY)
    assert words(site.find("P003")) == ("unavailable", "incomplete_search")
    QuerySet(StoppedItem).bulk_create([StoppedItem(catalog="default", item_id="P004")])  # nothing is published
    assert words(site.find("P004")) == ("stopped", "stopped")


def test_a_dummy_cache_is_no_trouble(site: Site) -> None:
    """It keeps nothing, so an invalidation has nothing to do and a stop only the database."""
    site.cache_in("django.core.cache.backends.dummy.DummyCache")
    site.say(FOUND)
    assert [site.find().cache for _ in range(2)] == ["miss", "miss"]
    assert services.invalidate_item("P001") == 1
    assert services.stop_item("P001") == 1
    assert site.find().is_stopped


def test_django_redis_314_hidden_errors_are_no_answers(site: Site) -> None:
    """``None`` from ``add`` means "down", not "somebody else holds it": nobody waits for anybody (E3)."""
    site.cache_in("tests.stores.SilentCache")
    site.say(FOUND)
    started = time.monotonic()
    assert site.find(budget=5).is_found
    assert time.monotonic() - started < 2


# --- one time-out a lookup, then a pause ----------------------------------------------------------------------------


def test_e2_a_hanging_cache_costs_one_time_out(site: Site, shelf: stores.Shelf, moving: MovableClock) -> None:
    """One for the first lookup; none for those of the next five seconds."""
    shelf.fault = slow = Slow(moving)
    assert site.find().is_found
    assert (slow.count, moving.ahead) == (1, TIMEOUT)
    for _ in range(10):
        assert site.find().is_found
    assert (slow.count, moving.ahead) == (1, TIMEOUT)
    assert site.calls[0] == 11


@pytest.mark.parametrize("name", ["get_many", "add", "set", "touch"])
@pytest.mark.parametrize("answers", [False, True], ids=["raises", "answers late"])
def test_e5_each_operation_may_hang(
    site: Site, shelf: stores.Shelf, moving: MovableClock, name: str, answers: bool
) -> None:
    """Raised or only slow: it costs one time-out, and counts (FusionCache 534, 442, 414)."""
    site.configure(BUDGET=30, TTL=1000)
    shelf.fault = slow = Slow(moving, frozenset({name}), answers=answers)
    assert site.find().is_found
    assert (slow.count, moving.ahead) == (1, TIMEOUT)
    assert entries_of["default"].store.is_paused
    seen = len(shelf.log)
    site.find("P002")
    assert len(shelf.log) == seen


def test_e5_a_hanging_delete(site: Site, shelf: stores.Shelf, moving: MovableClock) -> None:
    """The removal of an entry that is no longer true costs no more."""
    site.find()
    site.say(wire.ok({"item": {"id": "P001", "name": "Tea"}}, {"Cache-Control": "no-store"}))
    shelf.fault = slow = Slow(moving, frozenset({"delete"}))
    assert site.find(refresh=True).is_found
    assert (slow.count, moving.ahead) == (1, TIMEOUT)


def test_h8_the_time_counts_into_the_budget(site: Site, shelf: stores.Shelf, moving: MovableClock) -> None:
    """What the cache used up is no longer there for the sources."""
    site.configure(BUDGET=TIMEOUT - 1)
    shelf.fault = Slow(moving)
    assert words(site.find()) == ("unavailable", "deadline")
    assert site.calls == (0, 0)
    assert site.find().is_found


def test_h55_cache_and_source_hang(
    site: Site, shelf: stores.Shelf, moving: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One outage is not paid twice: both together stay within the budget (wpull 211)."""

    def hang(timeout: float) -> NoReply:
        moving.move(timeout)
        return NoReply("timeout")

    monkeypatch.setattr(Programmed, "program", staticmethod(hang))
    programmed = {"BACKEND": PATH + "Programmed", "TIMEOUT": 20}
    site.configure(programmed, programmed, BUDGET=5.0)
    shelf.fault = Slow(moving)
    assert words(site.find()) == ("unavailable", "deadline")
    assert moving.ahead <= 5.05


def test_h55_for_real(site: Site, shelf: stores.Shelf) -> None:
    """The same with real seconds: a cache whose socket times out, and servers that say nothing."""

    def time_out(name: str, keys: tuple[str, ...], effect: stores.Effect) -> Any:
        threading.Event().wait(0.15)
        raise TimeoutError("timed out")

    site.configure({"TIMEOUT": 20}, {"TIMEOUT": 20}, BUDGET=0.3)
    site.say(wire.silence, wire.silence)
    shelf.fault = time_out
    least = 1.0
    for _ in range(4):
        conf.forget()  # as if the process had just begun: nobody knows that the cache hangs
        started = time.monotonic()
        assert site.find().is_unavailable
        least = min(least, time.monotonic() - started)
        if least <= 0.35:
            break
    assert 0.3 <= least <= 0.35


def test_h32_a_cache_that_hangs_until_the_test_lets_go(site: Site, shelf: stores.Shelf) -> None:
    """TimeoutError is no ConnectionError; both are understood (django-redis 86, cacheops 122)."""
    shelf.fault = hanging = stores.Hanging()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(find_and_close, site)
        assert hanging.entered.wait(10)
        assert site.calls == (0, 0)
        hanging.let_go.set()
        assert future.result(10).is_found
    assert entries_of["default"].store.is_paused


def find_and_close(site: Site) -> Any:
    """A lookup in a thread of its own, which leaves no connection behind."""
    try:
        return site.find()
    finally:
        connection.close()


# --- other errors ---------------------------------------------------------------------------------------------------


def test_three_errors_in_a_row_begin_a_pause(site: Site, shelf: stores.Shelf, moving: MovableClock) -> None:
    """Cheap errors are tried a few times more, within a lookup or over several."""
    shelf.fault = stores.raising(ConnectionError("refused"))
    site.find()
    site.find()
    assert len(shelf.log) == 3
    assert entries_of["default"].store.is_paused


def test_an_error_now_and_then_begins_none(site: Site, shelf: stores.Shelf) -> None:
    """In a row means: a success between them clears the count."""
    site.find()
    for _ in range(5):
        shelf.fault = stores.raising(OSError("odd"))
        entries_of["default"].read_gate(entries_of["default"].query("P001"))
        shelf.fault = None
        assert site.find().cache == "hit"
    assert not entries_of["default"].store.is_paused


def test_what_was_under_way_before_the_trouble_does_not_end_the_pause(moving: MovableClock) -> None:
    """It says how things were; only what began afterwards says how they are."""
    trouble, before = Trouble("default"), clock.monotonic()
    moving.move(1)
    trouble.failed(TimeoutError("timed out"), before)
    assert trouble.is_paused
    trouble.answered(before)
    assert trouble.is_paused
    moving.move(PAUSE + 0.1)
    assert trouble.may_try(clock.monotonic())
    trouble.answered(before)
    assert trouble.is_there
    trouble.answered(clock.monotonic())
    assert not trouble.is_there


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_forked_child_finds_the_locks_free() -> None:
    """Whatever a thread of its parent's was in: nobody would ever let go of them there."""
    trouble, held, go = Trouble("default"), threading.Event(), threading.Event()

    def hold() -> None:
        with trouble._lock.own, registry._lock:
            held.set()
            go.wait(20)

    holding = threading.Thread(target=hold)
    holding.start()
    assert held.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        trouble.failed(TimeoutError("timed out"), clock.monotonic())
        PerAlias(str)["default"]
        os._exit(0)
    _, status = os.waitpid(child, 0)
    go.set()
    holding.join(20)
    assert status == 0


def test_the_log_says_it_once(
    site: Site, shelf: stores.Shelf, moving: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    """One line when the pause begins, one when the cache answers again."""
    caplog.set_level("INFO", "catalog_fallback")
    shelf.fault = Slow(moving)
    for _ in range(3):
        site.find()
        moving.move(PAUSE)
    shelf.fault = None
    site.find()
    site.find()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["Cache 'default' is left alone for 5.0 s after TimeoutError.", "Cache 'default' answers again."]


# --- and back again -------------------------------------------------------------------------------------------------


def test_e11_the_cache_is_used_again_without_a_restart(site: Site, shelf: stores.Shelf, moving: MovableClock) -> None:
    """After the pause the next lookup tries, and all is as before (LMCache 4368)."""
    site.find()
    shelf.fault = Slow(moving, frozenset({"get_many"}))
    assert site.find().cache == "miss"
    shelf.fault = None
    moving.move(PAUSE - 2)
    assert site.find().cache == "miss"
    moving.move(2.1)
    assert site.find().cache == "hit"
    assert not entries_of["default"].store.is_paused


def test_a_cache_that_still_hangs_costs_one_time_out_a_pause(
    site: Site, shelf: stores.Shelf, moving: MovableClock
) -> None:
    """Twenty lookups a second for a minute: one time-out every five seconds, not one a lookup."""
    shelf.fault = slow = Slow(moving)
    lookups = 0
    while moving.ahead < 60:
        assert site.find().is_found
        moving.move(0.25)
        lookups += 1
    assert lookups > 100
    assert slow.count <= 60 / (TIMEOUT + PAUSE) + 1


def test_no_herd_when_the_pause_ends(site: Site, shelf: stores.Shelf, moving: MovableClock) -> None:
    """One thread tries, and the others go on without the cache while it does."""
    shelf.fault = Slow(moving)
    site.find()
    moving.move(PAUSE)
    hanging = stores.Hanging()
    seen = len(shelf.log)
    shelf.fault = hanging
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(find_and_close, site) for _ in range(8)]
        assert hanging.entered.wait(10)
        for _ in range(1000):
            done = [future for future in futures if future.done()]
            if len(done) == 7:
                break
            threading.Event().wait(0.01)
        assert len(done) == 7
        assert len(shelf.log) == seen + 1
        hanging.let_go.set()
        assert all(future.result(10).is_found for future in futures)
    assert len(shelf.log) == seen + 1


def test_two_catalogs_pay_once_for_one_cache(
    site: Site, shelf: stores.Shelf, moving: MovableClock, settings: Any
) -> None:
    """What the process knows of a cache, all of its catalogs know."""
    one = settings.CATALOG_FALLBACK["default"]
    settings.CATALOG_FALLBACK = {"default": one, "other": one}
    shelf.fault = slow = Slow(moving)
    assert site.find().is_found
    assert site.find(catalog="other").is_found
    assert slow.count == 1


# --- a real server --------------------------------------------------------------------------------------------------

FAST = {"socket_timeout": 0.2, "socket_connect_timeout": 0.2}
HIDDEN = {"SOCKET_TIMEOUT": 0.25, "SOCKET_CONNECT_TIMEOUT": 0.25, "IGNORE_EXCEPTIONS": True}
REDIS: dict[str, dict[str, Any]] = {
    "django_redis.cache.RedisCache": {"OPTIONS": {"SOCKET_TIMEOUT": 0.2, "SOCKET_CONNECT_TIMEOUT": 0.2}},
    "django_redis.cache.RedisCache, errors hidden": {
        "OPTIONS": {"SOCKET_TIMEOUT": 0.2, "SOCKET_CONNECT_TIMEOUT": 0.2, "IGNORE_EXCEPTIONS": True}
    },
    "django_redis.cache.RedisCache, errors hidden, herd client": {
        "OPTIONS": {**HIDDEN, "CLIENT_CLASS": "django_redis.client.HerdClient"}
    },
    "django.core.cache.backends.redis.RedisCache": {"OPTIONS": {**FAST, "retry": None}},
}


@pytest.fixture(params=list(REDIS))
def on_redis(site: Site, valkey: servers.Valkey, request: pytest.FixtureRequest) -> servers.Valkey:
    """A site on a Valkey of its own, with an entry in the cache."""
    pytest.importorskip("django_redis" if request.param.startswith("django_redis") else "redis")
    site.cache_in(request.param.partition(",")[0], LOCATION=valkey.url, **REDIS[request.param])
    site.say(FOUND)
    assert [site.find().cache for _ in range(2)] == ["miss", "hit"]
    return valkey


def seconds(look_up: Callable[[], Any]) -> float:
    """How long a lookup takes that has to find its item."""
    started = time.monotonic()
    assert look_up().is_found
    return time.monotonic() - started


def test_e2_e5_e11_a_frozen_redis(site: Site, on_redis: servers.Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts and never answers: one time-out, then none; thawed, it is used again after the pause."""
    on_redis.process.send_signal(signal.SIGSTOP)
    try:
        assert seconds(site.find) < 1.5  # one time-out, perhaps with a reconnect; not one for each operation
        assert min(seconds(site.find) for _ in range(5)) < 0.15
    finally:
        on_redis.process.send_signal(signal.SIGCONT)
    MovableClock(monkeypatch).move(PAUSE + 1)
    assert [site.find().cache for _ in range(2)] == ["hit", "hit"]


def test_one_hidden_time_out_is_enough(site: Site, valkey: servers.Valkey) -> None:
    """To whoever asks django-redis' cache, a read that ran into the socket's limit looks like a miss."""
    pytest.importorskip("django_redis")
    options = {**HIDDEN, "CLIENT_CLASS": "django_redis.client.HerdClient"}
    site.cache_in("django_redis.cache.RedisCache", LOCATION=valkey.url, OPTIONS=options)
    store = Store("default")
    store.set("key", "value", 60)
    assert store.get_many(("key", "other")) == {"key": "value"}
    assert store.incr("number", 1, 60) is None
    servers.freeze(valkey.process)
    assert store.get_many(("key", "other")) == {}
    assert store.is_paused


def test_a_killed_redis(site: Site, on_redis: servers.Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses: cheap. Started again, empty, it is filled again; and what was stopped stays stopped."""
    services.stop_item("P002")
    on_redis.kill()
    assert min(seconds(site.find) for _ in range(5)) < 0.15
    assert site.find("P002").is_stopped
    on_redis.start()
    MovableClock(monkeypatch).move(PAUSE + 1)
    assert [site.find().cache for _ in range(3)][1:] == ["hit", "hit"]
    assert site.find("P002").is_stopped


# --- what must not be swallowed -------------------------------------------------------------------------------------

FORGETTERS: dict[str, Callable[[], Any]] = {
    "invalidate": lambda: services.invalidate_item("P001"),
    "stop": lambda: services.stop_item("P001"),
    "release": lambda: services.release_item("P001"),
}


@pytest.mark.parametrize("verb", FORGETTERS)
@pytest.mark.parametrize("name", ["RaisingCache", "TimingOutCache", "SilentCache", "LossyCache"])
def test_d13_a_failed_invalidation_is_raised(site: Site, moving: MovableClock, name: str, verb: str) -> None:
    """Unlike reads: the caller sees it, after about a second of tries (cacheops 392)."""
    site.cache_in(f"tests.stores.{name}")
    with pytest.raises(InvalidationFailed, match="did not confirm"):
        FORGETTERS[verb]()
    assert 0.9 <= moving.ahead <= 1.5


def test_d13_the_row_of_a_stop_stays(site: Site, shelf: stores.Shelf, moving: MovableClock) -> None:
    """Not confirmed, but written: it holds where the database is asked, and the next publish takes it along."""
    shelf.fault = stores.raising(ConnectionError("down"))
    with pytest.raises(InvalidationFailed):
        services.stop_item("P001")
    row = StoppedItem.objects.get()
    assert (row.is_active, row.published_at) == (True, None)
    shelf.fault = None
    moving.move(PAUSE)
    services.invalidate_item("P002")
    row.refresh_from_db()
    assert row.published_at is not None


def test_an_invalidation_ignores_the_pause(site: Site, shelf: stores.Shelf, moving: MovableClock) -> None:
    """Reads leave the cache alone; whoever has to be sure tries nevertheless."""
    site.find()
    shelf.fault = Slow(moving, frozenset({"get_many"}))
    site.find()
    shelf.fault = None
    assert entries_of["default"].store.is_paused
    assert services.invalidate_item("P001") == 1
    moving.move(PAUSE)
    assert site.find().cache == "miss"


def test_a_publish_to_a_hanging_cache_ends(site: Site, shelf: stores.Shelf, moving: MovableClock) -> None:
    """Retries last for about a second: a cache that needs three for each operation gets one or two tries."""
    shelf.fault = slow = Slow(moving)
    with pytest.raises(InvalidationFailed):
        services.invalidate_item("P001")
    assert slow.count <= 2


# --- the database ---------------------------------------------------------------------------------------------------


@contextmanager
def broken_database() -> Iterator[None]:
    """Every query of this thread fails."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError("server closed the connection unexpectedly")

    with connection.execute_wrapper(fail):
        yield


def test_without_the_stop_list_nothing_is_fetched(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """It could be stopped: so nobody is asked, and nothing is shown or kept."""
    site.say(FOUND, ALSO_FOUND)
    with broken_database():
        lookup = site.find()
    assert (words(lookup), lookup.trace, site.calls) == (("unavailable", "stop_list_unavailable"), (), (0, 0))
    assert "OperationalError" in caplog.text
    assert site.find().cache == "miss"


def test_without_the_stop_list_there_is_no_stale_entry(site: Site, moving: MovableClock) -> None:
    """An expired entry is no better than a source."""
    site.configure(STALE_IF_ERROR=300)
    site.say(FOUND)
    site.find()
    moving.move(61)
    site.say(TEMPORARY, TEMPORARY)
    with broken_database():
        assert words(site.find()) == ("unavailable", "stop_list_unavailable")
    assert site.find().is_stale


@pytest.mark.parametrize(
    ("stop_check", "expected"),
    [("cache", ("found", "ok")), ("database", ("unavailable", "stop_list_unavailable"))],
)
def test_a_hit_needs_the_database_only_where_the_site_wants_it(
    site: Site, stop_check: str, expected: tuple[str, str]
) -> None:
    """STOP_CHECK="cache" trusts the gate."""
    site.configure(STOP_CHECK=stop_check)
    site.say(FOUND)
    site.find()
    with broken_database():
        assert words(site.find()) == expected
    assert site.find().cache == "hit"


def test_an_invalidation_that_cannot_read_the_stop_list_is_raised(site: Site) -> None:
    """The mark of the new gate would be a guess."""
    with broken_database(), pytest.raises(InvalidationFailed, match="stop list could not be read"):
        services.invalidate_item("P001")


def test_an_explanation_says_that_it_does_not_know(site: Site) -> None:
    """``is_stopped`` is None, and the rest is told."""
    with broken_database():
        explanation = services.explain_item("P001")
    assert explanation.is_stopped is None
    assert [each.source for each in explanation.sources] == ["primary", "secondary"]
