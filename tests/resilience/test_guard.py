"""Do the patterns work together: in their order, one read, each permit settled once, whatever the store does?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from catalog_fallback import classify
from catalog_fallback.configuration import BreakerConfig, GuardConfig, RateLimitConfig, SourceConfig
from catalog_fallback.resilience.breaker_record import BreakerState
from catalog_fallback.resilience.guard import Guard, Stores
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.resilience.rate_limiter import RatePermit
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.store import ProcessStore
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Outcome, Verdict
from tests.resilience.breakers import CLOSED, HALF_OPEN, OPEN
from tests.resilience.worlds import FaultyStore, MovableClock

T = TypeVar("T")

BREAKER = BreakerConfig(consecutive_failures=2, failure_rate=None)
GOOD, BAD = classify.verdict("ok"), classify.verdict("timeout")


@pytest.fixture
def stores(store: FaultyStore) -> Stores:
    """A shared store, and the one in the process."""
    return Stores(store)


def guard(stores: Stores, alias: str = "primary", **changes: Any) -> Guard:
    """A guard with all patterns."""
    options = {"breaker": BREAKER, "rate_limit": RateLimitConfig(100, 60), "max_concurrent": 8, "call_limit": 2.0}
    return Guard(Names("default", alias), stores, **{**options, **changes})


def permit_of(guarded: Guard) -> Permit:
    """A permit that must be there."""
    permit = guarded.take()
    assert isinstance(permit, Permit), permit
    return permit


def settle(guarded: Guard, *verdicts: Verdict) -> None:
    """One call after the other."""
    for verdict in verdicts:
        permit_of(guarded).settle(verdict)


def look(guarded: Guard, **options: bool) -> Refusal | None:
    """Read and look."""
    return guarded.look(guarded.stores.read((guarded,)), **options)


def state(guarded: Guard) -> BreakerState:
    """What the guard shows."""
    return guarded.status(guarded.stores.read((guarded,))).state


# ------------------------------------------------------------------------------------------ the order


def exhaust(guarded: Guard, what: str) -> None:
    """Make one pattern refuse."""
    patterns = guarded.patterns(guarded.stores.shared)
    match what:
        case "cooling_down":
            patterns.cool_down.start(60, Outcome.STOP)
        case "bulkhead_full":
            while guarded.bulkhead.look() is None:
                guarded.bulkhead.take()
        case "rate_limited":
            while isinstance(made(patterns.limiter).take(), RatePermit):
                pass
        case "circuit_open":
            settle(guarded, BAD, BAD)


def made(pattern: T | None) -> T:
    """A pattern that the guard must have."""
    assert pattern is not None
    return pattern


def read_limiter(guarded: Guard) -> Any:
    """What the shared store has counted."""
    return guarded.stores.shared.get_many(made(guarded.patterns(guarded.stores.shared).limiter).keys())


ORDER = ["cooling_down", "bulkhead_full", "rate_limited", "circuit_open"]


@pytest.mark.parametrize("place", range(len(ORDER)))
def test_the_first_pattern_that_refuses_is_named(stores: Stores, place: int) -> None:
    """Cool-down, bulkhead, rate limit, breaker: of those that refuse the first gives the reason."""
    guarded = guard(stores)
    exhaust(guarded, "circuit_open")  # the only one that takes calls to be exhausted
    for what in ORDER[place:-1]:
        exhaust(guarded, what)
    refusals = {refusal.reason for refusal in (look(guarded), guarded.take()) if isinstance(refusal, Refusal)}
    assert refusals == {ORDER[place]}


def test_isolated_comes_before_everything(stores: Stores) -> None:
    """resilience4j#991: an operator's decision ignores every timer and every state."""
    guarded = guard(stores)
    assert look(guarded, is_isolated=True) == guarded.take(is_isolated=True) == Refusal("isolated")
    exhaust(guarded, "cooling_down")
    assert guarded.take(is_isolated=True) == Refusal("isolated")
    status = guarded.status(stores.read((guarded,)), is_isolated=True)
    assert status.state is BreakerState.ISOLATED
    assert status.refusal == Refusal("isolated")


def test_a_refused_call_takes_nothing(stores: Stores, store: FaultyStore, moving: MovableClock) -> None:
    """Whatever refuses: no seat, no count, no slot is kept, and nothing is counted for or against the source."""
    guarded = guard(stores)
    exhaust(guarded, "circuit_open")
    moving.move(30)
    probe = permit_of(guarded)
    before = store.contents()
    assert isinstance(guarded.take(), Refusal)
    assert store.contents() == before
    assert guarded.bulkhead.in_use == 1
    probe.cancel()
    assert guarded.bulkhead.in_use == 0


