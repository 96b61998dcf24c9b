"""Do listeners, resets and options of the circuit breaker work, and its keys end?"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from catalog_fallback import clock
from catalog_fallback.configuration import BreakerConfig
from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.breaker_record import BreakerState
from tests.resilience.breakers import CLOSED, OPEN, Process
from tests.resilience.worlds import FaultyStore, MovableClock


def test_polly_2953_a_listener_may_use_the_breaker_or_raise(
    store: FaultyStore, moving: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A listener that looks, takes, resets or raises neither hangs nor breaks anything."""
    process = Process(store)

    def meddle(_old: BreakerState, new: BreakerState, _reason: str) -> None:
        process.look()
        process.take()
        if new is OPEN:
            process.breaker.reset()
        raise ValueError("listener")

    process.breaker._news._on_change = meddle
    ended = threading.Thread(target=process.calls, args=("FFF",), daemon=True)
    ended.start()
    ended.join(10)
    assert not ended.is_alive()
    assert process.state is CLOSED
    assert "A listener of circuit breaker default/primary raised." in caplog.text


def test_no_listener_is_fine(store: FaultyStore) -> None:
    """Nobody has to listen."""
    process = Process(store)
    process.breaker._news._on_change = None
    process.calls("FFF")
    assert process.state is OPEN


@pytest.mark.parametrize("results", ["", "FF", "FFF"])
def test_a_reset_closes_and_forgets(store: FaultyStore, results: str) -> None:
    """From any state: closed, the counts gone, results of before dropped."""
    process = Process(store)
    slow = process.permit()
    process.calls(results)
    assert process.breaker.reset() is True
    assert process.state is CLOSED
    process.end(slow, "F")
    process.calls("FF")
    assert process.state is CLOSED
    assert [told for told in process.told if told[2] == "reset"] == (
        [("open", "closed", "reset")] if results == "FFF" else []
    )


def test_a_reset_that_loses_a_race_tries_again(store: FaultyStore) -> None:
    """It opens while the reset is under way: the reset goes on from there."""
    process, other = Process(store), Process(store)
    other.calls("FF")
    permit = other.permit()
    store.interruptions = [None, lambda: other.end(permit, "F")]
    assert process.breaker.reset() is True
    assert process.state is CLOSED
    assert other.told
    assert process.told == [("open", "closed", "reset")]
    assert process.breaker.record(process.found()).open_for == 0.0


def test_a_reset_gives_up_in_the_end(store: FaultyStore) -> None:
    """A store that cannot tell, and others who are always faster: no endless loop."""
    process, other = Process(store), Process(store)
    store.faults = ["lost"]
    assert process.breaker.reset() is False
    store.always = other.breaker.reset
    assert process.breaker.reset() is False


def story(config: BreakerConfig) -> list[Any]:
    """What happens to one breaker in a story in which every option matters."""
    with pytest.MonkeyPatch.context() as patch:
        moving = MovableClock().install(patch)
        store = FaultyStore()
        process = Process(store, config)
        seen: list[Any] = []
        for results, pause in (("SFSF", 0), ("FFF", 40), ("F", 30), ("F", 30), ("F", 50), ("SS", 0), ("FFF", 30)):
            for result in results:
                permits = [process.take() for _ in range(3)]
                real = [permit for permit in permits if isinstance(permit, BreakerPermit)]
                seen.append(len(real))
                for permit in real:
                    process.end(permit, result if permit is real[0] else "N")
                seen.append(process.state)
            moving.move(pause)
        return seen


@pytest.mark.parametrize(
    "change",
    [
        {"consecutive_failures": None},
        {"consecutive_failures": 4},
        {"failure_rate": None},
        {"failure_rate": 0.9},
        {"minimum_calls": 6},
        {"window": 20},
        {"open_for": 5},
        {"half_open_calls": 2},
        {"successes_to_close": 2},
        {"max_open_for": 300},
    ],
    ids=str,
)
def test_polly_1852_every_option_changes_behaviour(change: dict[str, Any]) -> None:
    """No option is read and then ignored."""
    rule = {"failure_rate": None} if "consecutive_failures" in change else {"consecutive_failures": None}
    base = {
        "consecutive_failures": 3,
        "failure_rate": 0.5,
        "minimum_calls": 4,
        "max_open_for": 40,
        **(rule if {"consecutive_failures", "failure_rate", "minimum_calls"} & set(change) else {}),
    }
    if "window" in change:
        assert window_story(60) != window_story(change["window"])
    else:
        assert story(BreakerConfig(**base)) != story(BreakerConfig(**{**base, **change}))


def window_story(window: float) -> BreakerState:
    """Three failures, ten seconds apart."""
    with pytest.MonkeyPatch.context() as patch:
        moving = MovableClock().install(patch)
        process = Process(FaultyStore(), window=window)
        for _ in range(3):
            process.calls("F")
            moving.move(10)
        return process.state


def test_all_keys_have_a_life_and_counters_a_long_one(store: FaultyStore, moving: MovableClock) -> None:
    """Counters live two windows longer than they are used, records an hour; nothing lives for ever."""
    process = Process(store, BreakerConfig(3, 0.5, 100, window=60))
    process.calls("SF")
    lives = {key: store.life(key) for key in store.contents()}
    assert all(life >= 3 * 60 for life in lives.values())
    process.calls("FF")
    links = [key for key in store.contents() if ":next:" in key or key.endswith(":hint")]
    assert len(links) == 2
    assert all(store.life(key) >= 3600 for key in links)
    assert all(store.life(key) <= 7200 for key in store.contents())


def test_pybreaker_3_no_lock_spans_a_call(store: FaultyStore) -> None:
    """While eight threads are within their calls a ninth gets through, ends and fails without waiting."""
    process = Process(store)
    inside, leave = threading.Barrier(9), threading.Event()

    def call() -> None:
        permit = process.permit()
        inside.wait(10)
        leave.wait(10)
        process.end(permit, "S")

    threads = [threading.Thread(target=call) for _ in range(8)]
    for each in threads:
        each.start()
    inside.wait(10)
    process.calls("SFN")
    leave.set()
    for each in threads:
        each.join()
    assert process.state is CLOSED


def test_a_permit_for_now_counts_now(store: FaultyStore, moving: MovableClock) -> None:
    """A result that another store let through and could not take counts in this one's present generation."""
    process = Process(store)
    process.breaker.reset()
    process.calls("FF")
    permit = process.breaker.permit_now()
    assert permit == BreakerPermit(process.generation, clock.monotonic())
    process.end(permit, "F")
    assert process.state is OPEN
