"""Does what an operator does on the operations page happen, is it logged, and is the truth told about it?"""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import OperationalError, connection

from catalog_fallback import operating
from catalog_fallback.models import CatalogSource
from catalog_fallback.services import explain_item
from tests import stores
from tests.admin.operations import PAGE, SIMULATED, operator, row_of, text_of, told, verb_url
from tests.crew import DJANGO_REDIS
from tests.guard_scenes import refuse

pytestmark = pytest.mark.django_db(transaction=True)

BECAUSE = {"reason": "time-outs, provider is told"}


@pytest.fixture(autouse=True)
def _sources(settings: Any, _site: None) -> None:
    """Two sources over a cache that is not shared."""
    source = {"BACKEND": SIMULATED, "OPTIONS": {"items": {"P001": "Tea"}}, "BREAKER": {"CONSECUTIVE_FAILURES": 2}}
    settings.CATALOG_FALLBACK = {
        "default": {"SOURCES": {"primary": source, "secondary": source}, "STOP_CHECK": "cache"}
    }


@pytest.fixture
def shared(settings: Any, redis_url: str) -> None:
    """The cache is one that all processes share."""
    settings.CACHES = {"default": {"BACKEND": DJANGO_REDIS, "LOCATION": redis_url, "KEY_PREFIX": uuid.uuid4().hex}}


def may_call(source: str = "primary") -> bool:
    """Whether a lookup would call it now."""
    return next(each.may_call for each in explain_item("P001").sources if each.source == source)


def logged() -> list[tuple[str, str, int]]:
    """What the admin's log says, the oldest first."""
    entries = LogEntry.objects.order_by("pk")
    return [(entry.object_repr, entry.get_change_message(), entry.action_flag) for entry in entries]


def test_isolate_and_restore(shared: None) -> None:
    """The row says who and why; both are logged; what the page tells is true."""
    browser = operator()
    done = browser.post(verb_url("isolate"), BECAUSE)
    assert (done.status_code, done["Location"]) == (302, PAGE)
    assert told(done) == ["success: Source “primary” is isolated."]
    row = CatalogSource.objects.get()
    assert (row.source, row.reason, row.isolated_by_id) == (
        "primary",
        BECAUSE["reason"],
        int(browser.session["_auth_user_id"]),
    )
    assert (may_call("primary"), may_call("secondary")) == (False, True)
    done = browser.post(verb_url("restore"))
    assert told(done)[-1] == "success: Source “primary” is restored."
    assert (may_call(), CatalogSource.objects.count()) == (True, 0)
    assert logged() == [
        ("default:primary", f"Isolated. Reason: {BECAUSE['reason']}", CHANGE),
        ("default:primary", "Restored.", CHANGE),
    ]


def test_reset(shared: None) -> None:
    """An open breaker is closed, and that is logged."""
    refuse("primary", "circuit_open")
    assert not may_call()
    done = operator().post(verb_url("reset"))
    assert told(done) == ["success: The breaker of source “primary” is closed and counts anew."]
    assert may_call()
    assert logged() == [("default:primary", "Breaker reset.", CHANGE)]


@pytest.mark.parametrize("verb", ["isolate", "restore", "reset"])
def test_nothing_happens_before_it_is_confirmed(verb: str) -> None:
    """The page behind the link explains; only its button does it."""
    refuse("primary", "circuit_open")
    operating.isolate_source("default", "secondary", "first")
    page = operator().get(verb_url(verb))
    assert page.status_code == 200
    assert "Source primary of catalog default" in text_of(page)
    assert 'method="post"' in page.content.decode()
    assert (may_call("primary"), CatalogSource.objects.count(), logged()) == (False, 1, [])


@pytest.mark.parametrize("verb", ["isolate", "restore", "reset"])
def test_a_post_without_its_token_is_refused(verb: str) -> None:
    """Another site cannot make an operator's browser do it."""
    browser = operator(enforce_csrf_checks=True)
    assert browser.post(verb_url(verb), BECAUSE).status_code == 403
    assert not CatalogSource.objects.exists()


@pytest.mark.parametrize("reason", ["", "   ", "x" * 1001], ids=["none", "blanks", "too-long"])
def test_isolating_needs_a_reason(reason: str) -> None:
    """The form says so, at its field."""
    page = operator().post(verb_url("isolate"), {"reason": reason})
    assert (page.status_code, list(page.context["form"].errors)) == (200, ["reason"])
    assert not CatalogSource.objects.exists()


@pytest.mark.parametrize(
    "url",
    [verb_url(verb, *where) for verb in ("isolate", "restore", "reset") for where in (("nope",), ("primary", "nope"))],
)
def test_what_is_not_in_the_settings_is_not_found(url: str) -> None:
    """404, for looking and for doing."""
    browser = operator()
    assert browser.get(url).status_code == 404
    assert browser.post(url, BECAUSE).status_code == 404


@pytest.mark.parametrize("catalog", ["default", "gone"])
def test_what_was_left_behind_can_be_restored(catalog: str) -> None:
    """So that it does not take out a source of that name that comes back."""
    CatalogSource.objects.create(catalog=catalog, source="gone", reason="old")
    done = operator().post(verb_url("restore", "gone", catalog))
    assert done.status_code == 302
    assert "Source “gone” is restored." in told(done)[0]
    assert not CatalogSource.objects.exists()