def test_a_slot_that_is_gone_meanwhile_gives_the_count_back(
    stores: Stores, store: FaultyStore, moving: MovableClock
) -> None:
    """The slot is the scarcest and comes last: where it is lost, what was taken before is given back."""
    guarded, other = guard(stores), guard(stores)
    exhaust(guarded, "circuit_open")
    moving.move(30)
    permit_of(guarded).cancel()
    counts = [sum(read_limiter(guarded).values())]
    view = stores.read((guarded,))
    probe = permit_of(other)
    assert guarded.take(view) == Refusal("circuit_open", 1.0)
    counts.append(sum(read_limiter(guarded).values()))
    assert counts[1] == counts[0] + 1
    assert guarded.bulkhead.in_use == 0
    probe.cancel()


@pytest.mark.parametrize(("budget", "wait", "reason"), [(1, 2.9, "deadline"), (100, 3.1, "rate_limited")])
def test_a_call_that_would_start_too_late_does_not_start(
    stores: Stores, store: FaultyStore, moving: MovableClock, budget: float, wait: float, reason: str
) -> None:
    """The budget, or the bucket that it was counted in, passes while the slot is taken: all is given back."""
    guarded = guard(stores)
    exhaust(guarded, "circuit_open")
    moving.move(30)
    permit_of(guarded).cancel()
    counted = sum(read_limiter(guarded).values())
    store.interruptions = [None, None, None, lambda: moving.move(wait)]
    assert guarded.take(deadline=Deadline(moving.monotonic() + budget)) == Refusal(reason)
    assert sum(read_limiter(guarded).values()) == counted
    assert guarded.bulkhead.in_use == 0
    assert not [key for key in store.contents() if ":slot:" in key]


def test_a_budget_that_is_used_up_asks_nobody(stores: Stores, store: FaultyStore, moving: MovableClock) -> None:
    """Not even the store."""
    assert guard(stores).take(deadline=Deadline(moving.monotonic())) == Refusal("deadline")
    assert store.commands == []


# ------------------------------------------------------------------------------------------ looking


def test_one_read_for_all_guards(stores: Stores, store: FaultyStore) -> None:
    """All sources of a catalog, and other keys with them, in one command; nothing is taken."""
    guards = [guard(stores, alias) for alias in ("a", "b", "c")]
    store.set("mine", 7, 60)
    before = store.contents()
    stores.read(guards)
    store.commands.clear()
    view = stores.read(guards, more=("mine",))
    assert [name for name, _ in store.commands] == ["get_many"]
    assert view.found["mine"] == 7
    assert [guarded.look(view) for guarded in guards] == [None, None, None]
    assert store.contents() == before


def test_all_refused_costs_one_read(stores: Stores, store: FaultyStore) -> None:
    """Once the process knows that breakers are open, a look at all of them is one command."""
    guards = [guard(stores, alias) for alias in ("a", "b")]
    for guarded in guards:
        exhaust(guarded, "circuit_open")
    store.commands.clear()
    view = stores.read(guards)
    assert all(guarded.look(view) for guarded in guards)
    assert len(store.commands) == 1


def test_a_fresh_view_is_used_and_an_old_one_is_read_again(
    stores: Stores, store: FaultyStore, moving: MovableClock
) -> None:
    """Between look and take nothing is read again, unless a slow call came between."""
    guarded = guard(stores, rate_limit=None)
    view = stores.read((guarded,))
    store.commands.clear()
    guarded.take(view)
    assert store.commands == []
    moving.move(0.2)
    exhaust(guard(stores, rate_limit=None), "circuit_open")
    assert isinstance(guarded.take(view), Refusal)


def test_the_whole_call_costs_few_commands(stores: Stores, store: FaultyStore) -> None:
    """One read; with a rate limit two commands more; a success adds none."""
    for rate_limit, commands in ((None, 1), (RateLimitConfig(100, 60), 3)):
        guarded = guard(stores, rate_limit=rate_limit, breaker=BreakerConfig())
        settle(guarded, GOOD)
        store.commands.clear()
        settle(guarded, GOOD)
        assert len(store.commands) == commands


