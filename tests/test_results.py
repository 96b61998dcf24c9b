"""Are the answers what the documentation says: immutable values with these fields, words and JSON?"""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from django.template import Context, Template

from catalog_fallback.exceptions import ItemNotFound, ItemStopped, ItemUnavailable
from catalog_fallback.results import (
    Attempt,
    CacheStatus,
    Explanation,
    Lookup,
    NoReply,
    Outcome,
    Reply,
    Request,
    SourceExplanation,
    State,
    Verdict,
    make_lookup,
)

FETCHED_AT = 1_800_000_000.25
ITEM = {"id": "P001", "name": "Tea", "tags": ["a"]}
TRACE = (Attempt("first", Outcome.TEMPORARY, "timeout", 12.34567), Attempt("second", Outcome.FOUND, "ok", 1.0))
FIELDS: dict[str, Any] = {
    "item_id": "P001",
    "catalog": "default",
    "state": State.FOUND,
    "reason": "ok",
    "item": ITEM,
    "source": "second",
    "cache": CacheStatus.MISS,
    "fetched_at": FETCHED_AT,
    "expires_at": FETCHED_AT + 60,
    "trace": TRACE,
}


def lookup(**changes: Any) -> Lookup:
    """A found lookup with these changes."""
    return Lookup(**{**FIELDS, **changes})


def ended(state: State, reason: str, **changes: Any) -> Lookup:
    """A lookup without an item."""
    return Lookup("P001", "default", state, reason, **changes)


def test_the_fields() -> None:
    """Everything is an attribute; moments are aware datetimes."""
    one = lookup()
    assert (one.item_id, one.catalog, one.state, one.reason) == ("P001", "default", "found", "ok")
    assert (one.item, one.source, one.cache, one.trace) == (ITEM, "second", "miss", TRACE)
    assert one.fetched_at == datetime.fromtimestamp(FETCHED_AT, UTC)
    assert one.expires_at == datetime.fromtimestamp(FETCHED_AT + 60, UTC)
    assert (one.degraded, one.retry_after) == (False, None)


def test_the_defaults() -> None:
    """What nobody knows is None, not a guess."""
    one = ended(State.UNAVAILABLE, "deadline")
    assert (one.item, one.source, one.cache, one.trace) == (None, None, "miss", ())
    assert (one.fetched_at, one.expires_at, one.degraded, one.retry_after) == (None, None, False, None)


def test_both_ways_to_make_one_are_the_same() -> None:
    """The fast one is no other kind of thing."""
    assert type(make_lookup(**FIELDS)) is Lookup
    assert make_lookup(**FIELDS) == lookup()


@pytest.mark.parametrize("name", [*FIELDS, "degraded", "retry_after", "_fetched_at", "brand_new"])
def test_it_is_immutable(name: str) -> None:
    """Nothing can be set or deleted."""
    one = lookup()
    with pytest.raises(AttributeError):
        setattr(one, name, "changed")
    with pytest.raises(AttributeError):
        delattr(one, name)
    assert one == lookup()
    assert not hasattr(one, "__dict__")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("item_id", "P002"),
        ("catalog", "other"),
        ("state", State.NOT_FOUND),
        ("reason", "other"),
        ("item", {"id": "P001", "name": "Coffee"}),
        ("source", "first"),
        ("cache", CacheStatus.STALE),
        ("fetched_at", FETCHED_AT + 1),
        ("expires_at", None),
        ("trace", ()),
        ("degraded", True),
        ("retry_after", 0.0),
    ],
)
def test_every_field_counts_for_equality(name: str, value: Any) -> None:
    """Two that differ in anything are two."""
    assert lookup() == lookup()
    assert lookup(**{name: value}) != lookup()


def test_it_is_no_other_kind_of_thing() -> None:
    """Comparing with something else is no error."""
    assert lookup() != "P001"
    assert lookup() != FIELDS


def test_equal_lookups_have_equal_hashes() -> None:
    """So a set holds one of them, although the item is a dict."""
    assert len({lookup(), lookup(), lookup(source="first")}) == 2


def test_it_can_be_copied_and_pickled() -> None:
    """A task queue may carry it."""
    one = lookup(retry_after=5.0, degraded=True)
    for other in (copy.copy(one), copy.deepcopy(one), *(pickle.loads(pickle.dumps(one, p)) for p in range(2, 6))):
        assert other == one
        assert type(other) is Lookup


@pytest.mark.parametrize("state", State)
def test_exactly_one_state_is_true(state: State) -> None:
    """The four properties are the four states."""
    one = ended(state, "x")
    properties = {each: getattr(one, f"is_{each}") for each in State}
    assert properties == {each: each is state for each in State}


