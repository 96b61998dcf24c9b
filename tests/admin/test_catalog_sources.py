"""Does the operations page show what there is, to whom it may, whatever cache and database do?"""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client

from catalog_fallback import classify, operating
from catalog_fallback.admin.measures import duration
from catalog_fallback.guarding import guarded
from catalog_fallback.management import status_text
from catalog_fallback.models import CatalogSource
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.services import find_item
from tests import stores
from tests.admin.operations import LOOKUP, PAGE, SIMULATED, STATUS, operator, row_of, sign_in, text_of, verb_url
from tests.commands import runner
from tests.crew import DJANGO_REDIS
from tests.guard_scenes import caller, refuse
from tests.sites import MovableClock

pytestmark = pytest.mark.django_db(transaction=True)

EASY = {"BREAKER": {"CONSECUTIVE_FAILURES": 2}, "RATE_LIMIT": {"CALLS": 30, "PER": 60}}


@pytest.fixture(autouse=True)
def _sources(settings: Any, _site: None) -> None:
    """A source that fails, one that answers, one that is switched off; and a second catalog with a short limit."""
    items = {"P001": "Tea"}
    first = {"BACKEND": SIMULATED, "OPTIONS": {"failure": 503}, **EASY}
    second = {"BACKEND": SIMULATED, "OPTIONS": {"items": items}, **EASY}
    third = {"BACKEND": SIMULATED, "ENABLED": False}
    plain = {"BACKEND": SIMULATED, "OPTIONS": {"items": items}, "BREAKER": None}
    settings.CATALOG_FALLBACK = {
        "default": {"SOURCES": {"primary": first, "secondary": second, "third": third}, "STOP_CHECK": "cache"},
        "other": {"SOURCES": {"plain": plain}, "STOP_CHECK": "cache", "BUDGET": 1, "OUTER_TIMEOUT": 1},
    }


# --- who may ----------------------------------------------------------------------------------------------------------

EVERYTHING = (PAGE, STATUS, LOOKUP, f"{PAGE}1/change/", *(verb_url(verb) for verb in ("isolate", "restore", "reset")))


@pytest.mark.parametrize("url", EVERYTHING)
@pytest.mark.parametrize("method", ["get", "post"])
def test_staff_without_permission_get_nothing(url: str, method: str) -> None:
    """403 everywhere; nothing has changed."""
    assert getattr(sign_in(), method)(url, {"reason": "x"}).status_code in {403, 405}
    assert sign_in().get(url).status_code == 403
    assert not CatalogSource.objects.exists()


@pytest.mark.parametrize("url", EVERYTHING)
def test_visitors_are_asked_to_log_in(url: str) -> None:
    """Even with all permissions: the admin is for the staff."""
    assert Client().get(url)["Location"].startswith("/admin/login/")
    user = User.objects.create_superuser("boss", password="secret")
    User.objects.filter(pk=user.pk).update(is_staff=False)
    browser = Client()
    browser.force_login(user)
    assert browser.get(url).status_code == 302


@pytest.mark.parametrize("verb", ["isolate", "restore", "reset"])
def test_who_may_only_view_sees_no_buttons_and_cannot_act(verb: str) -> None:
    """No column for them, no page behind it, no lookup."""
    browser = sign_in("view")
    page = browser.get(PAGE)
    assert page.status_code == 200
    assert 'class="button"' not in page.content.decode()
    assert browser.get(verb_url(verb)).status_code == 403
    assert browser.post(verb_url(verb), {"reason": "x"}).status_code == 403
    assert browser.post(LOOKUP, {"catalog": "default", "item_id": "P001"}).status_code == 403
    assert "Look it up now" not in text_of(browser.get(LOOKUP, {"catalog": "default", "item_id": "P001"}))
    assert not CatalogSource.objects.exists()


def test_whoever_may_operate_may_look() -> None:
    """As who may change a row may view it."""
    assert sign_in("operate").get(PAGE).status_code == 200


