"""Is an item looked at among others as it is alone? Gates and entries of several items at once, and what they say."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import caches

from catalog_fallback import clock, entry_form
from catalog_fallback.cache import EntryCache, entries_of
from catalog_fallback.entry_form import Entry, Kept, hit
from catalog_fallback.queries import Query
from catalog_fallback.results import CacheStatus, Lookup, State
from catalog_fallback.testing import FrozenClock
from tests.shops import Shop

pytestmark = pytest.mark.django_db(transaction=True)

#: One item in each condition.
FRESH, EXPIRED, UNCHECKED, MARKED, NO_ENTRY, NO_GATE, NOTHING = (f"P00{number}" for number in range(1, 8))


@pytest.fixture
def entries(settings: Any, frozen_clock: FrozenClock) -> EntryCache:
    """A cache that holds an item in each condition."""
    shop = Shop(settings, STALE_IF_ERROR=60)
    entries = entries_of["default"]
    shop.find(EXPIRED)
    frozen_clock.advance(61)
    for item_id in (FRESH, UNCHECKED, MARKED, NO_ENTRY, NO_GATE):
        shop.find(item_id)
    item = {"id": UNCHECKED, "name": "Tea"}
    now = clock.wall()
    unchecked = Entry(State.FOUND, now, now + 60, now + 120, "only", item, is_checked=False)
    entries.keep(shop.query(UNCHECKED), shop.gate(UNCHECKED), unchecked)
    token = entry_form.new_token(is_stopped=True)
    caches["default"].set(shop.query(MARKED).gate_key, token, 300)
    entries.keep_stopped(shop.query(MARKED), token)
    caches["default"].delete(shop.query(NO_ENTRY).entry_key)
    caches["default"].delete(shop.query(NO_GATE).gate_key)
    shop.shelf.log.clear()
    return entries


def queries(entries: EntryCache) -> list[Query]:
    """The items, in no order that means anything."""
    ids = (NO_GATE, FRESH, NOTHING, EXPIRED, MARKED, UNCHECKED, NO_ENTRY)
    return [entries.query(item_id) for item_id in ids]


def test_reading_several_is_reading_each(entries: EntryCache) -> None:
    """Answers and what is in hand are the same, in the order asked."""
    asked = queries(entries)
    together = entries.read_many(asked)
    assert together == [entries.read(query) for query in asked]
    assert [query.item_id for query, one in zip(asked, together, strict=True) if isinstance(one, Lookup)] == [FRESH]


def test_looking_at_several_is_looking_at_each(entries: EntryCache) -> None:
    """Looking answers nothing, not even with a fresh entry: it says what is there."""
    asked = queries(entries)
    together = entries.look_many(asked)
    assert together == [entries.look(query) for query in asked]
    held = {query.item_id: one for query, one in zip(asked, together, strict=True)}
    assert {item_id for item_id, one in held.items() if one.entry is not None} == {FRESH, EXPIRED, UNCHECKED, MARKED}
    assert {item_id for item_id, one in held.items() if one == Kept()} == {NO_GATE, NOTHING}
    assert held[NO_ENTRY].gate is not None


def test_an_entry_that_may_not_answer_is_kept_in_hand(entries: EntryCache) -> None:
    """Expired, unchecked, or under a gate with the mark: the lookup has to go on, and may need it."""
    for item_id in (EXPIRED, UNCHECKED, MARKED):
        query = entries.query(item_id)
        assert entries.read(query) == entries.look(query)


@pytest.mark.parametrize("method", ["read_many", "look_many"])
def test_several_take_one_round_trip(entries: EntryCache, settings: Any, method: str) -> None:
    """However many; none take none, and the same item twice is asked for once."""
    log = caches["default"].shelf.log
    assert getattr(entries, method)([]) == []
    assert log == []
    asked = [*queries(entries), *queries(entries)]
    assert len(getattr(entries, method)(asked)) == len(asked)
    assert [(name, len(keys)) for name, keys in log] == [("get_many", len(asked))]


@pytest.mark.parametrize(
    ("state", "reason", "item"),
    [
        pytest.param(State.FOUND, "ok", {"id": "P001", "name": "Tea"}, id="found"),
        pytest.param(State.NOT_FOUND, "all_not_found", None, id="not found"),
        pytest.param(State.STOPPED, "stopped", None, id="stopped"),
    ],
)
def test_an_entry_gives_its_own_answer(settings: Any, state: State, reason: str, item: dict[str, str] | None) -> None:
    """State, reason, item and provenance are those of the entry; no source was called."""
    query = Shop(settings).query("P001")
    lookup = hit(query, Entry(state, 1_000.0, 2_000.0, 3_000.0, "only", item))
    assert (lookup.item_id, lookup.catalog, lookup.state, lookup.reason) == ("P001", "default", state, reason)
    assert (lookup.item, lookup.source, lookup.cache, lookup.trace) == (item, "only", CacheStatus.HIT, ())
    assert lookup.fetched_at is not None
    assert lookup.expires_at is not None
    assert (lookup.fetched_at.timestamp(), lookup.expires_at.timestamp()) == (1_000.0, 2_000.0)


def test_the_mark_of_a_gate() -> None:
    """Only a text that begins with it carries it; what is in the cache may be anything."""
    assert entry_form.is_marked(entry_form.new_token(is_stopped=True)) is True
    others = (entry_form.new_token(), entry_form.new_token(is_stopped=False), "", None, 5, ["s"], b"s" * 33)
    assert [entry_form.is_marked(gate) for gate in others] == [False] * len(others)
