"""Does what an operator does with a source hold: at once, everywhere, through flushes and restarts?"""

from __future__ import annotations

import logging
import uuid
from typing import Any

import pytest
import redis
from django.core.cache import caches
from django.db import DatabaseError, connection, transaction

from catalog_fallback import isolation, operating
from catalog_fallback.exceptions import UnknownCatalog
from catalog_fallback.fallback import chain_of
from catalog_fallback.isolation import COPY_LIFE
from catalog_fallback.models import CatalogSource
from catalog_fallback.operating import Reach, UnknownSource, isolate_source, reset_source, restore_source
from catalog_fallback.services import explain_item
from tests import stores
from tests.crew import DJANGO_REDIS, Crew
from tests.guard_scenes import caller, over_memory, refuse, set_up, spent, trace
from tests.sites import ALSO_FOUND, FOUND, NOT_FOUND, TEMPORARY, MovableClock, Site


def may_call(source: str = "primary") -> bool:
    """Whether a lookup would call it now."""
    return next(each.may_call for each in explain_item("P001").sources if each.source == source)


# --- taking a source out --------------------------------------------------------------------------------------------


def test_isolating_and_restoring_take_effect_at_once(site: Site, django_user_model: Any) -> None:
    """The row says who and why; it goes when the source is let in again."""
    user = django_user_model.objects.create(username="kim")
    assert may_call()
    assert isolate_source("default", "primary", "maintenance", isolated_by_id=user.pk)
    row = CatalogSource.objects.get()
    assert (row.catalog, row.source, row.reason, row.isolated_by) == ("default", "primary", "maintenance", user)
    assert (may_call(), may_call("secondary")) == (False, True)
    assert restore_source("default", "primary")
    assert (may_call(), CatalogSource.objects.count()) == (True, 0)


def test_isolating_twice_keeps_since_when(site: Site) -> None:
    """The last reason counts."""
    assert isolate_source("default", "primary", "first")
    since = CatalogSource.objects.get().isolated_at
    assert not isolate_source("default", "primary", "second")
    row = CatalogSource.objects.get()
    assert (row.reason, row.isolated_at) == ("second", since)


def test_restoring_what_is_not_out_does_nothing(site: Site) -> None:
    """And says so."""
    assert not restore_source("default", "primary")


@pytest.mark.parametrize("catalog", ["default", "gone"])
def test_what_the_settings_no_longer_have_can_be_restored(site: Site, catalog: str) -> None:
    """Its row would take out a source of that name that comes back; without a row the name is unknown."""
    CatalogSource.objects.create(catalog=catalog, source="gone")
    assert restore_source(catalog, "gone")
    with pytest.raises((UnknownSource, UnknownCatalog)):
        restore_source(catalog, "gone")


# --- who knows of it ------------------------------------------------------------------------------------------------


def test_everybody_knows_once_the_cache_has_it(site: Site, redis_url: str) -> None:
    """Read back from a cache that all share."""
    site.cache_in(DJANGO_REDIS, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex)
    site.configure()
    for verb in (isolate_source, restore_source):
        verb("default", "primary")
        assert operating.reach_of("default") is Reach.EVERYBODY


def test_with_a_cache_of_its_own_only_this_process_knows(site: Site) -> None:
    """Others ask the database within a minute."""
    isolate_source("default", "primary")
    assert operating.reach_of("default") is Reach.THIS_PROCESS
    assert operating.is_per_process("default")


def test_a_cache_that_lost_it_has_not_confirmed_it(site: Site) -> None:
    """Nor has one that is down, or one whose word nobody can check."""
    shelf = over_memory(site)
    isolate_source("default", "primary")
    assert operating.reach_of("default") is Reach.EVERYBODY
    with connection.execute_wrapper(_down):
        assert operating.reach_of("default") is Reach.NOT_CONFIRMED
    shelf.values.clear()
    assert operating.reach_of("default") is Reach.NOT_CONFIRMED
    shelf.fault = stores.raising(ConnectionError("down"))
    isolate_source("default", "primary")
    assert operating.reach_of("default") is Reach.NOT_CONFIRMED


def _down(*_: object) -> Any:
    raise DatabaseError("down")


@pytest.mark.parametrize("verb", [isolate_source, restore_source, reset_source])
def test_unknown_names_are_errors(site: Site, verb: Any) -> None:
    """With a hint at what there is; nothing is written."""
    with pytest.raises(UnknownSource, match='Did you mean "primary"'):
        verb("default", "primry")
    with pytest.raises(UnknownCatalog):
        verb("nope", "primary")
    assert CatalogSource.objects.count() == 0


def test_a_disabled_source_can_be_isolated_in_advance(site: Site) -> None:
    """It stays out when it is enabled."""
    site.configure({"ENABLED": False})
    assert isolate_source("default", "primary")
    site.configure()
    assert not may_call()


def test_a_transaction_publishes_when_it_commits(site: Site) -> None:
    """What is rolled back changes nothing."""
    assert may_call()
    with transaction.atomic():
        isolate_source("default", "primary")
        assert caches["default"].get(caller("primary").guard.names.isolated) == 0
    assert not may_call()
    with transaction.atomic():
        restore_source("default", "primary")
        transaction.set_rollback(True)
    assert not may_call()


