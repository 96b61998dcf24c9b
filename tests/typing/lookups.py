"""Which types does a site see that looks items up?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, assert_type

from catalog_fallback.results import Attempt, CacheStatus, Explanation, Lookup, Outcome, SourceExplanation, State
from catalog_fallback.services import (
    afind_item,
    afind_items,
    explain_item,
    find_item,
    find_items,
    invalidate_item,
    invalidate_items,
    invalidating,
    release_item,
    release_items,
    stop_item,
    stop_items,
    time_budget,
)


def one_item() -> None:
    """A lookup, with each of its arguments."""
    assert_type(find_item("P001"), Lookup)
    find_item("P001", catalog="books", language="en", vary={"format": "epub"}, budget=1, refresh=True)
    find_item("P001", budget=0.5)
    find_item("P001", budget=timedelta(milliseconds=500))
    find_item("P001", language=None, vary=None, budget=None)


def many_items(ids: set[str]) -> None:
    """Any iterable of IDs."""
    assert_type(find_items(["P001", "P002"]), dict[str, Lookup])
    find_items(ids, catalog="books", language="en", vary={"format": "epub"}, budget=timedelta(seconds=2), refresh=True)
    find_items(f"P{number:03}" for number in range(9))


async def under_asyncio() -> None:
    """The same, awaited."""
    assert_type(await afind_item("P001", catalog="books", budget=1.5), Lookup)
    assert_type(await afind_items(("P001", "P002"), language="en"), dict[str, Lookup])


def every_field(lookup: Lookup) -> None:
    """What a template or a view reads."""
    assert_type(lookup.item_id, str)
    assert_type(lookup.catalog, str)
    assert_type(lookup.state, State)
    assert_type(lookup.reason, str)
    assert_type(lookup.item, Mapping[str, Any] | None)
    assert_type(lookup.source, str | None)
    assert_type(lookup.cache, CacheStatus)
    assert_type(lookup.fetched_at, datetime | None)
    assert_type(lookup.expires_at, datetime | None)
    assert_type(lookup.trace, tuple[Attempt, ...])
    assert_type(lookup.degraded, bool)
    assert_type(lookup.retry_after, float | None)
    assert_type(lookup.is_found, bool)
    assert_type(lookup.is_not_found, bool)
    assert_type(lookup.is_unavailable, bool)
    assert_type(lookup.is_stopped, bool)
    assert_type(lookup.is_stale, bool)
    assert_type(lookup.as_dict(), dict[str, Any])


def the_item_or_an_exception() -> str:
    """``raise_for_state()`` needs no second look at None."""
    item = find_item("P001").raise_for_state()
    assert_type(item, Mapping[str, Any])
    return str(item["name"])


def every_attempt(attempt: Attempt) -> None:
    """What the trace tells."""
    assert_type(attempt.source, str)
    assert_type(attempt.outcome, Outcome)
    assert_type(attempt.reason, str)
    assert_type(attempt.elapsed_ms, float)
    assert_type(attempt.called, bool)


def every_state(lookup: Lookup) -> int:
    """The states are an enum that the checker knows to be complete."""
    match lookup.state:
        case State.FOUND:
            return 200
        case State.NOT_FOUND:
            return 404
        case State.STOPPED:
            return 410
        case State.UNAVAILABLE:
            return 503


def explained() -> None:
    """What would happen, without calling anyone."""
    explanation = explain_item("P001", catalog="books", language="en", vary={"format": "epub"})
    assert_type(explanation, Explanation)
    assert_type(explanation.is_stopped, bool | None)
    assert_type(explanation.entry, Lookup | None)
    assert_type(explanation.sources, tuple[SourceExplanation, ...])
    for source, may_call, reason, retry_after in explanation.sources:
        assert_type(source, str)
        assert_type(may_call, bool)
        assert_type(reason, str)
        assert_type(retry_after, float | None)


def forgotten_and_stopped(learnt_at: datetime) -> None:
    """Numbers of IDs."""
    assert_type(invalidate_item("P001", catalog="books", reason="new edition"), int)
    assert_type(invalidate_items({"P001", "P002"}), int)
    assert_type(stop_item("P001", reason="legal", note="letter of 3 May", event_at=learnt_at), int)
    assert_type(stop_items(["P001"], catalog="books"), int)
    assert_type(release_item("P001", note="settled", event_at=learnt_at), int)
    assert_type(release_items(["P001"]), int)


def around_a_write() -> int:
    """``with invalidating(…)`` lets the block's return value through."""
    with invalidating("P001", catalog="books", reason="price") as nothing:
        assert_type(nothing, None)
        return 1


def inside_one_budget() -> Lookup:
    """``with time_budget(…)`` too, in seconds or as a timedelta."""
    with time_budget(timedelta(seconds=1)), time_budget(1.5), time_budget(2):
        return find_item("P001")
