"""Does ``catalog_status`` show what there is, and do what it is told, whatever cache and database do?"""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from catalog_fallback import operating
from catalog_fallback.models import CatalogSource
from catalog_fallback.services import explain_item, find_item
from catalog_fallback.testing import fake_source
from tests import stores
from tests.crew import DJANGO_REDIS
from tests.guard_scenes import caller, refuse
from tests.management.conftest import Runner

EASY = {"BREAKER": {"CONSECUTIVE_FAILURES": 2}, "RATE_LIMIT": {"CALLS": 30, "PER": 60}}


@pytest.fixture(autouse=True)
def _two_sources(settings: Any) -> None:
    """One source that always fails, one that answers; and a catalog that shares an alias with it."""
    first = fake_source(failure=503, **EASY)
    second = fake_source({"P001": "Tea"}, **EASY)
    common = {"STOP_CHECK": "cache"}
    settings.CATALOG_FALLBACK = {
        "default": {"SOURCES": {"primary": first, "secondary": second}, **common},
        "other": {"SOURCES": {"secondary": second, "third": second}, **common, "BUDGET": 3, "OUTER_TIMEOUT": 2},
    }


def rows(text: str) -> dict[str, list[str]]:
    """First word of a line → the words after it; of the lines of the first catalog that begin alike, all of them."""
    found: dict[str, list[str]] = {}
    for line in text.split("\nCatalog ", maxsplit=1)[0].splitlines():
        first, *others = line.split() or [""]
        found.setdefault(first, []).extend(others)
    return found


def values(run: Runner, *arguments: str) -> dict[str, Any]:
    """What the command says of the default catalog as JSON."""
    done = run("catalog_status", "--catalog", "default", "--json", *arguments)
    assert done.code == 0, done
    return dict(json.loads(done.out))


# --- showing --------------------------------------------------------------------------------------------------------


def test_all_catalogs_are_shown(run: Runner) -> None:
    """In the order of the settings; with --catalog only one."""
    done = run("catalog_status")
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if line.startswith("Catalog ")] == [
        "Catalog default",
        "Catalog other",
    ]
    assert "Catalog other" not in run("catalog_status", "--catalog", "default").out


def test_a_source_that_is_down_is_seen_at_a_glance(run: Runner) -> None:
    """State, why, since when, when it is tried again; its calls, failures and latencies; its limits."""
    for _ in range(3):
        find_item("P002")
    text = run("catalog_status", "--catalog", "default").out
    assert "primary    open    2 failures in a row" in text
    assert "no, in 30 s" in text or "no, in 29 s" in text
    assert "28 of 30 in 60 s left" in text
    assert f"http_503, {timezone.now():%Y-%m-%d}" in text
    assert rows(text)["secondary"][:5] == ["closed", "works", "-", "yes", "1"]


def test_waits_are_computed_from_the_inside_out(run: Runner) -> None:
    """What the web server and its client have to exceed."""
    text = run("catalog_status", "--catalog", "default").out
    assert "one lookup      4 s     BUDGET is 5 s" in text
    assert "the web server  > 4 s   OUTER_TIMEOUT says 30 s: fits" in text
    assert "its client      > 30 s" in text
    assert "OUTER_TIMEOUT says 2 s: TOO SHORT" in run("catalog_status", "--catalog", "other").out


def test_json_has_all_of_it(run: Runner) -> None:
    """Durations in seconds, moments in ISO 8601."""
    for _ in range(3):
        find_item("P002")
    refuse("secondary", "cooling_down")
    said = values(run)
    primary, secondary = said["sources"]
    assert (primary["state"], primary["reason"], primary["may_call"]) == ("open", "consecutive_failures", False)
    assert (primary["refusal"], primary["retry_after"]) == ("circuit_open", pytest.approx(30, abs=2))
    assert (primary["calls"]["made"], primary["calls"]["failed"], primary["calls"]["timed_out"]) == (2, 2, 0)
    assert primary["calls"]["last_failure"]["reason"] == "http_503"
    assert 0 <= primary["calls"]["p50"] <= primary["calls"]["p99"] < 1
    assert primary["rate_limit"] == {"calls": 30, "per": 60.0, "left": 28}
    assert (secondary["state"], secondary["refusal"]) == ("closed", "cooling_down")
    assert secondary["cool_down"] == pytest.approx(60, abs=2)
    assert said["waits"] == {
        "sources": {"primary": 2.0, "secondary": 2.0},
        "all_calls": 4.0,
        "budget": 5.0,
        "lookup": 4.0,
        "outer_timeout": 30.0,
        "fits": True,
    }


