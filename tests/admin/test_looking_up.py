"""Does "Look up an ID" explain without calling anybody, look up when told to, and show nothing that it must not?"""

from __future__ import annotations

import re
import uuid
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, connection

from catalog_fallback import services
from catalog_fallback.admin import looking_up
from catalog_fallback.results import Attempt, Lookup, Outcome, State
from tests.admin.operations import LOOKUP, operator, sign_in, text_of
from tests.sites import ALSO_FOUND, FOUND, NOT_FOUND, TEMPORARY, Site, found

P001 = {"catalog": "default", "item_id": "P001"}


@pytest.fixture(autouse=True)
def _urls(site: Site) -> None:
    """Two loopback catalogs; the autouse settings of the admin's tests come first."""


def test_the_form_is_empty_at_first(site: Site) -> None:
    """No errors, no explanation."""
    page = operator().get(LOOKUP)
    assert (page.status_code, page.context["form"].is_bound) == (200, False)
    assert "This field is required" not in text_of(page)


def test_explaining_calls_nobody_and_takes_nothing(site: Site) -> None:
    """A GET, for whoever may view; the form keeps what was asked."""
    site.say(FOUND)
    page = sign_in("view").get(LOOKUP, P001)
    text = text_of(page)
    assert "On the stop list no In the cache nothing" in text
    assert "primary yes ok – secondary yes ok –" in text
    assert 'value="P001"' in page.content.decode()
    assert site.calls == (0, 0)


def test_explaining_names_entry_and_stop(site: Site) -> None:
    """What is kept, and that it is not shown."""
    site.say(FOUND)
    site.find()
    assert "In the cache found, from primary, fresh until " in text_of(operator().get(LOOKUP, P001))
    services.stop_item("P001")
    page = operator().get(LOOKUP, P001)
    assert "On the stop list yes: it is not shown" in text_of(page)
    assert "Tea" not in text_of(page)


def test_explaining_claims_no_call_that_is_not_made(site: Site) -> None:
    """Of a stopped item nobody is asked; of a kept one neither, and the page has to be right for it as well."""
    site.say(FOUND)
    ordered, nobody = "The sources, in the order in which they are asked", "The item is stopped: a lookup asks none"
    for prepare, told in ((site.find, ordered), (partial(services.stop_item, "P001"), nobody)):
        prepare()
        text = text_of(operator().get(LOOKUP, P001))
        assert [words in text for words in (ordered, nobody)] == [told is ordered, told is nobody]
        assert "would ask" not in text
    assert site.find(refresh=True).is_stopped
    assert site.calls == (1, 0)