@pytest.mark.parametrize(
    ("verdicts", "pause", "shown"),
    [
        ([], 0, (CLOSED, "", None)),
        ([BAD, BAD], 0, (OPEN, "consecutive_failures", Refusal("circuit_open", 30.0))),
        ([BAD, BAD], 30, (HALF_OPEN, "consecutive_failures", None)),
    ],
)
def test_the_status_is_exactly_one_state(
    stores: Stores, moving: MovableClock, verdicts: list[Verdict], pause: float, shown: tuple[Any, ...]
) -> None:
    """opossum#484: closed, open, half-open or isolated; reading it takes no permit."""
    guarded = guard(stores)
    settle(guarded, *verdicts)
    opened_at = moving.now
    moving.move(pause)
    for _ in range(3):
        status = guarded.status(stores.read((guarded,)))
        assert (status.state, status.reason, status.refusal) == shown
        assert status.since == (opened_at if verdicts else None)
    assert (status.in_use, status.late_results) == (0, 0)


def test_a_guard_without_patterns_lets_everything_through(stores: Stores, store: FaultyStore) -> None:
    """No breaker, no limit: nothing is counted, the bulkhead stays."""
    guarded = guard(stores, breaker=None, rate_limit=None, max_concurrent=1)
    for verdict in (BAD, BAD, BAD, GOOD):
        settle(guarded, verdict)
    assert store.contents() == {}
    status = guarded.status(stores.read((guarded,)))
    assert (status.state, status.reason, status.since) == (CLOSED, "", None)
    assert guarded.reset() is True
    permit_of(guarded)
    assert guarded.take() == Refusal("bulkhead_full")


@pytest.mark.parametrize(
    ("config", "limit"),
    [(SourceConfig("primary", timeout=2.0, max_concurrent=3), 7), (GuardConfig("pay", max_concurrent=3), 65)],
)
def test_a_guard_is_made_from_its_configuration(
    stores: Stores, store: FaultyStore, moving: MovableClock, config: SourceConfig | GuardConfig, limit: float
) -> None:
    """Sources and guards of the settings; a call without a limit may take as long as its result would count."""
    told: list[Any] = []
    guarded = Guard.of(config, Names("default", config.alias), stores, on_change=lambda *change: told.append(change))
    assert guarded.bulkhead.max_concurrent == 3
    settle(guarded, *[BAD] * 5)
    moving.move(30)
    permit_of(guarded)
    (slot,) = [key for key in store.contents() if ":slot:" in key]
    assert store.life(slot) == limit
    assert [change[1] for change in told] == [OPEN, HALF_OPEN]


# ------------------------------------------------------------------------------------------ settling


ENDS: list[tuple[str, Callable[[Permit], None]]] = [
    *((reason, lambda permit, reason=reason: permit.settle(classify.verdict(reason))) for reason in classify.REASONS),
    *((f"http_{status}", lambda permit, status=status: permit.settle(classify.verdict(f"http_{status}")))
      for status in (204, 302, 400, 404, 500, 502, 503)),
    ("timed out", lambda permit: permit.settle(classify.verdict("deadline"), timed_out=True)),
    ("succeed", Permit.succeed),
    ("fail", Permit.fail),
    ("cancel", Permit.cancel),
    ("left", lambda permit: permit.__exit__(None, None, None)),
]  # fmt: skip


@pytest.mark.parametrize("end", [end for _, end in ENDS], ids=[name for name, _ in ENDS])
def test_nora_585_every_end_gives_everything_back(
    stores: Stores, store: FaultyStore, moving: MovableClock, end: Callable[[Permit], None]
) -> None:
    """After any end of a probe there is no slot taken and no seat."""
    guarded = guard(stores)
    exhaust(guarded, "circuit_open")
    moving.move(30)
    end(permit_of(guarded))
    assert not [key for key in store.contents() if ":slot:" in key]
    assert guarded.bulkhead.in_use == 0


@pytest.mark.parametrize("first", ["succeed", "fail", "cancel"])
@pytest.mark.parametrize("second", ["succeed", "fail", "cancel", "settle"])
def test_only_the_first_end_counts(stores: Stores, store: FaultyStore, first: str, second: str) -> None:
    """A permit that is settled twice is settled once."""
    guarded = guard(stores, breaker=BreakerConfig(2, 0.5, 10))
    permit = permit_of(guarded)
    getattr(permit, first)()
    before = store.contents()
    if second == "settle":
        permit.settle(Verdict(Outcome.STOP, "http_429"))
    else:
        getattr(permit, second)()
    assert store.contents() == before
    assert guarded.bulkhead.in_use == 0


def test_threads_that_end_one_permit_end_it_once(stores: Stores) -> None:
    """A call's end and its cancellation may come at the same time."""
    guarded = guard(stores, max_concurrent=2)
    permit, barrier = permit_of(guarded), threading.Barrier(8)

    def end() -> None:
        barrier.wait()
        permit.cancel()

    threads = [threading.Thread(target=end) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert guarded.bulkhead.in_use == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, ValueError, TimeoutError])
