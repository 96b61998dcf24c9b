"""Which results open a circuit breaker, in which process, and at what cost?"""

from __future__ import annotations

import pytest

from catalog_fallback.configuration import BreakerConfig
from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.breaker_record import BreakerState
from tests.resilience.breakers import BY_RATE, CLOSED, IN_A_ROW, OPEN, Process
from tests.resilience.worlds import FaultyStore, MovableClock


@pytest.mark.parametrize(
    ("config", "results", "state"),
    [
        pytest.param(IN_A_ROW, "FF", CLOSED, id="one too few in a row"),
        pytest.param(IN_A_ROW, "FFF", OPEN, id="enough in a row"),
        pytest.param(IN_A_ROW, "FFSFF", CLOSED, id="tg_content_factory#1276: a success clears the count"),
        pytest.param(IN_A_ROW, "FFSFFF", OPEN, id="and counting starts again"),
        pytest.param(IN_A_ROW, "FFNF", OPEN, id="a neutral end clears nothing"),
        pytest.param(IN_A_ROW, "NNNN", CLOSED, id="and counts as nothing"),
        pytest.param(BY_RATE, "FFF", CLOSED, id="fewer than MINIMUM_CALLS"),
        pytest.param(BY_RATE, "SFSF", OPEN, id="exactly the rate, at a failure"),
        pytest.param(BY_RATE, "FFSS", OPEN, id="exactly the rate, at a success"),
        pytest.param(BY_RATE, "FSSSSFF", CLOSED, id="below the rate"),
        pytest.param(BY_RATE, "FSSSSFFF", OPEN, id="and reached"),
        pytest.param(BY_RATE, "FNNNF", CLOSED, id="neutral ends are no calls"),
        pytest.param(BreakerConfig(3, 0.9, 10), "SSSFFF", OPEN, id="both rules: in a row"),
        pytest.param(BreakerConfig(30, 0.5, 4), "SFSF", OPEN, id="both rules: rate"),
        pytest.param(BreakerConfig(None, None), "F" * 100, CLOSED, id="neither"),
        pytest.param(BreakerConfig(1, None), "F", OPEN, id="a single failure"),
        pytest.param(BreakerConfig(None, 1.0, 3), "FFSFFFF", CLOSED, id="rate 1: one success is enough"),
        pytest.param(BreakerConfig(None, 1.0, 3), "FFF", OPEN, id="rate 1: all failed"),
    ],
)
def test_rules(store: FaultyStore, config: BreakerConfig, results: str, state: BreakerState) -> None:
    """Which sequences of results open it."""
    process = Process(store, config)
    process.calls(results)
    assert process.state is state


@pytest.mark.parametrize(("config", "reason"), [(IN_A_ROW, "consecutive_failures"), (BY_RATE, "failure_rate")])
def test_one_listener_is_told_once(store: FaultyStore, config: BreakerConfig, reason: str) -> None:
    """The process whose failure opened it tells, and only that one."""
    processes = [Process(store, config) for _ in range(3)]
    for place in range(4 if config is BY_RATE else 3):
        processes[place % 3].calls("F")
    assert [told for process in processes for told in process.told] == [("closed", "open", reason)]


@pytest.mark.parametrize(
    ("pause", "state"),
    [(0, OPEN), (26, OPEN), (30, CLOSED), (60, CLOSED), (1000, CLOSED)],
)
@pytest.mark.parametrize("config", [IN_A_ROW, BY_RATE], ids=["in a row", "rate"])
def test_failures_count_within_the_window(
    store: FaultyStore, moving: MovableClock, config: BreakerConfig, pause: float, state: BreakerState
) -> None:
    """Failures that are more than WINDOW apart are not counted together."""
    process = Process(store, config, window=60)
    process.calls("F")
    moving.move(30)
    process.calls("FF" if config is BY_RATE else "F")
    moving.move(pause)
    process.calls("F")
    assert process.state is state


@pytest.mark.parametrize("config", [IN_A_ROW, BY_RATE], ids=["in a row", "rate"])
def test_failures_of_all_processes_count_together(store: FaultyStore, config: BreakerConfig) -> None:
    """Each process fails once, all of them find it open."""
    for _ in range(4 if config is BY_RATE else 3):
        Process(store, config).calls("F")
    assert Process(store, config).state is OPEN


