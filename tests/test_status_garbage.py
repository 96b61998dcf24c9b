"""Can anything that a cache may hold keep an operator from seeing how the sources stand?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import pytest
from django.test import override_settings
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catalog_fallback import classify, status
from catalog_fallback.admin.catalog_words import catalog_part
from catalog_fallback.fallback import chain_of
from catalog_fallback.hit_counts import Answered
from catalog_fallback.management.status_text import shown
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.store import ProcessStore
from catalog_fallback.statistics import Figures, Statistics
from catalog_fallback.status import Overview, overview
from catalog_fallback.status_values import all_values
from catalog_fallback.testing import fake_source

NUMBERS = (
    st.integers()
    | st.sampled_from([-1, 1 << 21, 1 << 62, (1 << 63) - 1, 1 << 63, 10**400, -(10**400)])
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.sampled_from([253_402_300_799, 253_402_300_800, 1e300, -1.0, True])
)
PLAIN = NUMBERS | st.none() | st.text(max_size=80) | st.binary(max_size=20) | st.just("x" * 100_000)
GARBAGE = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
#: Values of the right form with wrong contents: last failures, links of breakers and cool-downs.
FAILURES = st.tuples(st.just("timeout") | st.text(max_size=80), NUMBERS) | st.lists(PLAIN, min_size=2, max_size=2)
LINKS = st.fixed_dictionaries(
    {"g": st.sampled_from(["0", "a", "b"])},
    optional={
        "state": st.sampled_from(["open", "half_open", "closed", "isolated"]) | PLAIN,
        "since": PLAIN,
        "open_for": PLAIN,
        "reason": PLAIN,
        "until": st.dictionaries(st.sampled_from(["stop", "temporary", "x"]), PLAIN) | PLAIN,
    },
)
VALUES = GARBAGE | FAILURES | LINKS


@pytest.fixture(scope="module", autouse=True)
def _site() -> Iterator[None]:
    """Two sources with every guard, over a store that a test may replace; no database."""
    every = {"BREAKER": {"CONSECUTIVE_FAILURES": 2}, "RATE_LIMIT": {"CALLS": 30, "PER": 60}}
    sources = {"primary": fake_source(failure=503, **every), "secondary": fake_source({"P001": "Tea"}, **every)}
    dummy = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    with override_settings(CATALOG_FALLBACK={"default": {"SOURCES": sources}}, CACHES=dummy):
        yield


def seen(values: list[Any]) -> Overview:
    """What is seen when these values are under the keys that are asked for, in turn."""

    def get_many(keys: tuple[str, ...]) -> Mapping[str, Any]:
        return {key: values[place % len(values)] for place, key in enumerate(keys)}

    store = chain_of["default"].stores.shared
    with mock.patch.object(store, "get_many", get_many), mock.patch.object(status, "_rows", dict):
        return overview()


@given(values=st.lists(VALUES, min_size=1, max_size=7))
@example(values=[0])
@example(values=[float("nan")])
@example(values=[["timeout", float("inf")]])
@example(values=[{"g": "a", "until": {"stop": 10**400, "temporary": float("nan")}}])
@example(values=[{"g": "a", "state": "open", "since": float("nan"), "open_for": 1e300, "reason": "x" * 99}])
@settings(max_examples=300)
def test_whatever_the_cache_holds_it_can_be_shown(values: list[Any]) -> None:
    """On a terminal, as JSON that every parser takes, and in the admin."""
    found = seen(values)
    text = shown(found.catalogs[0])
    assert text.startswith("Catalog default")
    assert len(text) < 10_000
    json.dumps(all_values(found), allow_nan=False).encode()
    part = catalog_part(found.catalogs[0])
    assert [row.alias for row in part.rows] == ["primary", "secondary"]
    assert len(repr(part)) < 20_000


def test_a_number_that_cannot_be_printed_is_none() -> None:
    """More than 4,300 digits: Python refuses to make a text of them (and so does Hypothesis)."""
    huge = 10**5000
    for values in ([huge], [-huge], [["timeout", huge]], [{"g": "a", "state": "open", "since": huge, "until": huge}]):
        found = seen(values)
        shown(found.catalogs[0])
        json.dumps(all_values(found), allow_nan=False)
        assert catalog_part(found.catalogs[0]).rows[0].calls == "none"


@given(values=st.lists(VALUES, min_size=1, max_size=7))
@example(values=[1 << 21])
@example(values=[1 << 31])
@example(values=[1 << 42])
def test_figures_stay_figures(values: list[Any]) -> None:
    """No count is negative or beyond what can have been counted; parts are not larger than their whole."""
    found = seen(values).catalogs[0]
    assert 0 <= found.answered.hits <= found.answered.lookups < 1 << 40
    for source in found.sources:
        figures = source.figures
        assert 0 <= figures.timeouts <= figures.failures <= figures.calls < 1 << 40
        for percent in (0, 50, 95, 100):
            seconds = figures.percentile(percent)
            assert (seconds is None) == (figures.calls == 0)
            assert seconds is None or 0 <= seconds <= 10
        assert source.guard.calls_left is not None
        assert 0 <= source.guard.calls_left <= 30


@given(value=GARBAGE)
def test_one_bad_number_spoils_no_other(value: Any) -> None:
    """What was counted right is still shown; garbage beside it is as good as missing."""
    store = ProcessStore()
    made = Statistics(store, Names("default", "primary"))
    made.note(classify.verdict("ok"), 0.02)
    made.write()
    written = set(store._entries)
    for key in made.keys():  # noqa: SIM118 - no dict
        if key not in written:
            store.set(key, value, 60)
    figures = made.read()
    if not (type(value) is int and 0 < value < 1 << 63):
        assert (figures.calls, figures.failures) == (1, 0)
        assert figures.percentile(50) is not None


def test_nothing_is_nothing() -> None:
    """An empty cache shows no calls, and no failures."""
    found = seen([None]).catalogs[0]
    assert found.answered == Answered()
    assert all(source.figures == Figures() for source in found.sources)