@pytest.mark.parametrize("is_probe", [False, True])
def test_resilience4j_682_an_abort_is_neutral(
    stores: Stores, store: FaultyStore, moving: MovableClock, error: type[BaseException], is_probe: bool
) -> None:
    """Whatever passes through a call that nobody settled proves nothing, frees all, and goes on to the caller."""
    guarded = guard(stores)
    if is_probe:
        exhaust(guarded, "circuit_open")
        moving.move(30)
    for _ in range(3):
        with pytest.raises(error), permit_of(guarded):
            raise error
    assert state(guarded) is (HALF_OPEN if is_probe else CLOSED)
    assert guarded.bulkhead.in_use == 0
    settle(guarded, GOOD)
    assert state(guarded) is CLOSED


@pytest.mark.parametrize("nth", range(6))
def test_an_abort_while_permits_are_taken_gives_back(
    stores: Stores, store: FaultyStore, moving: MovableClock, nth: int
) -> None:
    """KeyboardInterrupt in the middle of taking leaves no seat taken and no count."""
    guarded = guard(stores)
    exhaust(guarded, "circuit_open")
    moving.move(30)
    permit_of(guarded).cancel()
    counted = sum(read_limiter(guarded).values())

    def interrupt() -> None:
        store._is_interrupted = False
        raise KeyboardInterrupt

    store.interruptions = [*[None] * nth, interrupt]
    try:
        permit = guarded.take()
    except KeyboardInterrupt:
        assert guarded.bulkhead.in_use == 0
        assert sum(read_limiter(guarded).values()) <= counted + 1
    else:
        assert isinstance(permit, Permit)
        store.interruptions.clear()
        permit.cancel()
    moving.move(10)
    settle(guarded, GOOD)
    assert state(guarded) is CLOSED


