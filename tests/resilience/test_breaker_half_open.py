"""Do so many probes get through as may, and decide, and nobody else?"""

from __future__ import annotations

import logging

import pytest

from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.refusal import Refusal
from tests.resilience.breakers import CLOSED, HALF_OPEN, OPEN, Process
from tests.resilience.worlds import FaultyStore, MovableClock


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
    assert half_open.breaker.record(half_open.found()).open_for == 0.0


def test_one_success_that_is_enough_is_not_counted(store: FaultyStore, moving: MovableClock) -> None:
    """Where one closes it, it does so without a counter, which a store in trouble might lose."""
    process = Process(store, successes_to_close=1)
    process.calls("FFF")
    moving.move(30)
    process.calls("S")
    assert process.state is CLOSED
    assert not [key for _, key in store.commands if ":succeeded:" in key]


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
    moving.move(12.5)
    with caplog.at_level(logging.INFO, "catalog_fallback"):
        process.end(slow, "F")
    assert caplog.messages[-1:] == ["Circuit breaker default/primary: late result dropped (12.5 s old)."]


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
    moving.move(60)
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


def test_a_look_says_that_all_probes_are_under_way(half_open: Process) -> None:
    """Whoever may choose another source does so without trying; a slot belongs to its generation."""
    permits = [half_open.permit()]
    assert half_open.look() is None
    permits.append(half_open.permit())
    assert half_open.look() == Refusal("circuit_open", 1.0)
    assert all(permit.slot is not None and half_open.generation in permit.slot.key for permit in permits)


def test_who_comes_second_to_the_last_slot_is_refused(store: FaultyStore, moving: MovableClock) -> None:
    """Both saw it free; the store gives it to one, and tells the other to come back soon."""
    first, second = Process(store, half_open_calls=1), Process(store, half_open_calls=1)
    first.calls("FFF")
    moving.move(30)
    first.calls("N")
    found = first.found(), second.found()
    assert isinstance(first.breaker.take(found[0]), BreakerPermit)
    assert second.breaker.take(found[1]) == Refusal("circuit_open", 1.0)


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


def test_another_thread_reopens_it_while_this_one_is_about_to_read(store: FaultyStore, moving: MovableClock) -> None:
    """Both threads have one breaker: what one of them has just learnt does not spare the other its own reading."""
    process = Process(store)
    process.calls("FFF")
    moving.move(process.breaker.record(process.found()).open_for)
    probes: list[BreakerPermit] = []
    # Before the commands of this thread: look, change to half-open, its hint, look again.
    store.interruptions = [
        None,
        None,
        lambda: probes.append(process.permit()),
        lambda: process.end(probes.pop(), "F"),
    ]
    assert isinstance(process.take(), Refusal)
    assert process.state is OPEN
    assert probes == []