def test_rows_cannot_be_added_changed_or_deleted_by_hand() -> None:
    """Not even by a superuser: the only ways are isolate and restore."""
    browser = Client()
    browser.force_login(User.objects.create_superuser("boss", password="secret"))
    row = CatalogSource.objects.create(catalog="default", source="primary")
    assert browser.get(f"{PAGE}add/").status_code == 404
    assert browser.get(f"{PAGE}{row.pk}/delete/").status_code == 404
    assert browser.get(f"{PAGE}{row.pk}/change/")["Location"] == PAGE
    assert browser.post(PAGE, {"action": "delete_selected", "_selected_action": row.pk}).status_code == 405
    assert CatalogSource.objects.count() == 1


def test_the_admin_s_index_leads_there() -> None:
    """Under a name that says what it is."""
    index = sign_in("view").get("/admin/").content.decode()
    assert f'href="{PAGE}"' in index
    assert ">Sources</a>" in index


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_a_source_that_is_down_is_seen_at_a_glance() -> None:
    """State as icon and word, why, since when, the next probe, calls and failures, limits."""
    for _ in range(3):
        find_item("P002")
    page = operator().get(PAGE)
    primary = row_of(page, "primary")
    assert re.search(r'icon-no\.svg" alt=""> <strong>open</strong>', page.content.decode())
    assert "open 2 failures in a row, since " in primary
    assert re.search(r"no: its breaker is open next probe in (29|30).s", primary)
    assert re.search(r"2, 2 failed, 0 timed out last failure: http_503, \d+.s ago", primary)
    assert re.search(r"28 of 30 left in 60.s 0 of 16 Isolate", primary)
    assert re.search(
        r"^secondary at most 2.s closed works yes – 1, 0 failed, 0 timed out P50 ", row_of(page, "secondary")
    )


def test_a_source_that_is_switched_off_is_shown_as_such() -> None:
    """It has no figures, and nothing to do."""
    row = row_of(operator().get(PAGE), "third")
    assert row == "third switched off ENABLED is False in the settings: nobody asks it – – – – – –"


def test_a_source_without_a_breaker_has_none_to_reset() -> None:
    """And it says so."""
    row = row_of(operator().get(PAGE), "plain")
    assert "closed has no breaker yes" in row
    assert row.endswith("Isolate other / plain")


@pytest.mark.parametrize(
    ("failure", "words"),
    [(429, "after a 429: a lookup ends here"), (503, "after a 503: the next source is asked")],
    ids=["429", "503"],
)
def test_a_cool_down_says_what_began_it_and_how_long_it_lasts(failure: int, words: str) -> None:
    """The kind decides whether the next source is asked."""
    permit = caller("primary").guard.take()
    assert isinstance(permit, Permit)
    permit.settle(replace(classify.verdict(f"http_{failure}"), retry_after=90.0))
    row = row_of(operator().get(PAGE), "primary")
    assert re.search(rf"no: it asked to be left alone another (89|90).s, {words}", row)


def test_an_isolated_source_says_who_and_why() -> None:
    """The reason, the user, since when; restoring takes the place of isolating."""
    user = User.objects.create_user("kim")
    operating.isolate_source("default", "primary", "provider is <told>", isolated_by_id=user.pk)
    page = operator().get(PAGE)
    row = row_of(page, "primary")
    assert "isolated by kim: provider is <told>, since " in row
    assert "no, until it is restored" in row
    assert "<told>" not in page.content.decode()
    assert row.endswith("Restore default / primary Reset default / primary")


def test_probes_and_full_bulkheads_are_named() -> None:
    """Half-open in its own word; every guard that refuses."""
    refuse("primary", "bulkhead_full")
    refuse("secondary", "rate_limited")
    page = operator().get(PAGE)
    assert "no: MAX_CONCURRENT calls are running" in row_of(page, "primary")
    assert "16 of 16" in row_of(page, "primary")
    assert "no: RATE_LIMIT is used up" in row_of(page, "secondary")


def test_a_breaker_whose_time_is_over_is_half_open(settings: Any, moving: MovableClock) -> None:
    """The next call is a probe; looking takes none."""
    settings.CACHES = {"default": {"BACKEND": "tests.stores.MemoryCache", "LOCATION": uuid.uuid4().hex}}
    refuse("primary", "circuit_open")
    moving.move(31)
    browser = operator()
    for _ in range(3):
        row = row_of(browser.get(PAGE), "primary")
        assert "half-open" in row
        assert "yes the next call is a probe" in row
    assert caller("primary").guard.bulkhead.in_use == 0


