"""Does the circuit breaker open, probe and close as it says, in all processes at once?"""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from catalog_fallback.configuration import BreakerConfig
from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.breaker_record import BreakerState, record_of
from catalog_fallback.resilience.refusal import Refusal
from tests.resilience.breakers import BY_RATE, CLOSED, HALF_OPEN, IN_A_ROW, NAMES, OPEN, Process
from tests.resilience.worlds import FaultyStore, MovableClock

# ------------------------------------------------------------------------------------------ the rules


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


# ------------------------------------------------------------------------------------------ open


def test_open_refuses_everybody_until_its_time_is_over(store: FaultyStore, moving: MovableClock) -> None:
    """pybreaker#24: all processes, old and new, probe at the same moment, not later."""
    first = Process(store, open_for=30)
    first.calls("FFF")
    moving.move(27)
    late = Process(store, open_for=30)
    for process in (first, late):
        assert process.take() == Refusal("circuit_open", 3.0)
    moving.move(3)
    assert isinstance(late.take(), BreakerPermit)


def test_pybreaker_26_making_a_breaker_writes_nothing(store: FaultyStore, moving: MovableClock) -> None:
    """Thirty-two processes that start while it is open change nothing, and do not move its end."""
    Process(store).calls("FFF")
    before = store.contents()
    lives = {key: store.life(key) for key in before}
    for _ in range(32):
        process = Process(store)
        assert process.state is OPEN
        assert isinstance(process.take(), Refusal)
    assert store.contents() == before
    assert {key: store.life(key) for key in before} == lives


def test_resilience4j_858_looking_takes_no_permit(store: FaultyStore, moving: MovableClock) -> None:
    """A look at a half-open breaker leaves its slot, and the store, as they are."""
    process = Process(store)
    process.calls("FFF")
    moving.move(30)
    process.end(process.permit(), "N")
    before = store.contents()
    for _ in range(100):
        assert process.look() is None
        assert process.state is HALF_OPEN
    assert store.contents() == before
    assert isinstance(process.take(), BreakerPermit)


def test_a_process_that_knows_the_state_reads_once(store: FaultyStore, moving: MovableClock) -> None:
    """All states: one command a look once the process has seen it."""
    process = Process(store, half_open_calls=3)
    for step in ("FFF", "", "S"):
        process.calls(step)
        process.look()
        store.commands.clear()
        process.look()
        assert len(store.commands) == 1
        moving.move(30)


def test_a_new_process_finds_the_state_by_the_hint(store: FaultyStore, moving: MovableClock) -> None:
    """However often the state has changed: two reads, where the hint is right."""
    process = Process(store)
    for _ in range(5):
        process.calls("FFF")
        moving.move(30)
        process.calls("S")
    process.calls("FFF")
    new = Process(store)
    store.commands.clear()
    assert new.look() is not None
    assert len(store.commands) == 2


def test_a_late_write_of_the_hint_harms_nothing(store: FaultyStore, moving: MovableClock) -> None:
    """An old hint costs steps, and leads to the same state."""
    process = Process(store)
    process.calls("FFF")
    hint = NAMES.key("breaker", "hint")
    old = store.contents()[hint]
    moving.move(30)
    process.calls("S")
    store.inner.set(hint, old, 3600)
    assert Process(store).state is process.state is CLOSED
    assert Process(store).generation == process.generation


def test_a_hint_that_was_never_written_harms_nothing(store: FaultyStore, moving: MovableClock) -> None:
    """Without the hint the chain is followed from its beginning."""
    process = Process(store)
    process.calls("FFF")
    moving.move(30)
    process.calls("S")
    store.evict(NAMES.key("breaker", "hint"))
    assert Process(store).generation == process.generation != "0"


def test_resilience4j_2038_boundaries_do_not_spin(store: FaultyStore, moving: MovableClock) -> None:
    """Open for the shortest time, looked at on the boundary: an answer, and few commands."""
    process = Process(store, open_for=0.001, max_open_for=0.001)
    process.calls("FFF")
    store.commands.clear()
    moving.move(1)
    assert isinstance(process.take(), BreakerPermit)
    assert len(store.commands) < 10