def test_json_is_one_object_a_line(run: Runner) -> None:
    """A catalog each."""
    lines = run("catalog_status", "--json").out.splitlines()
    assert [json.loads(line)["catalog"] for line in lines] == ["default", "other"]


def test_resilience4j_858_showing_takes_no_permit(run: Runner) -> None:
    """Of a breaker whose time is over it shows that it may be probed, and leaves the probe to a lookup."""
    refuse("primary", "circuit_open")
    before = explain_item("P002").sources
    for _ in range(3):
        run("catalog_status")
    assert [each.may_call for each in explain_item("P002").sources] == [each.may_call for each in before]
    assert caller("primary").guard.bulkhead.in_use == 0


def test_state_that_is_not_shared_is_said_to_be(run: Runner, settings: Any, redis_url: str) -> None:
    """With LocMem the command sees its own process only; with Redis everybody's."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    assert "is not shared): this is the one of this command" in run("catalog_status").out
    assert values(run)["is_shared"] is False
    settings.CACHES = {"default": {"BACKEND": DJANGO_REDIS, "LOCATION": redis_url, "KEY_PREFIX": uuid.uuid4().hex}}
    assert "All processes share this state (cache default)." in run("catalog_status").out
    assert values(run)["is_shared"] is True


@pytest.mark.parametrize("error", [TimeoutError("timed out"), ConnectionError("refused")], ids=["hangs", "refuses"])
def test_a_cache_in_trouble_is_said_to_be(run: Runner, settings: Any, error: Exception) -> None:
    """What is shown is what the process knows by itself; the exit code stays 0."""
    settings.CACHES = {"default": {"BACKEND": "tests.stores.MemoryCache", "LOCATION": (location := uuid.uuid4().hex)}}
    stores.shelf(location).fault = stores.raising(error)
    done = run("catalog_status", "--catalog", "default")
    assert done.code == 0
    assert "The cache default does not answer" in done.out
    assert rows(done.out)["primary"][:2] == ["closed", "works"]


def test_a_hanging_cache_is_waited_for_once(run: Runner, settings: Any) -> None:
    """One time-out for all sources together."""
    settings.CACHES = {
        "default": {"BACKEND": "tests.stores.TimingOutCache", "LOCATION": (location := uuid.uuid4().hex)}
    }
    run("catalog_status", "--catalog", "default")
    assert len(stores.shelf(location).log) == 1


def test_without_a_database_the_rest_is_shown(run: Runner) -> None:
    """Only who isolated what is missing."""
    operating.isolate_source("default", "primary", "maintenance")
    assert "isolated  by an operator: maintenance" in run("catalog_status").out
    with connection.execute_wrapper(_down):
        done = run("catalog_status")
    assert (done.code, "isolated  by an operator" in done.out, "maintenance" in done.out) == (0, True, False)
    assert "The database does not answer: who isolated what, and why, is not known." in done.out
    with connection.execute_wrapper(_down):
        assert values(run)["database_answers"] is False


def test_hits_and_sources_that_are_switched_off_are_named(run: Runner, settings: Any) -> None:
    """How many lookups the cache answered; who is not asked at all."""
    source, off = fake_source({"P001": "Tea"}), {**fake_source({}), "ENABLED": False}
    sources = {"only": source, "off": off}
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": sources, "STOP_CHECK": "cache"}}
    assert "The cache answered" not in run("catalog_status").out
    for _ in range(4):
        find_item("P001")
    out = run("catalog_status").out
    assert "The cache answered 3 of 4 lookups (75%) of the last 5 minutes." in out
    assert "Switched off in the settings: off" in out
    said = values(run)
    assert (said["lookups"]["hit_ratio"], said["disabled"]) == (0.75, ["off"])


def test_what_a_person_wrote_cannot_steer_a_terminal(run: Runner) -> None:
    """Escape sequences and line breaks of a reason are shown, not obeyed."""
    operating.isolate_source("default", "primary", "\x1b[31mred\nline")
    text = run("catalog_status").out
    assert "\x1b" not in text
    assert r"\x1b[31mred\nline" in text


# --- doing ----------------------------------------------------------------------------------------------------------


def test_isolate_and_restore(run: Runner) -> None:
    """The reason is kept for whoever reads it later."""
    done = run("catalog_status", "--isolate", "primary", "--reason", "maintenance")
    assert (done.code, done.out) == (
        0,
        "Catalog default: source primary is isolated: nobody calls it until it is restored.\n",
    )
    assert CatalogSource.objects.get().reason == "maintenance"
    primary = values(run)["sources"][0]
    assert (primary["state"], primary["may_call"], primary["isolated"]["reason"]) == ("isolated", False, "maintenance")
    assert find_item("P001").trace[0].reason == "isolated"
    assert run("catalog_status", "--isolate", "primary").code == 0
    assert run("catalog_status", "--restore", "primary").code == 0
    assert (values(run)["sources"][0]["state"], CatalogSource.objects.count()) == ("closed", 0)


def test_reset(run: Runner) -> None:
    """An open breaker is closed."""
    refuse("primary", "circuit_open")
    done = run("catalog_status", "--reset", "primary", "--json")
    assert json.loads(done.out) == {"catalog": "default", "source": "primary", "action": "reset", "done": True}
    assert values(run)["sources"][0]["state"] == "closed"


USAGE: dict[str, tuple[tuple[str, ...], int]] = {
    "a source of two catalogs": (("--isolate", "secondary"), 2),
    "a reason for nothing": (("--reason", "because"), 2),
    "a reason for a reset": (("--reset", "primary", "--reason", "because"), 2),
    "an unknown source": (("--isolate", "nope"), 1),
    "an unknown source of a catalog": (("--catalog", "default", "--reset", "nope"), 1),
    "an unknown catalog": (("--catalog", "nope"), 1),
    "restoring what is not out": (("--restore", "primary"), 1),
}


@pytest.mark.parametrize("case", USAGE)
def test_what_cannot_be_done_is_said(run: Runner, case: str) -> None:
    """1: configuration or nothing done; 2: usage. Nothing is printed as if it were done."""
    arguments, code = USAGE[case]
    done = run("catalog_status", *arguments)
    assert (done.code, done.out) == (code, "")
    assert CatalogSource.objects.count() == 0


def test_the_catalog_decides_between_equal_names(run: Runner) -> None:
    """Both have a source of that alias."""
    assert run("catalog_status", "--catalog", "other", "--isolate", "secondary").code == 0
    assert [(row.catalog, row.source) for row in CatalogSource.objects.all()] == [("other", "secondary")]


def test_a_cache_that_does_not_take_a_reset_makes_it_fail(run: Runner, settings: Any) -> None:
    """Exit code 1, and it says why."""
    settings.CACHES = {"default": {"BACKEND": "tests.stores.TimingOutCache", "LOCATION": uuid.uuid4().hex}}
    done = run("catalog_status", "--reset", "primary")
    assert (done.code, "the cache did not take it" in done.message) == (1, True)


def test_without_a_database_nothing_is_isolated(run: Runner) -> None:
    """Exit code 1, no traceback."""
    with connection.execute_wrapper(_down):
        done = run("catalog_status", "--isolate", "primary")
    assert (done.code, done.message) == (1, "Nothing was done: the database raised OperationalError.")


def _down(*_: object) -> Any:
    raise OperationalError("down")


def test_wrong_settings_are_told(run: Runner, settings: Any) -> None:
    """Exit code 1, with the text of the check."""
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"only": {"NOPE": 1}}}}
    assert run("catalog_status").code == 1