def test_budget_and_waits_are_shown_for_each_catalog() -> None:
    """And what does not fit."""
    text = text_of(operator().get(PAGE))
    assert "Budget of a lookup 5 s Longest wait of a lookup 4 s The web server waits 30 s: long enough" in text
    assert "1 s (cut by the budget; all calls together could take 2 s)" in text
    assert "1 s: too short for one lookup (OUTER_TIMEOUT)" in text


def test_the_hit_ratio_is_that_of_all_lookups() -> None:
    """One miss, three hits."""
    for _ in range(4):
        find_item("P001")
    assert "Answered by the cache 75 % of 4 lookups" in text_of(operator().get(PAGE))


@pytest.mark.parametrize("lookups", [6, 7, 8, 9, 11, 40])
def test_page_and_command_say_the_same_ratio(monkeypatch: pytest.MonkeyPatch, lookups: int) -> None:
    """One hit of so many, rounded in one way."""
    for number in (1, *range(1, lookups)):
        find_item(f"P{number:03}")
    shown = re.search(r"Answered by the cache (\d+) % of", text_of(operator().get(PAGE)))
    printed = re.search(rf"1 of {lookups} lookups \((\d+)%\)", runner(monkeypatch)("catalog_status").out)
    assert shown is not None
    assert printed is not None
    assert shown[1] == printed[1] == str(round(100 / lookups))


GUARDS = {"payments": EASY, "mail": {"BREAKER": None, "MAX_CONCURRENT": 2}}


