"""What does a link of the chain say, whatever is in the cache, and what does the log say of a change?"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from catalog_fallback.resilience.breaker_record import Record, record_of
from tests.resilience.breakers import CLOSED, HALF_OPEN, OPEN, Process
from tests.resilience.worlds import FaultyStore, MovableClock

#: The first moment that a date cannot show.
YEAR_10000 = 253_402_300_800
GOOD = Record("g", OPEN, 1_800_000_000.0, 30.0, "probe_failed")


def test_a_record_survives_its_link() -> None:
    """Plain JSON types, and back."""
    assert record_of(GOOD.as_link()) == GOOD
    assert GOOD.as_link() == {
        "g": "g",
        "state": "open",
        "since": 1_800_000_000.0,
        "open_for": 30.0,
        "reason": "probe_failed",
    }


def test_a_link_that_says_nothing_is_a_closed_breaker() -> None:
    """Its generation is all that it has."""
    assert record_of({"g": "0"}) == Record("0", CLOSED, 0.0, 0.0, "") == Record("0")
    assert record_of({"g": "0", "more": 1}) == Record("0")


@pytest.mark.parametrize("field", ["since", "open_for"])
@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0.0),
        (0.5, 0.5),
        (7, 7.0),
        (YEAR_10000 - 1, YEAR_10000 - 1.0),
        (YEAR_10000, 0.0),
        (-1, 0.0),
        (float("nan"), 0.0),
        (float("inf"), 0.0),
        ("7", 0.0),
        (None, 0.0),
    ],
    ids=str,
)
def test_seconds_are_numbers_that_people_can_read(field: str, value: Any, seconds: float) -> None:
    """Anything else counts as none."""
    record = record_of({**GOOD.as_link(), field: value})
    assert getattr(record, field) == seconds
    assert type(getattr(record, field)) is float


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("reset", "reset"),
        ("x" * 64, "x" * 64),
        ("x" * 65, ""),
        ("two words", ""),
        ("<b>", ""),
        (5, ""),
        (None, ""),
    ],
    ids=["word", "longest", "too long", "words", "markup", "number", "nothing"],
)
def test_a_reason_is_one_word(value: Any, reason: str) -> None:
    """It is shown, and it comes from the cache."""
    assert record_of({**GOOD.as_link(), "reason": value}).reason == reason


@pytest.mark.parametrize(
    ("value", "state"),
    [("open", OPEN), ("half_open", HALF_OPEN), ("closed", CLOSED), ("isolated", CLOSED), ("ajar", CLOSED), (5, CLOSED)],
    ids=str,
)
def test_a_state_that_a_chain_cannot_have_is_closed(value: Any, state: str) -> None:
    """Isolated is said elsewhere."""
    assert record_of({**GOOD.as_link(), "state": value}).state is state


def test_every_change_is_one_line_of_the_log(
    store: FaultyStore, moving: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    """For people, and with fields for programs; that it opened is a warning, the rest is news."""
    process = Process(store)
    caplog.set_level(logging.INFO, "catalog_fallback")
    process.calls("FFF")
    moving.move(30)
    process.calls("S")
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("WARNING", "Circuit breaker default/primary: closed → open (consecutive_failures)."),
        ("INFO", "Circuit breaker default/primary: open → half_open (consecutive_failures)."),
        ("INFO", "Circuit breaker default/primary: half_open → closed (probes_succeeded)."),
    ]
    opened = vars(caplog.records[0])
    assert {name: opened[name] for name in ("event", "catalog", "source", "old", "new", "reason")} == {
        "event": "breaker_changed",
        "catalog": "default",
        "source": "primary",
        "old": "closed",
        "new": "open",
        "reason": "consecutive_failures",
    }


def test_a_half_open_breaker_says_since_when_it_was_out_of_order(store: FaultyStore, moving: MovableClock) -> None:
    """The probes do not begin a new time: people want to know how long the source has been away."""
    process = Process(store)
    process.calls("FFF")
    opened_at = process.breaker.record(process.found()).since
    moving.move(30)
    process.permit()
    record = process.breaker.record(process.found())
    assert (record.state, record.since) == (HALF_OPEN, opened_at)


@pytest.mark.parametrize("results", ["F", "FF", "FFF"], ids=["counted", "counted again", "opens"])
def test_a_failure_that_the_store_took_is_told(store: FaultyStore, results: str) -> None:
    """Nobody needs to count it elsewhere; not that of a probe either, nor one that came too late."""
    process = Process(store)
    late = process.permit()
    assert [process.breaker.fail(process.permit()) for _ in results] == [True] * len(results)
    if results == "FFF":
        assert process.breaker.fail(late) is True


def test_a_listener_that_raises_is_logged(store: FaultyStore, caplog: pytest.LogCaptureFixture) -> None:
    """With its traceback, and whose breaker it was."""
    process = Process(store)

    def broken(*_: object) -> None:
        raise ValueError("listener")

    process.breaker._news._on_change = broken
    process.calls("FFF")
    assert caplog.messages[-1] == "A listener of circuit breaker default/primary raised."
    assert caplog.records[-1].exc_info is not None