def test_restoring_what_is_not_out_is_said_and_not_logged() -> None:
    """Somebody else was faster."""
    assert told(operator().post(verb_url("restore"))) == ["warning: Source “primary” was not isolated."]
    assert logged() == []


@pytest.mark.parametrize("more", [{"BREAKER": None}, {"ENABLED": False}], ids=["no-breaker", "switched-off"])
def test_what_has_no_breaker_is_not_said_to_be_reset(settings: Any, more: dict[str, Any]) -> None:
    """Nothing is done, and nothing is logged."""
    catalog = settings.CATALOG_FALLBACK["default"]
    sources = {**catalog["SOURCES"], "primary": {**catalog["SOURCES"]["primary"], **more}}
    settings.CATALOG_FALLBACK = {"default": {**catalog, "SOURCES": sources}}
    assert told(operator().post(verb_url("reset"))) == ["warning: Source “primary” has no circuit breaker."]
    assert logged() == []


def test_the_admin_s_log_leads_to_the_page() -> None:
    """The index lists what somebody did; its link works."""
    browser = operator()
    browser.post(verb_url("isolate"), BECAUSE)
    index = browser.get("/admin/").content.decode()
    link = re.search(r'href="([^"]+)">default:primary<', index)
    assert link is not None
    assert browser.get(link[1])["Location"] == PAGE


# --- the truth about the cache ----------------------------------------------------------------------------------------


def test_without_a_shared_cache_it_says_who_knows() -> None:
    """Isolation reaches others through the database; a reset does not reach them at all."""
    browser = operator()
    done = browser.post(verb_url("isolate"), BECAUSE)
    why = "The cache is not shared: other processes learn of it from the database within 60 seconds."
    assert told(done) == [f"warning: Source “primary” is isolated. {why}"]
    assert "holds for the process that did it, and for no other" in told(browser.post(verb_url("reset")))[-1]


@pytest.mark.parametrize("verb", ["isolate", "restore"])
def test_a_cache_that_did_not_take_it_is_named(settings: Any, verb: str) -> None:
    """The database has it; the message says how long others may take."""
    if verb == "restore":
        operating.isolate_source("default", "primary")
    settings.CACHES = {"default": {"BACKEND": "tests.stores.MemoryCache", "LOCATION": (location := uuid.uuid4().hex)}}
    stores.shelf(location).fault = stores.raising(ConnectionError("down"))
    done = operator().post(verb_url(verb), BECAUSE)
    assert told(done)[0].startswith("warning: Source “primary” is ")
    assert "The cache did not confirm it: the database has it" in told(done)[0]
    assert CatalogSource.objects.count() == (verb == "isolate")


def test_a_cache_that_says_yes_and_keeps_nothing_is_found_out(settings: Any) -> None:
    """Reading back tells."""
    settings.CACHES = {"default": {"BACKEND": "tests.stores.LossyCache", "LOCATION": uuid.uuid4().hex}}
    assert "The cache did not confirm it" in told(operator().post(verb_url("isolate"), BECAUSE))[0]


def test_a_reset_that_the_cache_did_not_take_is_an_error(settings: Any) -> None:
    """And it is in the log as what it was: a try."""
    settings.CACHES = {"default": {"BACKEND": "tests.stores.MemoryCache", "LOCATION": (location := uuid.uuid4().hex)}}
    stores.shelf(location).fault = stores.raising(ConnectionError("down"))
    done = operator().post(verb_url("reset"))
    assert told(done)[0].startswith("error: The breaker of source “primary” is not reset")
    assert logged() == [("default:primary", "Tried to reset the breaker; the cache did not take it.", CHANGE)]


def test_without_its_log_entry_nothing_is_isolated() -> None:
    """Both are written, or neither."""
    browser = operator()

    def run(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('INSERT INTO "django_admin_log"'):
            raise OperationalError("disk full")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(run):
        done = browser.post(verb_url("isolate"), BECAUSE)
    assert "error: The database raised OperationalError: see what the state is below." in told(done)
    assert (CatalogSource.objects.count(), may_call()) == (0, True)


def test_the_latest_changes_are_listed() -> None:
    """Who, what and why, the newest first; what was written as a reason is text."""
    browser = operator()
    browser.post(verb_url("isolate"), {"reason": "<script>alert(1)</script>"})
    browser.post(verb_url("restore"))
    page = browser.get(PAGE)
    assert "default:primary Restored." in text_of(page)
    assert text_of(page).index("Restored.") < text_of(page).index("Isolated. Reason: <script>alert(1)</script>")
    assert "<script>alert" not in page.content.decode()


def test_the_row_offers_what_can_be_done() -> None:
    """Links to the confirmation pages, each with the name of its source for whoever does not see the table."""
    page = operator().get(PAGE)
    assert row_of(page, "primary").endswith("Isolate default / primary Reset default / primary")
    assert f'href="{verb_url("isolate")}"' in page.content.decode()