def test_open_times_grow_and_start_again(store: FaultyStore, moving: MovableClock) -> None:
    """Each failed probe doubles the time up to MAX_OPEN_FOR; a success goes back to OPEN_FOR."""
    process = Process(store, open_for=10, max_open_for=35)
    process.calls("FFF")
    for seconds in (10, 20, 35, 35):
        moving.move(seconds - 0.01)
        assert isinstance(process.take(), Refusal)
        moving.move(0.01)
        process.calls("F")
    moving.move(35)
    process.calls("SFFF")
    assert process.take() == Refusal("circuit_open", 10.0)


def test_a_long_open_time_outlives_the_hour(store: FaultyStore, moving: MovableClock) -> None:
    """The record lives longer than the longest time for which it may open."""
    process = Process(store, open_for=20_000, max_open_for=20_000)
    process.calls("FFF")
    moving.move(19_999)
    assert Process(store, open_for=20_000, max_open_for=20_000).state is OPEN
    moving.move(2)
    assert process.state is HALF_OPEN


# ------------------------------------------------------------------------------------------ half-open


@pytest.fixture
def half_open(store: FaultyStore, moving: MovableClock) -> Process:
    """A process whose breaker will let probes through."""
    process = Process(store, half_open_calls=2, successes_to_close=2)
    process.calls("FFF")
    moving.move(30)
    process.told.clear()
    return process


def test_faulty_70_so_many_probes_at_a_time(store: FaultyStore, half_open: Process) -> None:
    """Of many processes HALF_OPEN_CALLS get through; an end gives way to the next."""
    processes = [Process(store, half_open_calls=2, successes_to_close=2) for _ in range(10)]
    permits = [each for each in (process.take() for process in processes) if isinstance(each, BreakerPermit)]
    assert len(permits) == 2
    assert half_open.take() == Refusal("circuit_open", 1.0)
    half_open.end(permits[0], "N")
    assert isinstance(half_open.take(), BreakerPermit)


def test_enough_successes_close_it(half_open: Process) -> None:
    """One success is not enough here; the second closes, and starts a new generation."""
    half_open.calls("S")
    assert half_open.state is HALF_OPEN
    half_open.calls("S")
    assert half_open.state is CLOSED
    assert half_open.told == [
        ("open", "half_open", "consecutive_failures"),
        ("half_open", "closed", "probes_succeeded"),
    ]


def test_opossum_119_one_failed_probe_reopens(half_open: Process, moving: MovableClock) -> None:
    """Whatever the thresholds and the minimum of calls; earlier successes do not help."""
    half_open.calls("SF")
    assert half_open.told[-1] == ("half_open", "open", "probe_failed")
    moving.move(60)
    half_open.calls("S")
    assert half_open.state is HALF_OPEN


@pytest.mark.parametrize("ends", ["N", "NN", "NNNNN", "SN", "NSN"])
def test_polly_1979_unclassified_probe_exception(half_open: Process, ends: str) -> None:
    """Probes that prove nothing, in any number and place, leave slots free for the next."""
    half_open.calls(ends)
    assert half_open.state is HALF_OPEN
    half_open.calls("SS" if "S" not in ends else "S")
    assert half_open.state is CLOSED


def test_resilience4j_544_the_last_permitted_probe_is_ignored(half_open: Process) -> None:
    """Two probes at once, one good, one neutral: the state does not stick."""
    first, last = half_open.permit(), half_open.permit()
    half_open.end(first, "S")
    half_open.end(last, "N")
    half_open.calls("S")
    assert half_open.state is CLOSED


def test_a_killed_prober_frees_its_slot(half_open: Process, moving: MovableClock) -> None:
    """Probes that never end expire, a while after the limit of their call."""
    half_open.permit()
    half_open.permit()
    moving.move(6.9)
    assert isinstance(half_open.take(), Refusal)
    moving.move(0.2)
    assert isinstance(half_open.take(), BreakerPermit)