def test_guards_of_other_calls_are_shown(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """State, limits and permits of those in GUARDS; one that only code names is none of them."""
    settings.CATALOG_FALLBACK["default"]["GUARDS"] = GUARDS
    for alias in ("payments", "payments", "unnamed"):
        with pytest.raises(TimeoutError), guarded(alias):
            raise TimeoutError
    with guarded("mail"):
        page, printed = operator().get(PAGE), runner(monkeypatch)("catalog_status", "--catalog", "default").out
    assert "Guards of default around other calls (GUARDS)" in text_of(page)
    payments = row_of(page, "payments")
    assert "open 2 failures in a row, since" in payments
    assert "no: its breaker is open next probe in" in payments
    assert payments.endswith("28 of 30 left in 60 s 0 of 16")
    assert row_of(page, "mail") == "mail closed has no breaker yes no limit 1 of 2"
    assert "unnamed" not in text_of(page) + printed
    table = printed.partition("Guards of other calls (GUARDS)\n")[2].split("\n\n")[0].splitlines()
    assert table[0].split() == [
        "GUARD",
        "STATE",
        "WHY",
        "SINCE",
        "MAY",
        "BE",
        "CALLED",
        "RUNNING",
        "HERE",
        "RATE",
        "LIMIT",
    ]
    assert re.match(r" +payments +open +2 failures in a row .* no, in \d+ s +0 of 16 +28 of 30 in 60 s left$", table[1])
    assert table[2].split() == ["mail", "closed", "has", "no", "breaker", "-", "yes", "1", "of", "2", "-"]


def test_while_the_cache_is_in_trouble_guards_are_those_of_this_process(settings: Any) -> None:
    """They have a stand-in of their own."""
    settings.CACHES = {"default": {"BACKEND": "tests.stores.MemoryCache", "LOCATION": (location := uuid.uuid4().hex)}}
    settings.CATALOG_FALLBACK["default"]["GUARDS"] = {"payments": {"BREAKER": {"CONSECUTIVE_FAILURES": 2}}}
    stores.shelf(location).fault = stores.raising(ConnectionError("refused"))
    for _ in range(2):
        with pytest.raises(TimeoutError), guarded("payments"):
            raise TimeoutError
    assert "open 2 failures in a row" in row_of(operator().get(PAGE), "payments")


def test_guards_are_in_the_json(settings: Any) -> None:
    """With the names that sources have; a catalog without GUARDS has none, and no table."""
    settings.CATALOG_FALLBACK["default"]["GUARDS"] = GUARDS
    browser = operator()
    default, other = browser.get(STATUS).json()["catalogs"]
    assert [each["guard"] for each in default["guards"]] == ["payments", "mail"]
    assert default["guards"][0]["rate_limit"] == {"calls": 30, "per": 60.0, "left": 30}
    assert set(default["guards"][1]) - {"guard"} < set(default["sources"][0])
    assert other["guards"] == []
    assert text_of(browser.get(PAGE)).count("(GUARDS)") == 1


@pytest.mark.parametrize(
    ("seconds", "shown", "printed"),
    [(0.0127, "13\u00a0ms", "13 ms"), (1.96, "2.0\u00a0s", "2.0 s"), (9.96, "10.0\u00a0s", "10.0 s")],
)
def test_page_and_command_say_the_same_latency(seconds: float, shown: str, printed: str) -> None:
    """Both round; Django's own number_format() cuts off."""
    assert (duration(seconds), status_text._latency(seconds)) == (shown, printed)


def test_the_sparkline_has_a_text_and_no_style(moving: MovableClock) -> None:
    """Attributes only; a screen reader gets the numbers. One number by itself is no picture."""
    spark = re.compile(r'<svg class="operations-spark".*?</svg>', flags=re.DOTALL)
    find_item("P001")
    assert spark.search(operator().get(PAGE).content.decode()) is None
    moving.move(31)
    find_item("P001", refresh=True)
    svg = spark.search(operator().get(PAGE).content.decode())
    assert svg is not None
    assert 'role="img"' in svg[0]
    assert 'aria-label="P95 in each half minute, the oldest first: no calls, no calls' in svg[0]
    assert re.search(r"<(polyline|circle) ", svg[0])


@pytest.mark.parametrize("url", [PAGE, f"{LOOKUP}?catalog=default&item_id=P001", verb_url("isolate")])
def test_nothing_is_inline(url: str) -> None:
    """A strict Content-Security-Policy takes these pages as they are."""
    find_item("P001")
    page = operator().get(url).content.decode()
    assert " style=" not in page
    assert re.search(r"<style|\son\w+=|javascript:", page) is None
    assert all("src=" in tag for tag in re.findall(r"<script\b[^>]*>", page))
    assert "catalog_fallback/operations.css" in page


def test_every_table_can_be_understood_by_ear() -> None:
    """A caption each, and every header says of what it is the header."""
    operating.isolate_source("default", "primary", "because")
    operator().post(verb_url("reset"))
    page = operator().get(PAGE).content.decode()
    tables = re.findall(r"<table.*?</table>", page.partition('id="content-main"')[2], flags=re.DOTALL)
    assert len(tables) == 3
    for table in tables:
        assert "<caption" in table
        assert all('scope="' in header for header in re.findall(r"<th\b[^>]*>", table))
    assert page.count("<h1") == 1


# --- shared or not, in trouble or not ---------------------------------------------------------------------------------


def test_it_says_whether_all_processes_share_the_state(settings: Any, redis_url: str) -> None:
    """With LocMem or a dummy what is shown is one process's own."""
    own = "Each process has a state of its own, because the cache “default” is not shared."
    browser = operator()
    assert own in text_of(browser.get(PAGE))
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    assert own in text_of(browser.get(PAGE))
    settings.CACHES = {"default": {"BACKEND": DJANGO_REDIS, "LOCATION": redis_url, "KEY_PREFIX": uuid.uuid4().hex}}
    assert "All processes share this state (cache “default”)." in text_of(browser.get(PAGE))
    assert browser.get(STATUS).json()["catalogs"][0]["is_shared"] is True


@pytest.mark.parametrize("error", [TimeoutError("timed out"), ConnectionError("refused")], ids=["hangs", "refuses"])
def test_a_cache_in_trouble_is_named(settings: Any, error: Exception) -> None:
    """What is shown then is what the process knows by itself."""
    settings.CACHES = {"default": {"BACKEND": "tests.stores.MemoryCache", "LOCATION": (location := uuid.uuid4().hex)}}
    stores.shelf(location).fault = stores.raising(error)
    page = operator().get(PAGE)
    assert page.status_code == 200
    assert "The cache “default” does not answer" in text_of(page)
    assert "closed works yes" in row_of(page, "primary")


def test_all_catalogs_of_a_cache_are_one_read_and_one_query(settings: Any) -> None:
    """Whatever their number; nothing is written."""
    settings.CACHES = {"default": {"BACKEND": "tests.stores.MemoryCache", "LOCATION": (location := uuid.uuid4().hex)}}
    browser = operator()
    browser.get(PAGE)
    before = len(stores.shelf(location).log)
    browser.get(PAGE)
    assert [name for name, _ in stores.shelf(location).log[before:]] == ["get_many"]


def test_a_database_that_does_not_know_the_table_is_named() -> None:
    """The page, its JSON and the list of changes say so; what the cache knows of isolation is still shown."""
    operating.isolate_source("default", "primary", "maintenance")
    browser = operator()
    with connection.execute_wrapper(_without("catalog_fallback_catalogsource", "django_admin_log")):
        page, values = browser.get(PAGE), browser.get(STATUS).json()
    assert "The database does not answer, or has not been migrated" in text_of(page)
    assert "isolated by an operator" in row_of(page, "primary")
    assert "maintenance" not in text_of(page)
    assert (values["database_answers"], values["catalogs"][0]["sources"][0]["state"]) == (False, "isolated")


def _without(*tables: str) -> Any:
    def run(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if any(f'FROM "{table}"' in sql for table in tables):
            raise OperationalError("no such table")
        return execute(sql, params, many, context)

    return run


def test_wrong_settings_are_no_traceback(settings: Any) -> None:
    """They are what ``check`` is for."""
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"only": {"NOPE": "secret"}}}}
    browser = operator()
    page = browser.get(PAGE)
    assert (page.status_code, "The setting CATALOG_FALLBACK cannot be used." in text_of(page)) == (200, True)
    assert "secret" not in text_of(page)
    assert browser.get(STATUS).status_code == 500
    assert browser.get(LOOKUP, {"catalog": "default", "item_id": "P001"}).status_code == 200