@pytest.mark.parametrize(
    ("verdict", "refusal"),
    [
        (Verdict(Outcome.STOP, "http_429", retry_after=5.0), Refusal("cooling_down", 5.0, Outcome.STOP)),
        (Verdict(Outcome.STOP, "http_429"), Refusal("cooling_down", 30.0, Outcome.STOP)),
        (Verdict(Outcome.STOP, "http_429", retry_after=0.0), None),
        (Verdict(Outcome.TEMPORARY, "http_429", retry_after=5.0), Refusal("cooling_down", 5.0, Outcome.TEMPORARY)),
        (Verdict(Outcome.TEMPORARY, "http_503", retry_after=5.0), Refusal("cooling_down", 5.0, Outcome.TEMPORARY)),
        (Verdict(Outcome.TEMPORARY, "http_503", retry_after=1e9), Refusal("cooling_down", 3600.0, Outcome.TEMPORARY)),
        (Verdict(Outcome.TEMPORARY, "http_503"), None),
        (Verdict(Outcome.TEMPORARY, "http_502", retry_after=5.0), None),
        (Verdict(Outcome.FOUND, "ok", {}), None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_urllib3_1338_retry_after_becomes_a_cool_down(
    stores: Stores, verdict: Verdict, refusal: Refusal | None
) -> None:
    """429 and 503 put the source on a cool-down that other processes see; the default of a 429 is 30 s; 0 is 0."""
    settle(guard(stores), verdict)
    assert look(guard(stores)) == refusal


def test_resilience4j_1228_a_429_is_neutral_for_the_breaker(stores: Stores, moving: MovableClock) -> None:
    """It starts a cool-down, opens nothing and closes nothing."""
    guarded = guard(stores)
    for _ in range(5):
        settle(guarded, Verdict(Outcome.STOP, "http_429", retry_after=1.0))
        moving.move(2)
    assert state(guarded) is CLOSED
    exhaust(guarded, "circuit_open")
    moving.move(30)
    settle(guarded, Verdict(Outcome.STOP, "http_429", retry_after=1.0))
    moving.move(2)
    assert state(guarded) is HALF_OPEN


# ------------------------------------------------------------------------------------------ trouble with the store


def test_a_paused_store_is_replaced(stores: Stores, store: FaultyStore) -> None:
    """While the shared store is left alone the guard works in the process, and goes back afterwards."""
    guarded = guard(stores)
    store.is_paused = True
    settle(guarded, BAD, BAD)
    assert isinstance(guarded.take(), Refusal)
    store.is_paused = False
    assert isinstance(guarded.take(), Permit)
    assert store.contents().keys() <= {key for key in store.contents() if ":calls:" in key}


@pytest.mark.parametrize("nth", range(2))
def test_a_store_that_cannot_tell_is_replaced_for_that_decision(stores: Stores, store: FaultyStore, nth: int) -> None:
    """django-redis answers None while it hides an error: nobody waits, nothing raises, the process decides."""
    guarded = guard(stores, rate_limit=RateLimitConfig(2, 60))
    for _ in range(2):
        store.faults = ["lost", "lost"]
        permit_of(guarded).cancel()
    store.faults = ["lost", "lost"]
    answer = guarded.take()
    assert isinstance(answer, Refusal)
    assert answer.reason == "rate_limited"
    assert isinstance(guarded.take(), Permit)


def test_a_probe_that_cannot_be_told_is_decided_in_the_process(
    stores: Stores, store: FaultyStore, moving: MovableClock
) -> None:
    """What was taken of the shared store is given back before the other one decides."""
    guarded = guard(stores)
    exhaust(guarded, "circuit_open")
    moving.move(30)
    permit_of(guarded).cancel()
    counted = sum(read_limiter(guarded).values())
    store.faults = ["", "lost"]
    permit = permit_of(guarded)
    assert sum(read_limiter(guarded).values()) == counted
    assert guarded.bulkhead.in_use == 1
    permit.cancel()
    assert guarded.bulkhead.in_use == 0


def test_neither_store_can_tell(store: FaultyStore, moving: MovableClock) -> None:
    """Then the answer is no."""
    other = FaultyStore()
    guarded = guard(Stores(store, other))
    store.faults, other.faults = ["lost"] * 9, ["lost"] * 9
    assert guarded.take() == Refusal("circuit_open")
    assert guarded.bulkhead.in_use == 0


def test_a_permit_is_settled_in_the_store_that_issued_it(stores: Stores, store: FaultyStore) -> None:
    """The store comes back, or goes, between take and settle: the result goes where the permit is from."""
    guarded = guard(stores, rate_limit=None)
    store.is_paused = True
    local = [permit_of(guarded) for _ in range(2)]
    store.is_paused = False
    for permit in local:
        permit.settle(BAD)
    assert state(guarded) is CLOSED
    assert store.contents() == {}
    store.is_paused = True
    assert state(guarded) is OPEN


def test_a_failure_that_the_shared_store_did_not_take_counts_in_the_process(stores: Stores, store: FaultyStore) -> None:
    """litellm#34300: a broken cache does not make a broken source look well."""
    guarded = guard(stores, rate_limit=None)
    permits = [permit_of(guarded) for _ in range(2)]
    store.is_paused = True
    for permit in permits:
        permit.settle(BAD)
    assert isinstance(guarded.take(), Refusal)


def test_a_failure_that_the_process_could_not_take_either_is_let_go(store: FaultyStore) -> None:
    """Nothing is left to count it in, and nothing loops."""
    other = FaultyStore()
    guarded = guard(Stores(store, other), rate_limit=None)
    store.is_paused = True
    permit = permit_of(guarded)
    other.is_paused = True
    permit.settle(BAD)
    assert guarded.bulkhead.in_use == 0


def test_a_cool_down_survives_the_store(stores: Stores, store: FaultyStore) -> None:
    """The process that was told keeps to it, whatever becomes of the shared store."""
    guarded = guard(stores)
    settle(guarded, Verdict(Outcome.STOP, "http_429", retry_after=60.0))
    store.is_paused = True
    assert look(guarded) == Refusal("cooling_down", 60.0, Outcome.STOP)


def test_without_the_store_the_limit_is_per_process(stores: Stores, store: FaultyStore) -> None:
    """What a process has used up before the store went it has used up afterwards."""
    guarded = guard(stores, rate_limit=RateLimitConfig(3, 60))
    settle(guarded, GOOD, GOOD, GOOD)
    store.is_paused = True
    assert look(guarded) is not None
    assert isinstance(guarded.take(), Refusal)


def test_reset_closes_both(stores: Stores, store: FaultyStore) -> None:
    """An operator's reset reaches the shared state, and this process's own."""
    guarded = guard(stores, rate_limit=None)
    for is_paused in (False, True):
        store.is_paused = is_paused
        exhaust(guarded, "circuit_open")
    store.is_paused = False
    assert guarded.reset() is True
    assert state(guarded) is CLOSED
    store.is_paused = True
    assert state(guarded) is CLOSED
    assert guarded.reset() is False


def test_the_stores_are_the_sites_choice(store: FaultyStore) -> None:
    """An empty store of one's own is taken, not replaced."""
    own = ProcessStore()
    assert Stores(store, own).local is own
    assert isinstance(Stores(store).local, ProcessStore)