def test_openclaw_100176_a_probe_that_outlived_its_lease_decides_nothing(
    half_open: Process, moving: MovableClock
) -> None:
    """Somebody else may be probing by then: its success and its failure are dropped, and free no slot of others."""
    old = [half_open.permit(), half_open.permit()]
    moving.move(7.1)
    new = [half_open.permit(), half_open.permit()]
    for permit, result in zip(old, "SF", strict=True):
        half_open.end(permit, result)
    assert half_open.breaker.late_results == 2
    assert half_open.state is HALF_OPEN
    assert isinstance(half_open.take(), Refusal)
    for permit in new:
        half_open.end(permit, "S")
    assert half_open.state is CLOSED


def test_a_lease_is_longer_than_its_call(store: FaultyStore, moving: MovableClock) -> None:
    """Whatever the call limit, a slot is not given away before the call has ended; no longer than results count."""
    for limit, life in ((0.5, 6), (20, 25), (500, 65)):
        process = Process(store, call_limit=limit)
        process.breaker.reset()
        process.calls("FFF")
        moving.move(30)
        permit = process.permit()
        assert permit.slot is not None
        assert store.life(permit.slot.key) == life
        moving.move(100)


@pytest.mark.parametrize(("age", "is_kept"), [(5.9, False), (6.1, True)])
def test_a_slot_that_is_hardly_ours_is_left_to_expire(
    half_open: Process, store: FaultyStore, moving: MovableClock, age: float, is_kept: bool
) -> None:
    """In the last second before it expires a slot is not deleted: it may be somebody else's in the store already."""
    permit = half_open.permit()
    assert permit.slot is not None
    moving.move(age)
    half_open.end(permit, "N")
    assert (permit.slot.key in store.contents()) is is_kept


def test_hystrix_1350_old_calls_do_not_decide_the_probe(half_open: Process, store: FaultyStore) -> None:
    """Calls from before it opened say nothing about a half-open breaker, whatever they say."""
    old = [BreakerPermit("0", half_open.permit().taken_at)] * 90
    generation = half_open.generation
    for place, permit in enumerate(old):
        half_open.end(permit, "SF"[place % 2])
    assert half_open.generation == generation
    assert half_open.breaker.late_results == 90


def test_ray_65068_a_success_from_before_does_not_close(store: FaultyStore, moving: MovableClock) -> None:
    """infinidysk#682, gobreaker#122: a slow old success while it is open changes nothing and is logged as late."""
    process = Process(store)
    slow = process.permit()
    process.calls("FFF")
    before = store.contents()
    process.end(slow, "S")
    assert process.state is OPEN
    assert store.contents() == before
    assert process.breaker.late_results == 1


def test_gobreaker_122_a_late_result_is_logged(
    store: FaultyStore, caplog: pytest.LogCaptureFixture, moving: MovableClock
) -> None:
    """Nothing is dropped in silence."""
    process, other = Process(store), Process(store)
    slow = process.permit()
    other.calls("FFF")
    with caplog.at_level(logging.INFO, "catalog_fallback"):
        process.end(slow, "F")
    assert "default/primary: late result dropped" in caplog.text


@pytest.mark.parametrize("result", "SF")
def test_results_older_than_a_minute_are_dropped(store: FaultyStore, moving: MovableClock, result: str) -> None:
    """Even of the same generation."""
    process = Process(store, consecutive_failures=1)
    process.calls("N")
    permit = process.permit()
    moving.move(60.1)
    process.end(permit, result)
    assert process.breaker.late_results == 1
    assert process.state is CLOSED
    permit = process.permit()
    moving.move(59.9)
    process.end(permit, "F")
    assert process.state is OPEN


