"""What becomes of a circuit breaker when commands get lost, keys vanish or hold garbage?"""

from __future__ import annotations

import logging

import pytest

from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.breaker_record import BreakerState, record_of
from tests.resilience.breakers import BY_RATE, CLOSED, HALF_OPEN, NAMES, OPEN, Process
from tests.resilience.worlds import FaultyStore, MovableClock


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
    store.faults = [*faults]
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
    store.faults = [*faults]
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
    (lost,) = (record for record in caplog.records if "lost" in record.getMessage())
    assert (lost.levelname, lost.getMessage()) == (
        "WARNING",
        "Circuit breaker default/primary was open; the store has lost it: closed.",
    )
    told = {name: vars(lost)[name] for name in ("event", "catalog", "source", "old", "new", "reason")}
    assert told == {
        "event": "breaker_lost",
        "catalog": "default",
        "source": "primary",
        "old": "open",
        "new": "closed",
        "reason": "lost_by_the_store",
    }
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


def test_garbage_that_comes_back_at_once_ends_in_no_answer(store: FaultyStore) -> None:
    """It is removed once; a second time the store cannot be relied on."""
    store.always = lambda: store.inner.set(NAMES.key("breaker", "next:0"), "garbage", 60)
    assert Process(store).breaker.reset() is False


def test_a_record_says_what_its_link_says() -> None:
    """A record survives being written and read."""
    link = {"g": "a", "state": "open", "since": 5.0, "open_for": 30.0, "reason": "reset"}
    assert record_of(link).as_link() == link