@pytest.mark.parametrize("catalog", ["gone", "default", "a/b", ""])
def test_rows_that_are_left_behind_are_shown(catalog: str) -> None:
    """Of a source or a catalog that the settings do not have: they would take out one that comes back."""
    CatalogSource.objects.create(catalog=catalog, source="gone", reason="old")
    page = operator().get(PAGE)
    assert f"{catalog} / gone: old" in text_of(page)


# --- as JSON ----------------------------------------------------------------------------------------------------------


def test_json_has_all_of_it() -> None:
    """Durations in seconds, moments in ISO 8601."""
    for _ in range(3):
        find_item("P002")
    response = sign_in("view").get(STATUS)
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")
    found = response.json()
    assert (found["database_answers"], found["left_behind"]) == (True, [])
    default, other = found["catalogs"]
    primary, secondary = default["sources"]
    assert (default["catalog"], default["disabled"], other["catalog"]) == ("default", ["third"], "other")
    assert default["lookups"] == {"window": 300.0, "made": 3, "hits": 0, "hit_ratio": 0.0}
    assert (primary["state"], primary["may_call"], primary["refusal"]) == ("open", False, "circuit_open")
    assert primary["probe_in"] == pytest.approx(30, abs=2)
    assert (primary["calls"]["made"], primary["calls"]["failed"]) == (2, 2)
    assert sum(piece["made"] for piece in primary["calls"]["history"]) == 2
    assert (secondary["state"], secondary["probe_in"], secondary["cool_down_after"]) == ("closed", None, None)


def test_whoever_prefers_json_gets_it() -> None:
    """By the Accept header, at the address of the page; a browser gets the page."""
    browser = sign_in("view")
    wanted = browser.get(PAGE, headers={"Accept": "application/json"})
    assert wanted.json()["catalogs"] == browser.get(STATUS).json()["catalogs"]
    assert "Accept" in wanted["Vary"]
    for accept in ("text/html,application/xhtml+xml,*/*;q=0.8", "*/*", ""):
        page = browser.get(PAGE, headers={"Accept": accept})
        assert (page["Content-Type"].split(";")[0], "Accept" in page["Vary"]) == ("text/html", True)


def test_nothing_of_it_is_kept_by_browsers_or_proxies() -> None:
    """It is the state of this moment."""
    browser = operator()
    for url in (PAGE, STATUS, LOOKUP, verb_url("reset")):
        assert "no-store" in browser.get(url)["Cache-Control"]