def test_hystrix_1621_cancelling_an_ordinary_call_changes_nothing(store: FaultyStore, moving: MovableClock) -> None:
    """Only probes hold slots: a neutral end of any other call writes nothing, in any state."""
    process = Process(store)
    old = process.permit()
    process.calls("FFF")
    before = store.contents()
    process.end(old, "N")
    assert store.contents() == before


def test_a_slot_won_in_a_round_that_is_over_is_given_back(half_open: Process, store: FaultyStore) -> None:
    """The slot was free because another probe had just reopened: no call then, and no slot kept."""
    other = Process(store, half_open_calls=2, successes_to_close=2)
    probe = other.permit()
    found = half_open.found()
    other.end(probe, "F")
    assert half_open.breaker.take(found) == Refusal("circuit_open", 1.0)
    assert not [key for key in store.contents() if ":slot:" in key]


def test_two_who_find_its_time_over_make_one_change(store: FaultyStore, moving: MovableClock) -> None:
    """Both saw it open with its time over; one turns it half-open, both probe in the same round."""
    first, second = (Process(store, half_open_calls=2) for _ in range(2))
    first.calls("FFF")
    moving.move(30)
    found = first.found(), second.found()
    assert isinstance(first.breaker.take(found[0]), BreakerPermit)
    assert isinstance(second.breaker.take(found[1]), BreakerPermit)
    assert [told[:2] for told in first.told + second.told] == [("closed", "open"), ("open", "half_open")]


def test_a_state_that_never_settles_is_a_refusal(store: FaultyStore, moving: MovableClock) -> None:
    """Where the state changes under a call time and again it gives up, refused."""
    process, other = Process(store), Process(store)
    process.calls("FFF")
    moving.move(30)
    found = process.found()

    def reopen() -> None:
        if store.commands[-1][0] == "add":
            other.breaker.reset()
            other.calls("FFF")
            moving.move(30)

    store.always = reopen
    assert process.breaker.take(found) == Refusal("circuit_open", 1.0)


# ------------------------------------------------------------------------------------------ trouble


def opening(store: FaultyStore) -> tuple[Process, BreakerPermit]:
    """A process whose next failure opens the breaker."""
    process = Process(store)
    process.calls("FF")
    permit = process.permit()
    store.commands.clear()
    return process, permit


@pytest.mark.parametrize(
    ("faults", "state", "told"),
    [
        pytest.param(["", "", "reply"], CLOSED, 0, id="open key: cannot tell"),
        pytest.param(["", "", "", "reply"], OPEN, 1, id="the change is made, nobody hears: reads who won"),
        pytest.param(["", "", "", "lost"], CLOSED, 0, id="the change is lost"),
        pytest.param(["", "", "", "", "lost"], OPEN, 1, id="the hint is lost"),
        pytest.param(["", "", "", "", "late"], OPEN, 1, id="the hint is late"),
        pytest.param(["lost"], OPEN, 1, id="the longer life of the run is lost"),
        pytest.param(["", "lost", "lost"], CLOSED, 0, id="the count is lost"),
    ],
)
def test_lost_and_late_commands_while_it_opens(
    store: FaultyStore, faults: list[str], state: BreakerState, told: int
) -> None:
    """At most one listener hears, exactly when it opened; what did not happen happens at the next failure."""
    process, permit = opening(store)
    store.faults = faults
    process.end(permit, "F")
    store.faults.clear()
    assert (process.state, len(process.told)) == (state, told)
    assert Process(store).state is state
    if state is CLOSED:
        process.calls("F")
        assert process.state is OPEN


def test_a_failure_that_the_store_did_not_take_is_told(store: FaultyStore) -> None:
    """The caller may count it elsewhere."""
    for faults in (["lost"], ["", "lost", "lost"]):
        process = Process(store)
        permit = process.permit()
        store.faults = faults
        assert process.breaker.fail(permit) is False
        store.faults.clear()
    process = Process(store, BY_RATE)
    permit = process.permit()
    store.faults = ["lost", "lost"]
    assert process.breaker.fail(permit) is False
    store.faults.clear()
    store.is_paused = True
    assert process.breaker.fail(permit) is False