@pytest.mark.parametrize("cache", CacheStatus)
def test_only_a_stale_one_is_stale(cache: CacheStatus) -> None:
    """A stale item is a found item."""
    assert lookup(cache=cache).is_stale is (cache is CacheStatus.STALE)
    assert lookup(cache=cache).is_found


def test_raise_for_state_returns_the_item() -> None:
    """Of a found lookup, fresh or stale."""
    assert lookup().raise_for_state() is ITEM
    assert lookup(cache=CacheStatus.STALE).raise_for_state() is ITEM


@pytest.mark.parametrize(
    ("one", "error"),
    [
        (ended(State.NOT_FOUND, "all_not_found"), ItemNotFound),
        (ended(State.STOPPED, "stopped"), ItemStopped),
        (ended(State.UNAVAILABLE, "incomplete_search"), ItemUnavailable),
        (ended(State.UNAVAILABLE, "deadline", item=ITEM, degraded=True), ItemUnavailable),
        (ended(State.FOUND, "ok"), ItemUnavailable),
    ],
    ids=["not found", "stopped", "unavailable", "degraded", "found without an item"],
)
def test_raise_for_state_raises(one: Lookup, error: type[Exception]) -> None:
    """Each state has its own exception, which names item and catalog."""
    with pytest.raises(error, match=r"'P001' in catalog 'default'"):
        one.raise_for_state()


def test_unavailable_carries_reason_and_wait() -> None:
    """So that a view can say when to come back."""
    with pytest.raises(ItemUnavailable, match="incomplete_search") as caught:
        ended(State.UNAVAILABLE, "incomplete_search", retry_after=7.0).raise_for_state()
    assert caught.value.retry_after == 7.0


def test_as_dict_is_ready_for_json() -> None:
    """Field names as above, moments in ISO 8601, and nothing that JSON does not have."""
    one = lookup(retry_after=1.5)
    told = one.as_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told == {
        "item_id": "P001",
        "catalog": "default",
        "state": "found",
        "reason": "ok",
        "item": ITEM,
        "source": "second",
        "cache": "miss",
        "fetched_at": "2027-01-15T08:00:00.250000+00:00",
        "expires_at": "2027-01-15T08:01:00.250000+00:00",
        "trace": [
            {"source": "first", "outcome": "temporary", "reason": "timeout", "elapsed_ms": 12.346, "called": True},
            {"source": "second", "outcome": "found", "reason": "ok", "elapsed_ms": 1.0, "called": True},
        ],
        "degraded": False,
        "retry_after": 1.5,
    }
    for value in (told["state"], told["cache"], told["trace"][0]["outcome"]):
        assert type(value) is str


def test_as_dict_of_nothing() -> None:
    """Absent is null."""
    told = ended(State.UNAVAILABLE, "deadline").as_dict()
    assert [told[key] for key in ("item", "source", "fetched_at", "expires_at", "retry_after")] == [None] * 5
    assert told["trace"] == []


def test_as_dict_has_a_copy_of_the_item() -> None:
    """Whoever adds to it does not change the lookup."""
    one = lookup()
    one.as_dict()["item"]["price"] = 1
    assert one.item == ITEM


def test_templates_see_attributes() -> None:
    """No call, no filter."""
    text = "{{ lookup.state }} {{ lookup.item.name }} {{ lookup.trace.0.reason }}{% if lookup.is_found %}!{% endif %}"
    assert Template(text).render(Context({"lookup": lookup()})) == "found Tea timeout!"


def test_repr_is_short_and_tells_the_essentials() -> None:
    """Not the item: it may be large."""
    assert repr(lookup()) == "<Lookup default:P001 found/ok cache=miss source=second>"


@pytest.mark.parametrize(
    "value",
    [
        Request("https://x/?key=secret", {"X": "secret"}, {"key": "secret"}),
        Reply(200, {"x": "secret"}, b"secret"),
        Verdict(Outcome.FOUND, "ok", {"id": "secret"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_h70_reprs_show_no_secret(value: object) -> None:
    """Neither of what was sent nor of what came back."""
    assert "secret" not in repr(value)


FROZEN: list[Any] = [
    Request("https://x/"),
    Reply(200),
    NoReply("timeout"),
    Verdict(Outcome.STOP, "x"),
    TRACE[0],
    SourceExplanation("first", True, "ok"),
    Explanation("P001", "default", False, None, ()),
]


@pytest.mark.parametrize("value", FROZEN, ids=lambda value: type(value).__name__)
def test_values_are_frozen(value: Any) -> None:
    """Nothing can be added or changed."""
    name = "reason" if hasattr(value, "reason") else "anything"
    with pytest.raises((AttributeError, TypeError)):
        setattr(value, name, "changed")
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize("kind", [State, Outcome, CacheStatus])
def test_words_are_strings(kind: Any) -> None:
    """They compare with plain text and are shown as it."""
    for word in kind:
        assert word == word.value == f"{word}" == json.loads(json.dumps(word))