def test_a_success_anywhere_clears_the_count(store: FaultyStore) -> None:
    """The count of one process is cleared by another's success."""
    failing, working = Process(store), Process(store)
    failing.calls("FF")
    working.calls("S")
    failing.calls("FF")
    assert failing.state is CLOSED


def test_a_success_clears_what_its_own_process_counted_meanwhile(store: FaultyStore) -> None:
    """A call that began before the failures and ends after them clears them."""
    process = Process(store)
    slow = process.permit()
    process.calls("FF")
    process.end(slow, "S")
    process.calls("FF")
    assert process.state is CLOSED


def test_a_success_in_the_middle_of_counting_a_failure_clears_it(store: FaultyStore) -> None:
    """Between finding the run and counting in it another process succeeds: what is counted is as good as cleared."""
    process, other = Process(store), Process(store)
    process.calls("F")
    permit, others = process.permit(), other.permit()
    store.interruptions = [None, None, lambda: other.end(others, "S")]
    process.end(permit, "F")
    process.calls("FF")
    assert process.state is CLOSED
    process.calls("F")
    assert process.state is OPEN


def test_two_who_begin_a_run_at_once_count_together(store: FaultyStore) -> None:
    """Whoever finds that another was faster to name the run counts under that name."""
    process, other = Process(store), Process(store)
    permit, others = process.permit(), other.permit()
    store.interruptions = [None, lambda: other.end(others, "F")]
    process.end(permit, "F")
    process.calls("F")
    assert process.state is OPEN


def test_a_run_that_vanishes_as_it_is_named_counts_for_nothing(store: FaultyStore) -> None:
    """A name that is neither new nor there any more is as good as cleared."""
    process, other = Process(store), Process(store)
    permit, first, second = process.permit(), other.permit(), other.permit()
    store.interruptions = [None, lambda: other.end(first, "F"), lambda: other.end(second, "S")]
    process.end(permit, "F")
    process.calls("FF")
    assert process.state is CLOSED


def test_simultaneous_failures_open_it_once(store: FaultyStore, moving: MovableClock) -> None:
    """opossum#385: many failures at the threshold make one change, and it recovers on time."""
    processes = [Process(store) for _ in range(10)]
    permits = [(process, process.permit()) for process in processes]
    for process, permit in permits:
        process.end(permit, "F")
    assert sum(len(process.told) for process in processes) == 1
    moving.move(30)
    assert isinstance(processes[0].take(), BreakerPermit)


def test_successes_are_written_once_a_second(store: FaultyStore, moving: MovableClock) -> None:
    """A thousand successes within a second are one write; the next ones are added up until the second is over."""
    process = Process(store, BY_RATE)
    store.commands.clear()
    process.calls("S" * 1000)
    writes = [name for name, _ in store.commands if name != "get_many"]
    assert writes == ["incr", "add"]
    moving.move(1)
    process.calls("S")
    assert sum(store.contents().values()) == 1001
    process.calls("S" * 10)
    assert sum(store.contents().values()) == 1001


def test_a_success_costs_no_command(store: FaultyStore, moving: MovableClock) -> None:
    """While all is well a call costs the one read that everything has in common."""
    process = Process(store, BreakerConfig())
    process.calls("S")
    store.commands.clear()
    process.calls("S" * 5)
    assert [name for name, _ in store.commands] == ["get_many"] * 5


def test_unwritten_successes_count_for_their_own_process(store: FaultyStore) -> None:
    """What has not been written yet still speaks for the source."""
    process = Process(store, BY_RATE)
    process.calls("SSSSSSFFF")
    assert process.state is CLOSED


def test_successes_of_an_older_generation_are_not_carried_over(store: FaultyStore, moving: MovableClock) -> None:
    """What was added up before it opened does not water down the rate afterwards."""
    process = Process(store, BY_RATE)
    process.calls("SSSS")
    process.calls("FFFF")
    assert process.state is OPEN
    moving.move(30)
    process.calls("S")
    process.calls("FFFF")
    assert process.state is OPEN
