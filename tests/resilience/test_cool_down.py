"""Is a source that asked for it left alone, by everybody, for as long as it asked?"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_fallback.resilience.cool_down import CoolDown
from catalog_fallback.resilience.generations import Generations
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.views import read
from catalog_fallback.results import Outcome
from tests.resilience.worlds import FaultyStore, MovableClock

STOP, TEMPORARY = Outcome.STOP, Outcome.TEMPORARY
NAMES = Names("default", "primary")


def cooling(store: FaultyStore) -> CoolDown:
    """The cool-down as a process sees it that has just started."""
    return CoolDown(store, NAMES)


def look(cool_down: CoolDown, store: FaultyStore) -> Refusal | None:
    """Read and look."""
    return cool_down.look(read(store, (cool_down,)).found)


def test_all_processes_see_it_until_it_is_over(store: FaultyStore, moving: MovableClock) -> None:
    """What one process is told holds for all, and ends by itself."""
    cooling(store).start(30, STOP)
    assert look(cooling(store), store) == Refusal("cooling_down", 30.0, STOP)
    moving.move(29.9)
    assert look(cooling(store), store) == Refusal("cooling_down", pytest.approx(0.1), STOP)  # type: ignore[arg-type]
    moving.move(0.2)
    assert look(cooling(store), store) is None


def test_urllib3_1338_an_hour_is_the_longest(store: FaultyStore, moving: MovableClock) -> None:
    """However long a source asks for, it is an hour."""
    cooling(store).start(10**9, TEMPORARY)
    assert look(cooling(store), store) == Refusal("cooling_down", 3600.0, TEMPORARY)
    moving.move(3600.1)
    assert look(cooling(store), store) is None


@pytest.mark.parametrize("seconds", [0, 0.0, -1, float("nan"), float("-inf")])
def test_nothing_to_wait_for_starts_nothing(store: FaultyStore, seconds: float) -> None:
    """Zero, the past and garbage leave everything as it is."""
    cooling(store).start(seconds, STOP)
    assert store.contents() == {}


def test_it_is_never_shortened(store: FaultyStore, moving: MovableClock) -> None:
    """A shorter wish after a longer one changes nothing."""
    cooling(store).start(600, TEMPORARY)
    store.commands.clear()
    cooling(store).start(30, TEMPORARY)
    assert {name for name, _ in store.commands} == {"get_many"}
    assert look(cooling(store), store) == Refusal("cooling_down", 600.0, TEMPORARY)


def test_it_is_extended(store: FaultyStore, moving: MovableClock) -> None:
    """A longer wish extends it, also for processes that knew the shorter one."""
    other = cooling(store)
    cooling(store).start(30, STOP)
    look(other, store)
    moving.move(20)
    cooling(store).start(30, STOP)
    assert look(other, store) == Refusal("cooling_down", 30.0, STOP)
    moving.move(29)
    assert look(other, store) is not None


def test_each_kind_keeps_its_own_time(store: FaultyStore, moving: MovableClock) -> None:
    """A stop for 30 s within a temporary one for 600 s: stop first, temporary for the rest."""
    cool_down = cooling(store)
    cool_down.start(600, TEMPORARY)
    cool_down.start(30, STOP)
    assert look(cool_down, store) == Refusal("cooling_down", 600.0, STOP)
    moving.move(31)
    assert look(cool_down, store) == Refusal("cooling_down", 569.0, TEMPORARY)


def test_after_it_is_over_the_next_one_begins_afresh(store: FaultyStore, moving: MovableClock) -> None:
    """What is over does not lend its kind to what comes after."""
    cool_down = cooling(store)
    cool_down.start(30, STOP)
    moving.move(40)
    cool_down.start(10, TEMPORARY)
    assert look(cool_down, store) == Refusal("cooling_down", 10.0, TEMPORARY)


def test_looking_writes_nothing_and_costs_one_read(store: FaultyStore, moving: MovableClock) -> None:
    """A process that knows the cool-down reads everything at once."""
    cool_down = cooling(store)
    cool_down.start(30, STOP)
    look(cool_down, store)
    before = store.contents()
    store.commands.clear()
    look(cool_down, store)
    assert [name for name, _ in store.commands] == ["get_many"]
    assert store.contents() == before


@pytest.mark.parametrize("skew", [-7200, -3, 3, 7200])
def test_the_clock_of_the_store_decides(store: FaultyStore, moving: MovableClock, skew: float) -> None:
    """Hosts whose clocks are wrong cool down as long as the others."""
    cooling(store).start(30, STOP)
    moving.skew = skew
    refusal = look(cooling(store), store)
    assert refusal is not None
    assert refusal.kind is STOP
    assert refusal.retry_after is not None
    assert 0.0 <= refusal.retry_after <= 3600.0
    moving.move(31)
    assert look(cooling(store), store) is None


@pytest.mark.parametrize("nth", range(1, 5))
@pytest.mark.parametrize(("mine", "theirs"), [(30, 600), (600, 30)])
def test_of_two_at_the_same_time_the_longer_wins(
    store: FaultyStore, moving: MovableClock, nth: int, mine: float, theirs: float
) -> None:
    """Whichever command of one is interrupted by the other: the longer wish stays."""
    cooling(store).start(10, STOP)
    store.interruptions = [None] * nth + [lambda: cooling(store).start(theirs, STOP)]
    cooling(store).start(mine, STOP)
    assert look(cooling(store), store) == Refusal("cooling_down", 600.0, STOP)


@pytest.mark.parametrize("fault", ["lost", "reply", "late"])
@pytest.mark.parametrize("nth", range(3))
def test_a_lost_command_harms_nobody(store: FaultyStore, moving: MovableClock, nth: int, fault: str) -> None:
    """Whatever gets lost: what was in force stays in force, nothing raises, and the next wish is granted."""
    cool_down = cooling(store)
    cool_down.start(10, STOP)
    store.faults = [""] * nth + [fault]
    cool_down.start(600, STOP)
    store.faults.clear()
    store.deliver()
    assert look(cooling(store), store) is not None
    cool_down.start(700, STOP)
    assert look(cooling(store), store) == Refusal("cooling_down", 700.0, STOP)


def test_it_gives_up_where_others_always_are_faster(store: FaultyStore, moving: MovableClock) -> None:
    """Even against somebody who extends without end it comes back."""
    wishes = itertools.count(100)

    store.always = lambda: cooling(store).start(next(wishes), STOP)
    cooling(store).start(3000, STOP)
    store.always = None
    refusal = look(cooling(store), store)
    assert refusal is not None
    assert refusal.retry_after is not None
    assert 100 <= refusal.retry_after < 3000


@pytest.mark.parametrize(
    "garbage",
    [None, 7, "text", [], {}, {"g": 5}, {"g": "x"}, {"g": "x", "until": 5}, {"g": "x", "until": {"stop": "soon"}}],
)
def test_garbage_counts_as_nothing_and_is_replaced(store: FaultyStore, garbage: object) -> None:
    """Whatever another program wrote under the keys, a cool-down can be seen, and begun."""
    store.inner.set(NAMES.key("cool:hint"), garbage, 60)
    store.inner.set(NAMES.key("cool:on:x"), 1, 60)
    assert look(cooling(store), store) is None
    cooling(store).start(30, STOP)
    assert look(cooling(store), store) == Refusal("cooling_down", 30.0, STOP)


def test_a_chain_that_bites_its_tail_ends(store: FaultyStore) -> None:
    """A circle of links, which nobody writes, does not hang anybody."""
    chain = Generations(store, "c", 60, lambda link: ())
    for first, second in (("0", "a"), ("a", "b"), ("b", "a")):
        store.inner.set(f"c:next:{first}", {"g": second}, 60)
    assert chain.end(store.contents())["g"] in {"a", "b"}


def test_a_store_in_trouble_makes_nobody_forget(store: FaultyStore, moving: MovableClock) -> None:
    """A process that read nothing because of a pause still knows what to ask for afterwards."""
    cool_down = cooling(store)
    cool_down.start(30, STOP)
    store.is_paused = True
    look(cool_down, store)
    store.is_paused = False
    store.commands.clear()
    assert look(cool_down, store) is not None
    assert len(store.commands) == 1


@settings(max_examples=150, deadline=None)
@given(
    wishes=st.lists(
        st.tuples(st.sampled_from([1, 5, 30, 31, 600, 5000]), st.sampled_from([STOP, TEMPORARY]), st.integers(0, 40)),
        max_size=8,
    )
)
def test_as_long_as_the_longest_wish(wishes: list[tuple[int, Outcome, int]]) -> None:
    """At every moment: cooling exactly while some wish is open, and a stop while a stop's is."""
    with pytest.MonkeyPatch.context() as patch:
        moving = MovableClock().install(patch)
        store = FaultyStore()
        until = {STOP: 0.0, TEMPORARY: 0.0}
        for seconds, kind, pause in wishes:
            cooling(store).start(seconds, kind)
            until[kind] = max(until[kind], moving.now + min(seconds, 3600))
            moving.move(pause)
            refusal = look(cooling(store), store)
            assert (refusal is not None) == (max(until.values()) > moving.now)
            if refusal is not None:
                assert refusal.kind == (STOP if until[STOP] > moving.now else TEMPORARY)
                assert refusal.retry_after == pytest.approx(max(until.values()) - moving.now)


def test_another_thread_that_starts_it_is_seen_by_one_that_was_about_to_read(store: FaultyStore) -> None:
    """Both threads have one object: what one of them has just learnt does not spare the other its own reading."""
    cool_down = cooling(store)
    store.interruptions = [lambda: cool_down.start(30, STOP)]
    assert look(cool_down, store) == Refusal("cooling_down", 30.0, STOP)
