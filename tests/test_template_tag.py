"""Does a template look an item up, and does the example say the four states in plain words?"""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.template import Context, Template, TemplateSyntaxError

from catalog_fallback import services
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.results import CacheStatus, Lookup, State
from tests.sites import SIMULATED

LOAD = "{% load catalog_fallback %}"
SHOW = '{% include "catalog_fallback/item.html" %}'


@pytest.fixture(autouse=True)
def _shop(settings: Any, transactional_db: None) -> None:
    """Two catalogs."""
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": uuid.uuid4().hex}
    }
    options = {"items": {"P001": "<b>Tea</b>"}, "failing": {"BUSY": 503}}
    source = {"BACKEND": SIMULATED, "OPTIONS": options, "BREAKER": None}
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"only": source}}, "other": {"SOURCES": {"only": source}}}


def render(text: str, **context: Any) -> str:
    """What the template shows."""
    return Template(LOAD + text).render(Context(context))


def test_the_tag_keeps_the_lookup_under_a_name() -> None:
    """Everything of it is an attribute."""
    text = '{% catalog_item "P001" as lookup %}{{ lookup.is_found }} {{ lookup.state }} {{ lookup.item.name }}'
    assert render(text) == "True found &lt;b&gt;Tea&lt;/b&gt;"


def test_the_tag_takes_variables_and_a_catalog() -> None:
    """The arguments of find_item()."""
    text = "{% catalog_item wanted catalog=where language=LANG as lookup %}{{ lookup.catalog }}:{{ lookup.item_id }}"
    assert render(text, wanted="P001", where="other", LANG="de") == "other:P001"


def test_a_bad_id_is_an_error_of_the_template() -> None:
    """As everywhere: misuse raises."""
    with pytest.raises(InvalidItemID):
        render('{% catalog_item "no good" as lookup %}')


def test_the_tag_needs_an_id() -> None:
    """Said when the template is compiled."""
    with pytest.raises(TemplateSyntaxError):
        render("{% catalog_item as lookup %}")


@pytest.mark.parametrize(
    ("item_id", "words"),
    [
        pytest.param("P001", "<h2>&lt;b&gt;Tea&lt;/b&gt;</h2>", id="found"),
        pytest.param("P404", "<h2>No such item</h2>", id="not-found"),
        pytest.param("BUSY", "<h2>Could not find out</h2>", id="unavailable"),
        pytest.param("P666", "<h2>Withdrawn</h2>", id="stopped"),
    ],
)
def test_the_four_states_in_plain_words(item_id: str, words: str) -> None:
    """Each says what it means; only one of them has an item."""
    services.stop_item("P666")
    shown = render('{% catalog_item id as lookup %}{% include "catalog_fallback/item.html" %}', id=item_id)
    assert words in shown
    assert ("Tea" in shown) is (item_id == "P001")
    assert shown.count("<h2>") == 1


def test_a_stale_item_says_how_old_it_is() -> None:
    """And that the catalogs cannot be reached."""
    lookup = Lookup("P1", "default", State.FOUND, "ok", {"name": "Tea"}, "only", CacheStatus.STALE, 43_200.0, 1.0)
    assert "Last seen: Jan. 1, 1970" in render(SHOW, lookup=lookup)


def test_fallback_data_says_that_nobody_could_be_asked() -> None:
    """The site's own words about the item, and the truth about it."""
    lookup = Lookup("P1", "default", State.UNAVAILABLE, "deadline", {"name": "Tea?"}, degraded=True)
    shown = render(SHOW, lookup=lookup)
    assert "<h2>Tea?</h2>" in shown
    assert "does not mean that the item is missing" in shown