def test_resilience4j_991_no_timer_and_no_result_lets_an_isolated_source_in(site: Site, moving: MovableClock) -> None:
    """Not the end of the copy's life, not an open breaker's, not an hour."""
    over_memory(site)
    site.configure({"BREAKER": {"CONSECUTIVE_FAILURES": 1, "OPEN_FOR": 10}})
    site.say(TEMPORARY, NOT_FOUND)
    site.find()
    isolate_source("default", "primary")
    for seconds in (11, COPY_LIFE + 1, 3600):
        moving.move(seconds)
        assert site.find().trace[0].reason == "isolated"
    assert site.calls[0] == 1


def test_isolation_is_asked_of_the_database_once_a_minute(site: Site, moving: MovableClock) -> None:
    """In between it is one more key of a read that is made anyway."""
    shelf = over_memory(site)
    site.say(NOT_FOUND, NOT_FOUND)

    def questions() -> int:
        with spent(shelf) as cost:
            site.find("P005")
        return sum("catalogsource" in query for query in cost.queries)

    assert [questions() for _ in range(3)] == [1, 0, 0]
    moving.move(COPY_LIFE + 1)
    assert [questions() for _ in range(2)] == [1, 0]


def test_without_cache_and_database_the_last_answer_counts(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process knew last; a process that knew nothing calls."""
    isolate_source("default", "primary")
    assert not may_call()

    def down(*_: object) -> Any:
        raise DatabaseError("down")

    monkeypatch.setattr(isolation.Isolation, "ask", down)
    caches["default"].clear()
    assert not may_call()
    monkeypatch.setattr(chain_of["default"].isolation, "_last", frozenset())
    assert may_call()


@pytest.mark.parametrize("garbage", ["yes", [1], {}, 7, True, 1.0], ids=repr)
def test_a_copy_that_cannot_be_one_is_not_believed(site: Site, garbage: object) -> None:
    """The database is asked instead."""
    assert may_call()
    caches["default"].set(caller("primary").guard.names.isolated, garbage, 60)
    assert may_call()


def test_of_two_changes_at_once_the_last_one_is_copied(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process restores the source between our read and our write."""
    assert may_call()
    ask, passed = isolation.Isolation.ask, []

    def interrupted(self: Any) -> Any:
        answer = ask(self)
        if not passed:
            passed.append(1)
            CatalogSource.objects.all()._raw_delete("default")
        return answer

    monkeypatch.setattr(isolation.Isolation, "ask", interrupted)
    isolate_source("default", "primary")
    assert may_call()


def test_a_row_of_a_catalog_that_is_gone_harms_nobody(site: Site) -> None:
    """Settings change, rows stay."""
    CatalogSource.objects.create(catalog="gone", source="primary").delete()
    assert may_call()


# --- several processes ----------------------------------------------------------------------------------------------


def sources(crew: Crew, item_id: str) -> list[list[str]]:
    """What each process has to say: state and name of the item."""
    crew.start("look_up", item_id=item_id, refresh=True)
    return [[str(part) for part in seen[0][:1]] + [str(seen[0][3])] for seen in crew.results()]


def test_all_processes_see_it_at_once_and_after_a_flush_and_a_restart(
    crew: Crew, site: Site, settings: Any, redis_url: str
) -> None:
    """Two looks before, then the row; the cache is emptied; a process starts anew; then the row goes."""
    site.say(FOUND, ALSO_FOUND)
    assert sources(crew, "P001") == [["found", "Tea"]] * 4
    isolate_source("default", "primary")
    assert sources(crew, "P001") == [["found", "Coffee"]] * 4
    _flush(redis_url, settings)
    assert sources(crew, "P001") == [["found", "Coffee"]] * 4
    crew.workers[0].kill()
    crew.workers[0].is_busy = True
    crew.configure(settings)
    assert sources(crew, "P001") == [["found", "Coffee"]] * 4
    restore_source("default", "primary")
    assert sources(crew, "P001") == [["found", "Tea"]] * 4


def _flush(redis_url: str, settings: Any) -> None:
    server = redis.Redis.from_url(redis_url)
    keys = server.keys(f"*{settings.CACHES['default']['KEY_PREFIX']}*")
    assert keys
    server.delete(*keys)


# --- resetting a breaker --------------------------------------------------------------------------------------------


def test_a_reset_closes_the_breaker(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The source is called again at once, and one line says who changed it."""
    set_up(site)
    site.say(FOUND, NOT_FOUND)
    refuse("primary", "circuit_open")
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert reset_source("default", "primary")
    assert [record.getMessage() for record in caplog.records] == [
        "Circuit breaker default/primary: open → closed (reset)."
    ]
    assert trace(site.find()) == [("primary", "found", "ok", True)]


def test_a_reset_leaves_isolation_and_cool_down(site: Site) -> None:
    """They are somebody else's decisions."""
    set_up(site)
    refuse("primary", "cooling_down")
    refuse("secondary", "isolated")
    assert reset_source("default", "primary")
    assert reset_source("default", "secondary")
    assert [each.reason for each in explain_item("P001").sources] == ["cooling_down", "isolated"]


def test_a_reset_that_the_cache_did_not_take_says_so(site: Site) -> None:
    """The operator tries again."""
    site.cache_in("tests.stores.TimingOutCache", LOCATION="reset")
    assert not reset_source("default", "primary")


def test_resetting_a_disabled_source_does_nothing(site: Site) -> None:
    """It has no breaker to close."""
    site.configure({"ENABLED": False})
    assert operating.reset_source("default", "primary")