def test_without_the_stop_list_it_says_unknown(site: Site) -> None:
    """The database in trouble is shown, not raised."""
    browser = operator()

    def run(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "catalog_fallback_" in sql:
            raise OperationalError("down")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(run):
        page = browser.get(LOOKUP, P001)
    assert "unknown: the database cannot be asked" in text_of(page)


def test_a_real_lookup_shows_its_trace(site: Site) -> None:
    """Outcome, reason and time of each source as a table, and as bars against the budget."""
    site.say(TEMPORARY, ALSO_FOUND)
    page = operator().post(LOOKUP, P001)
    text = text_of(page)
    assert site.calls == (1, 1)
    assert "State found ok Cache miss: the cache had no answer Source secondary" in text
    assert re.search(r"1 primary could not find out now: the next source is asked http_503 (< )?[\d.]+ m?s", text)
    assert re.search(r"2 secondary found ok (< )?[\d.]+ m?s", text)
    assert "of a budget of 5 s" in text
    assert "name Coffee" in text
    svg = re.search(r"<figure.*?</figure>", page.content.decode(), flags=re.DOTALL)
    assert svg is not None
    assert svg[0].count("<rect ") == 2
    assert "style" not in svg[0]
    assert "What the next lookup would meet" in text
    assert "In the cache found, from secondary" in text


def test_a_source_that_was_refused_has_no_bar(site: Site) -> None:
    """It was not called, and the table says so."""
    site.configure({"BREAKER": {"CONSECUTIVE_FAILURES": 1}})
    site.say(TEMPORARY, ALSO_FOUND)
    site.find("P002")
    page = operator().post(LOOKUP, P001)
    assert "circuit_open not called" in text_of(page)
    assert page.content.decode().count("<rect ") == 1


def test_a_hit_has_no_trace_unless_it_is_refreshed(site: Site) -> None:
    """The box asks the sources."""
    site.say(FOUND)
    browser = operator()
    browser.post(LOOKUP, P001)
    page = browser.post(LOOKUP, P001)
    assert "hit: kept from an earlier answer, nobody was asked" in text_of(page)
    assert "<figure" not in page.content.decode()
    assert site.calls == (1, 0)
    assert "Who was asked, in this order" in text_of(browser.post(LOOKUP, {**P001, "refresh": "on"}))
    assert site.calls == (2, 0)


@pytest.mark.parametrize(
    ("first", "words"),
    [(NOT_FOUND, "not found: every source says"), (TEMPORARY, "unavailable: it could not be found out")],
    ids=["not-found", "unavailable"],
)
def test_not_found_and_could_not_find_out_are_told_apart(site: Site, first: Any, words: str) -> None:
    """Here as everywhere."""
    site.say(first, NOT_FOUND)
    assert words in text_of(operator().post(LOOKUP, P001))


def test_a_stopped_item_is_never_shown(site: Site) -> None:
    """Whatever the cache and the sources have; the cache is not blamed."""
    site.say(FOUND, ALSO_FOUND)
    site.find()
    services.stop_item("P001")
    for more in ({}, {"refresh": "on"}):
        page = operator().post(LOOKUP, {**P001, **more})
        assert "stopped: it is on the stop list and is not shown" in text_of(page)
        assert "Tea" not in text_of(page)
        assert "the cache had no answer" not in text_of(page)


def test_what_upstreams_say_is_text(site: Site) -> None:
    """In names, in nested values, in the names of fields."""
    evil = "<script>alert(1)</script>"
    site.say(found(name=evil, **{evil: [evil]}))
    page = operator().post(LOOKUP, P001)
    assert evil in text_of(page)
    assert "<script>alert" not in page.content.decode()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"item_id": "no good"}, "is no item ID of catalog"),
        ({"item_id": ""}, "This field is required."),
        ({"item_id": "<script>"}, "is no item ID of catalog"),
        ({"catalog": "nope"}, "Select a valid choice"),
        ({"language": "日本語"}, "language="),
        ({"vary": "colour"}, "Each line has to be name=value."),
        ({"vary": "colour=red"}, "vary has colour, which no source"),
    ],
    ids=["bad-id", "no-id", "markup", "catalog", "language", "vary-form", "vary-name"],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_what_cannot_be_looked_up_is_explained(site: Site, change: dict[str, str], text: str, method: str) -> None:
    """In the form; nobody is called."""
    page = getattr(operator(), method)(LOOKUP, {**P001, **change})
    assert page.status_code == 200
    assert text in text_of(page)
    assert "<script>is" not in page.content.decode()
    assert site.calls == (0, 0)


def test_language_and_variant_go_along(site: Site) -> None:
    """Into the question, and through the button."""
    site.configure({"URL": f"{site.primary.template}?colour={{colour}}"})
    site.say(FOUND)
    asked = {**P001, "language": "ja", "vary": "colour=red"}
    page = operator().get(LOOKUP, asked)
    assert 'name="vary" value="colour=red"' in page.content.decode()
    page = operator().post(LOOKUP, asked)
    assert "State found" in text_of(page)
    assert services.find_item("P001", language="ja", vary={"colour": "red"}).cache == "hit"


def test_a_post_without_its_token_is_refused(site: Site) -> None:
    """Nobody else's page can make an operator's browser call an upstream."""
    assert operator(enforce_csrf_checks=True).post(LOOKUP, P001).status_code == 403
    assert site.calls == (0, 0)


def test_long_values_and_many_fields_are_cut() -> None:
    """An item of a megabyte does not make a page of a megabyte."""
    item = {"id": "P001", "name": "x" * 10_000, **{f"field{number}": number for number in range(1000)}}
    lookup = Lookup("P001", "default", State.FOUND, "ok", item)
    shown = looking_up.found(lookup, 0.1, 5.0).item
    assert len(shown) == 100
    assert max(len(value) for _, value in shown) == 500


def test_a_stopped_lookup_shows_no_item_even_if_it_had_one() -> None:
    """A last net: the page does not rely on what a lookup leaves out."""
    lookup = Lookup("P001", "default", State.STOPPED, "stopped", {"id": "P001", "name": "Tea"})
    assert looking_up.found(lookup, 0.1, 5.0).item == ()


def test_an_attempt_beyond_the_budget_stays_in_the_picture() -> None:
    """The budget's line moves to the left instead."""
    trace = (
        Attempt("primary", Outcome.TEMPORARY, "timeout", 9000.0),
        Attempt("secondary", Outcome.STOP, "deadline", 0.0),
    )
    shown = looking_up.found(Lookup(uuid.uuid4().hex, "default", State.UNAVAILABLE, "deadline", trace=trace), 9.1, 3.0)
    assert float(shown.timeline.budget_x) == pytest.approx(200)
    ends = [float(line.bar.x) + float(line.bar.width) for line in shown.lines if line.bar is not None]
    assert max(ends) <= shown.timeline.width
