"""Does the demo page show how catalogs and cache stand, where the time went, and what is worth trying?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from catalog_fallback.operating import isolate_source, restore_source
from catalog_fallback.results import Attempt, CacheStatus, Outcome, State, make_lookup
from catalog_fallback.services import find_item, stop_item
from catalog_fallback.testing import FrozenClock
from catalogs.server import CatalogServer
from portal import live, own_data, switchboard
from portal.suggestions import SUGGESTIONS
from portal.timeline import timeline
from tests.example.pages import facts, text_of

pytestmark = pytest.mark.django_db(transaction=True)

P001 = {"catalog": "default", "id": "P001"}


def test_the_page_and_the_poll_say_the_same(site: Client) -> None:
    """Every text that the script may replace is on the page as the poll sends it."""
    page = site.get("/", {**P001, "id": "P002"}).content.decode()
    shown = dict(re.findall(r'data-live="([^"]+)"[^>]*>([^<]*)<', page))
    polled = facts(site, id="P002")
    assert set(shown) == set(polled)
    changing = {"item.fresh"}
    assert {key: text for key, text in shown.items() if key not in changing} == {
        key: text for key, text in polled.items() if key not in changing
    }


def test_a_poll_calls_nobody_and_keeps_nothing(site: Client, catalogs: CatalogServer) -> None:
    """It looks nothing up."""
    polled = facts(site)
    assert polled["item.entry"] == "none that is fresh"
    assert polled["item.next"] == "the catalogs, in order"
    assert catalogs.switchboard.as_dict()["primary"]["calls"] == 0


def test_the_kept_answer_is_live(site: Client, frozen_clock: FrozenClock) -> None:
    """After a look-up it is there, with its source and its end; after a stop it is not shown."""
    find_item("P002")
    frozen_clock.advance(18)
    polled = facts(site, id="P002")
    assert polled["item.entry"] == "found, from secondary"
    assert polled["item.fresh"] == "2027-01-15 08:01:00 UTC, another 42 s"
    assert polled["item.next"] == "nobody: the cache has it"
    stop_item("P002")
    polled = facts(site, id="P002")
    assert (polled["item.stop"], polled["item.entry"]) == ("stopped", "none that is fresh")
    assert polled["item.next"] == "nobody: it is withdrawn"


def test_a_database_that_does_not_answer_is_said() -> None:
    """ "Could not be asked" is not "not stopped"."""
    assert live._stop_list(None).text == "could not be asked"


def test_cool_down_and_rate_limit_are_live(site: Client, catalogs: CatalogServer) -> None:
    """A Retry-After and a limit that is used up are seen, with the time that they last."""
    catalogs.switchboard.switch("primary", "503-wait")
    for number in range(6):
        find_item(f"P40{number}", catalog="shop")
    polled = facts(site, catalog="shop")
    assert re.fullmatch(r"another [345](\.\d)? s", polled["primary.cool"])
    assert "asked to be left alone; again in" in polled["primary.may"]
    assert polled["secondary.rate"] == "0 of 5 calls in 60 s left"
    assert "our own limit of calls is reached" in polled["secondary.may"]
    assert polled["primary.counted"] == "1 call since the last reset"
    assert polled["secondary.counted"] == "5 calls since the last reset"


def test_an_isolated_source_is_live(site: Client) -> None:
    """What an operator took out is shown as such."""
    isolate_source("default", "primary")
    polled = facts(site)
    restore_source("default", "primary")
    assert polled["primary.breaker"] == "isolated by an operator"
    assert polled["primary.may"] == "not called: an operator has isolated it"


@pytest.mark.parametrize(
    "query",
    [{"catalog": "nowhere"}, {"id": "no good"}, {"catalog": ""}],
    ids=["catalog", "id", "no-catalog"],
)
def test_a_poll_for_nonsense_is_a_400(site: Client, query: dict[str, str]) -> None:
    """And it says what was wrong."""
    reply = site.get("/state.json", {**P001, **query})
    assert reply.status_code == 400
    assert json.loads(reply.content)["errors"]


def test_a_poll_without_an_item_is_about_the_catalogs(site: Client) -> None:
    """The first page has no item yet."""
    reply = site.get("/state.json", {"catalog": "default"})
    assert {key.partition(".")[0] for key in json.loads(reply.content)["facts"]} == {"primary", "secondary"}


def test_a_source_that_is_not_simulated_has_no_switch(site: Client) -> None:
    """A real catalog cannot be broken from here."""
    source = {"primary": {"URL": "https://primary.example.com/items/{id}"}}
    with override_settings(CATALOG_FALLBACK={"default": {"SOURCES": source}}):
        page = site.get("/").content
    assert b"source-primary" in page
    assert b"do/fault/" not in page


def test_a_stale_answer_is_marked(site: Client, catalogs: CatalogServer, frozen_clock: FrozenClock) -> None:
    """It is shown with its age where the site allows it, and the page says so."""
    source = {"primary": {"URL": switchboard.address("/primary/items/{id}")}}
    rules = {"SOURCES": source, "TTL": 5, "STALE_IF_ERROR": 30, "KEY_PREFIX": "portal"}
    with override_settings(CATALOG_FALLBACK={"default": rules}):
        find_item("P001")
        frozen_clock.advance(6)
        catalogs.switchboard.switch("primary", "down")
        page = text_of(site.get("/", P001).content)
    assert "Found: Blue teapot" in page
    assert "This answer is an older one" in page
    assert "Cache stale" in page


@pytest.mark.parametrize(
    ("catalog", "words"),
    [
        ("default", "Answers are kept for 60 s. A look-up takes at most 5 s."),
        ("shop", "After that, the site shows its own data."),
    ],
)
def test_the_rules_of_a_catalog_are_said(site: Client, catalog: str, words: str) -> None:
    """How long answers are kept, and what happens then."""
    assert words in text_of(site.get("/", {"catalog": catalog}).content)


# ------------------------------------------------------------------------------------------------ time line


@pytest.fixture
def lookup() -> Iterator[Any]:
    """A look-up of which one call ran into its limit, one was not made, and one answered."""
    trace = (
        Attempt("primary", Outcome.TEMPORARY, "timeout", 2000.0),
        Attempt("other", Outcome.TEMPORARY, "circuit_open", 0.0, called=False),
        Attempt("secondary", Outcome.FOUND, "ok", 500.0),
    )
    return make_lookup("P001", "default", State.FOUND, "ok", {}, "secondary", CacheStatus.MISS, trace=trace)


def test_bars_follow_each_other_inside_the_budget(site: Client, lookup: Any) -> None:
    """Each begins where the last one ended; positions are percent of the budget, with a point in every language."""
    with override_settings(LANGUAGE_CODE="es"):
        drawn = timeline(lookup, 2.6)
    assert [(bar.start, bar.width) for bar in drawn.bars] == [
        ("0.000", "40.000"),
        ("40.000", "0.800"),
        ("40.000", "10.000"),
    ]
    assert [bar.limit_width for bar in drawn.bars] == ["20.000", "0.000", "20.000"]
    assert (drawn.spent, drawn.budget) == ("2.6000", "5.0000")
    assert [bar.called for bar in drawn.bars] == [True, False, True]


def test_a_budget_that_was_overrun_still_fits_the_picture(site: Client, lookup: Any) -> None:
    """The scale grows, and no bar leaves it."""
    drawn = timeline(lookup, 10.0)
    assert all(float(bar.start) + float(bar.width) <= 100 for bar in drawn.bars)


def test_the_time_line_is_spoken(site: Client, catalogs: CatalogServer) -> None:
    """Each bar says in words what it draws."""
    page = site.get("/", {**P001, "id": "P002"}).content.decode()
    assert len(re.findall(r'<svg class="bar"[^>]*role="img" aria-label="began after [^"]+, took [^"]+"', page)) == 2


# ------------------------------------------------------------------------------------------------ what is offered


def test_suggestions_lead_somewhere(site: Client) -> None:
    """Each suggested ID of a catalog that the test site has is one, and has a hint."""
    for each in SUGGESTIONS:
        assert each.hint
        if each.catalog == "default":
            assert site.get("/look-up.json", {"catalog": each.catalog, "id": each.item_id}).status_code == 200


@pytest.mark.parametrize(("item_id", "is_known"), [("P001", True), ("P404", False)], ids=["known", "unknown"])
def test_the_shops_own_words(item_id: str, is_known: bool) -> None:
    """It knows what is on its shelves, and nothing else."""
    found = own_data.own_words(make_lookup(item_id, "shop", State.UNAVAILABLE, "incomplete_search"))
    assert (found is not None) is is_known


def test_own_data_are_marked_and_no_answer(site: Client, catalogs: CatalogServer) -> None:
    """The headline stays "could not find out"; the site's own name for the item is beside it."""
    for name in ("primary", "secondary"):
        catalogs.switchboard.switch(name, "down")
    page = site.get("/", {**P001, "catalog": "shop"}).content
    assert b"data-announce>Could not find out</h2>" in page
    assert "shown because nobody could be asked: Teapot (as the shelf says)" in text_of(page)