def test_a_paused_store_makes_nobody_forget(
    store: FaultyStore, moving: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Reading nothing because of a pause is no loss of the state."""
    process = Process(store)
    process.calls("FFF")
    caplog.clear()
    store.is_paused = True
    process.look()
    assert not caplog.records
    store.is_paused = False
    assert process.state is OPEN


@pytest.mark.parametrize("faults", [["lost"], ["", "", "lost"]], ids=["half-open", "slot"])
def test_taking_a_probe_of_a_store_that_cannot_tell(
    store: FaultyStore, moving: MovableClock, faults: list[str]
) -> None:
    """Neither yes nor no: another store has to decide."""
    process = Process(store)
    process.calls("FFF")
    moving.move(30)
    store.faults = faults
    assert process.take() is None


def test_a_count_of_probes_that_is_lost_closes_nothing(half_open: Process, store: FaultyStore) -> None:
    """A success that could not be counted is one more probe to make."""
    half_open.calls("S")
    permit = half_open.permit()
    store.faults = ["lost", "lost"]
    half_open.end(permit, "S")
    store.faults.clear()
    assert half_open.state is HALF_OPEN
    half_open.calls("S")
    assert half_open.state is CLOSED


def test_an_eviction_while_open_closes_it_and_is_logged(
    store: FaultyStore, moving: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that remembers says so, once; the breaker learns again within its thresholds."""
    process = Process(store)
    process.calls("FFF")
    store.evict()
    with caplog.at_level(logging.WARNING, "catalog_fallback"):
        assert process.state is CLOSED
        assert process.state is CLOSED
    assert caplog.text.count("the store has lost it") == 1
    process.calls("FFF")
    assert process.state is OPEN


def test_django_13259_any_key_may_be_evicted(store: FaultyStore, moving: MovableClock) -> None:
    """Whichever key is lost while it is open: nothing raises, and it opens again when failures go on."""
    Process(store).calls("FFF")
    for key in tuple(store.contents()):
        process = Process(store)
        store.evict(key)
        for _ in range(8):
            permit = process.take()
            if isinstance(permit, BreakerPermit):
                process.end(permit, "F")
        assert process.state is OPEN


@pytest.mark.parametrize(
    "garbage",
    [
        None,
        7,
        "x",
        [],
        {},
        {"g": 1},
        {"g": "x"},
        {"g": "x", "state": "ajar"},
        {"g": "x", "state": "open", "since": "yesterday", "open_for": None, "reason": 3},
        {"g": "x", "state": "isolated"},
        {"g": "x" * 5000},
    ],
)
def test_garbage_under_its_keys_does_not_stop_it(store: FaultyStore, garbage: object) -> None:
    """Whatever is there instead of a record, it opens, and nothing raises."""
    for name in ("hint", "next:0", "run:0", "run:x"):
        store.inner.set(NAMES.key("breaker", name), garbage, 60)
    process = Process(store)
    process.look()
    process.calls("S" if process.state is CLOSED else "F")
    process.breaker.reset()
    process.calls("FFF")
    assert process.state is OPEN


def test_a_record_says_what_its_link_says() -> None:
    """A record survives being written and read."""
    link = {"g": "a", "state": "open", "since": 5.0, "open_for": 30.0, "reason": "reset"}
    assert record_of(link).as_link() == link


# ------------------------------------------------------------------------------------------ listeners, reset, options


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

    process.breaker._on_change = meddle
    ended = threading.Thread(target=process.calls, args=("FFF",), daemon=True)
    ended.start()
    ended.join(10)
    assert not ended.is_alive()
    assert process.state is CLOSED
    assert "A listener of circuit breaker default/primary raised." in caplog.text


def test_no_listener_is_fine(store: FaultyStore) -> None:
    """Nobody has to listen."""
    process = Process(store)
    process.breaker._on_change = None
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
