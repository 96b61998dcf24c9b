"""Is an open circuit breaker open for everybody, for its time, and found by everybody?"""

from __future__ import annotations

from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.refusal import Refusal
from tests.resilience.breakers import CLOSED, HALF_OPEN, NAMES, OPEN, Process
from tests.resilience.worlds import FaultyStore, MovableClock


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
