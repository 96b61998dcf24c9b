"""Is each permit settled once, on every path?"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from catalog_fallback import classify
from catalog_fallback.configuration import BreakerConfig
from catalog_fallback.resilience.guard import Stores
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.results import Outcome, Verdict
from tests.resilience.breakers import CLOSED, HALF_OPEN
from tests.resilience.guards import (
    GOOD,
    exhaust,
    guard,
    look,
    permit_of,
    read_limiter,
    settle,
    state,
)
from tests.resilience.worlds import FaultyStore, MovableClock

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
