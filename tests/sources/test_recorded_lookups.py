"""What does a whole lookup make of the recorded replies? Settings, checks, HTTP, adapter, classification, state."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.results import Reply
from catalog_fallback.services import find_item, find_items
from catalog_fallback.testing import override_catalog
from tests.loopback import Loopback, ok, reply
from tests.sites import words
from tests.sources import recorded

pytestmark = pytest.mark.skipif(not recorded.is_there(), reason=recorded.MISSING)

CASES = [case for case in recorded.cases() if len(case.asked) == 1]
#: Rows that ask for several IDs in one call, and one of the index that no row is about: three ISBN-10, all found.
THREE = recorded.Case(
    "openbd/found_three_isbn10_asked.json", "openbd", ("4798142417", "4873117526", "4798031801"), ("found",) * 3
)
BATCHES = [THREE, *(case for case in recorded.cases() if len(case.asked) > 1)]
#: Headers that describe the recorded framing, not the reply.
FRAMING = frozenset({"content-length", "content-encoding", "transfer-encoding", "connection"})
#: The words of checks.json → state of a catalog with this one source.
STATES = {"found": "found", "not_found": "not_found"}


@pytest.fixture
def upstream(settings: Any, transactional_db: None) -> Iterator[Loopback]:
    """One server, an empty cache and an empty stop list."""
    location = {"LOCATION": uuid.uuid4().hex}
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", **location}}
    with Loopback() as server:
        yield server


def source(adapter: str, url: str) -> dict[str, Any]:
    """Return what stands in SOURCES for an adapter."""
    module, name, options = recorded.ADAPTERS[adapter]
    return {
        "BACKEND": f"catalog_fallback.sources.{module}.{name}",
        "URL": url,
        "OPTIONS": options,
        "TIMEOUT": 10,
        "RATE_LIMIT": None,
    }


def headers_of(one: Reply) -> dict[str, str]:
    """What was recorded beside the body, cache directives and waits among it."""
    return {name: value for name, value in one.headers.items() if name not in FRAMING}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_lookup_of_a_recorded_reply(upstream: Loopback, case: recorded.Case) -> None:
    """A lookup ends as its row says; a reply that is no answer leaves it unavailable, never "not found"."""
    one = recorded.replies()[case.file]
    upstream.otherwise(reply(one.status, one.body, headers_of(one)))
    sources = {"only": source(case.adapter, upstream.url("/{id}"))}
    with override_catalog(SOURCES=sources, CONTACT="mail@example.com", BUDGET=10):
        try:
            lookup = find_item(case.asked[0])
        except InvalidItemID:
            assert case.expected == ("stop",)
            return
    (expected,) = case.expected
    assert str(lookup.state) == STATES.get(expected, "unavailable")
    assert recorded.word(lookup.trace[0].outcome, lookup.trace[0].reason) == expected
    assert upstream.calls() == 1


@pytest.mark.parametrize("case", BATCHES, ids=str)
def test_batch_of_a_recorded_reply(upstream: Loopback, case: recorded.Case) -> None:
    """Several IDs as they were typed, in one call: each has the state that its row says."""
    one = recorded.replies()[case.file]
    upstream.otherwise(reply(one.status, one.body, headers_of(one)))
    sources = {"only": source(case.adapter, upstream.url("/?isbn={id}"))}
    with override_catalog(SOURCES=sources, CONTACT="mail@example.com", BUDGET=10):
        lookups = find_items(case.asked)
    assert tuple(str(lookup.state) for lookup in lookups.values()) == case.expected
    assert upstream.calls() == 1


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ({"status": 1, "code": "5054070608074", "product": {"product_name": "Jam"}}, ("found", "ok")),
        ({"status": 0, "status_verbose": "product not found"}, ("unavailable", "no_name")),
    ],
    ids=["has a name", "has nothing"],
)
def test_unnamed_product_asks_the_next_source(upstream: Loopback, second: Any, expected: tuple[str, str]) -> None:
    """By default; and it is never "not found", for the first source says that it exists."""
    one = recorded.replies()["openfoodfacts/v0_found_no_product_name.json"]
    upstream.on("/first", reply(200, one.body))
    upstream.on("/second", ok(second))
    sources = {name: source("openfoodfacts", upstream.url(f"/{name}?code={{id}}")) for name in ("first", "second")}
    with override_catalog(SOURCES=sources, CONTACT="mail@example.com", BUDGET=10, NEGATIVE_TTL=60):
        assert words(find_item("5054070608074")) == expected
        assert words(find_item("5054070608074")) == expected
    assert upstream.calls("/second") == (1 if expected[0] == "found" else 2)
