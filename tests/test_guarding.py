"""Is any call guarded as a source's is: counted right, refused right, and made once?"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from catalog_fallback import signals
from catalog_fallback.exceptions import (
    BudgetExhausted,
    BulkheadFull,
    CallRejected,
    CircuitOpen,
    RateLimited,
)
from catalog_fallback.services import guarded, time_budget
from tests.guarded_sites import (
    QUICK,
    Desk,
    Provider,
    settled,
    way_async_block,
    way_block,
    way_coroutine,
    way_plain,
)
from tests.sites import MovableClock

HOUR = {"RATE_LIMIT": {"CALLS": 1, "PER": 3600}}


@pytest.fixture
def desk(settings: Any) -> Desk:
    """A site with one guard that two failures open."""
    return Desk(settings)


WAYS = [way_plain, way_block, way_coroutine, way_async_block]
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


# --- what counts ----------------------------------------------------------------------------------------------------

COUNTED = [
    ConnectionError(),
    ConnectionResetError(),
    TimeoutError(),
    requests.ConnectionError(),
    requests.ReadTimeout(),
]
PASSING = [requests.HTTPError(), OSError(), ValueError(), KeyError(), requests.TooManyRedirects()]


@every_way
@pytest.mark.parametrize("error", COUNTED, ids=lambda error: type(error).__name__)
def test_connection_errors_and_timeouts_count(desk: Desk, way: Any, error: Exception) -> None:
    """They go to the caller, and two of them open the breaker: the third call is not made."""
    provider = Provider(error, error)
    for _ in range(2):
        with pytest.raises(type(error)):
            way(provider)
    with pytest.raises(CircuitOpen) as caught:
        way(provider)
    assert (provider.calls, caught.value.catalog) == (2, "default")
    assert caught.value.retry_after == pytest.approx(30, abs=2)
    assert desk.is_idle()


@every_way
@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_other_exceptions_pass_and_prove_nothing(desk: Desk, way: Any, error: Exception) -> None:
    """An HTTP error is an OSError, and yet somebody has answered."""
    provider = Provider(*[error] * 5)
    for _ in range(5):
        with pytest.raises(type(error)):
            way(provider)
    assert (provider.calls, desk.status().state) == (5, "closed")
    assert desk.is_idle()


@every_way
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()], ids=lambda e: type(e).__name__)
def test_h11_resilience4j_682_whoever_ends_the_process_proves_nothing(
    desk: Desk, way: Any, error: BaseException
) -> None:
    """Neutral, whatever is counted; the seat is given back and the exception goes on."""
    provider = Provider(*[error] * 3)
    for _ in range(3):
        with pytest.raises(type(error)):
            way(provider, counted=Exception)
    assert desk.status().state == "closed"
    settled(desk)


@every_way
def test_a_neutral_end_clears_no_count_and_adds_none(desk: Desk, way: Any) -> None:
    """One failure, five bugs, one failure: that were two in a row."""
    provider = Provider(TimeoutError(), *[ValueError()] * 5, TimeoutError())
    for _ in range(7):
        with pytest.raises((TimeoutError, ValueError)):
            way(provider)
    assert desk.status().state == "open"


@every_way
def test_a_success_clears_the_count(desk: Desk, way: Any) -> None:
    """Two failures with a success between them are not two in a row."""
    provider = Provider(TimeoutError(), None, TimeoutError(), None)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            way(provider)
        way(provider)
    assert desk.status().state == "closed"


@pytest.mark.parametrize(
    "counted", [LookupError, [LookupError], (LookupError,), {LookupError}], ids=["class", "list", "tuple", "set"]
)
def test_what_counts_can_be_said(desk: Desk, counted: Any) -> None:
    """Subclasses count too; what counts by default does so no longer."""
    provider = Provider(*[TimeoutError()] * 3, KeyError(), IndexError())
    for _ in range(5):
        with pytest.raises((TimeoutError, LookupError)):
            way_plain(provider, counted=counted)
    assert desk.status().state == "open"


def test_nothing_counts(desk: Desk) -> None:
    """An empty list is not None."""
    provider = Provider(*[TimeoutError()] * 5)
    for _ in range(5):
        with pytest.raises(TimeoutError):
            way_plain(provider, counted=[])
    assert desk.status().state == "closed"


def test_polly_1979_a_probe_that_ends_with_a_bug(desk: Desk, moving: MovableClock) -> None:
    """It frees its slot: the next one probes, and its success closes the breaker."""
    provider = Provider(TimeoutError(), TimeoutError(), ValueError())
    for _ in range(2):
        with pytest.raises(TimeoutError):
            way_plain(provider)
    moving.move(31)
    with pytest.raises(ValueError):  # noqa: PT011  # whatever it says
        way_plain(provider)
    assert desk.status().state == "half_open"
    way_plain(provider)
    assert (desk.status().state, provider.calls) == ("closed", 4)


@every_way
def test_a_refusal_further_in_proves_nothing(desk: Desk, way: Any) -> None:
    """A guard within a guard refuses: that says nothing of the outer one's provider, even where everything counts."""
    desk.configure(desk=QUICK, inner=HOUR)
    way_of_inner = guarded("inner")
    with way_of_inner:
        pass

    class Refused(Provider):
        def call(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
            with way_of_inner:
                raise AssertionError("never called")

    for _ in range(5):
        with pytest.raises(RateLimited):
            way(Refused(), counted=Exception)
    assert desk.status().state == "closed"


# --- fallback -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [way_plain, way_coroutine], ids=["plain", "coroutine"])
@pytest.mark.parametrize("value", [None, [], {}, 0, "", "later", (1, 2), {1}], ids=repr)
def test_a_fallback_value_stands_in(desk: Desk, way: Any, value: Any) -> None:
    """For a failure and for a refusal; None, [] and {} are values."""
    provider = Provider(*[TimeoutError()] * 2)
    results = []

    def call() -> Any:
        return provider.call()

    async def acall() -> Any:
        return provider.call()

    for _ in range(3):
        if way is way_plain:
            results.append(guarded("desk", fallback=value)(call)())
        else:
            results.append(asyncio.run(guarded("desk", fallback=value)(acall)()))
    assert results == [value] * 3
    assert (provider.calls, desk.is_idle()) == (2, True)


def test_nobody_shares_a_container_with_the_next_one(desk: Desk) -> None:
    """What one caller does to his list is not in the next one's."""
    call = guarded("desk", fallback={"items": []})(Provider(*[TimeoutError()] * 2).call)
    call()["items"].append("mine")
    assert call() == {"items": []}


def test_a_fallback_callable_gets_the_arguments(desk: Desk) -> None:
    """Positional and by name; its result is the call's."""
    provider = Provider(TimeoutError())

    def instead(order: int, *, amount: str) -> tuple[str, int, str]:
        return "queued", order, amount

    call = guarded("desk", fallback=instead)(provider.call)
    assert call(7, amount="3.50") == ("queued", 7, "3.50")
    assert call(7, amount="3.50") == (7, ("amount", "3.50"))


def test_a_fallback_coroutine_is_awaited(desk: Desk) -> None:
    """A plain function serves too."""

    async def instead(order: int) -> str:
        await asyncio.sleep(0)
        return f"queued {order}"

    async def both() -> list[str]:
        @guarded("desk", fallback=instead)
        async def pay(order: int) -> str:
            raise TimeoutError

        @guarded("desk", fallback=lambda order: f"noted {order}")
        async def buy(order: int) -> str:
            raise TimeoutError

        return [await pay(1), await buy(2), await buy(3)]

    assert asyncio.run(both()) == ["queued 1", "noted 2", "noted 3"]


@pytest.mark.parametrize("error", [ValueError(), requests.HTTPError()], ids=lambda error: type(error).__name__)
def test_a_fallback_hides_no_other_exception(desk: Desk, error: Exception) -> None:
    """Only what is counted, and refusals."""
    with pytest.raises(type(error)):
        way_plain(Provider(error), fallback="never")


def test_what_a_fallback_raises_goes_to_the_caller(desk: Desk) -> None:
    """With the failure behind it, and the seat given back."""

    def instead() -> None:
        raise RuntimeError("the queue is full")

    with pytest.raises(RuntimeError, match="queue is full") as caught:
        way_plain(Provider(TimeoutError()), fallback=instead)
    assert isinstance(caught.value.__context__, TimeoutError)
    assert desk.is_idle()


@pytest.mark.parametrize("way", [way_block, way_async_block], ids=["with", "async with"])
@pytest.mark.parametrize("value", [None, [], print], ids=["None", "list", "callable"])
def test_a_block_cannot_be_skipped(desk: Desk, way: Any, value: Any) -> None:
    """A fallback is a TypeError there, before anything is called."""
    provider = Provider()
    with pytest.raises(TypeError, match="cannot skip"):
        way(provider, fallback=value)
    assert (provider.calls, desk.is_idle()) == (0, True)


# --- refusals -------------------------------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize(
    ("keys", "error"),
    [({"RATE_LIMIT": {"CALLS": 1, "PER": 60}}, RateLimited), ({"MAX_CONCURRENT": 1}, BulkheadFull)],
    ids=["rate limit", "bulkhead"],
)
def test_limits_refuse(desk: Desk, way: Any, keys: dict[str, Any], error: type[CallRejected]) -> None:
    """Each with its own exception; the call is not made, and the breaker counts nothing."""
    desk.configure(desk={**QUICK, **keys})
    provider = Provider()
    with guarded("desk"):
        for _ in range(3):
            with pytest.raises(error):
                way(provider)
    assert (provider.calls, desk.status().state) == (0, "closed")
    assert desk.is_idle()


@every_way
def test_a_budget_that_is_used_up_refuses(desk: Desk, way: Any, moving: MovableClock) -> None:
    """The call is not made; a budget that is not used up changes nothing."""
    provider = Provider()
    with time_budget(5):
        way(provider)
        moving.move(6)
        with pytest.raises(BudgetExhausted):
            way(provider)
    assert provider.calls == 1
    assert desk.is_idle()


def test_it_is_made_once(desk: Desk) -> None:
    """Never again, whatever it raises; no source of the catalog is asked."""
    asked: list[object] = []
    signals.source_called.connect(lambda **kwargs: asked.append(kwargs), weak=False, dispatch_uid="guarding")
    try:
        provider = Provider(TimeoutError())
        with pytest.raises(TimeoutError):
            way_plain(provider)
    finally:
        signals.source_called.disconnect(dispatch_uid="guarding")
    assert (provider.calls, asked) == (1, [])


def test_polly_1878_rejections_do_not_grow(desk: Desk) -> None:
    """Ten thousand of them: each is a new exception with nothing behind it, and nothing is kept."""
    call = guarded("desk")(Provider(*[TimeoutError()] * 2).call)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            call()
    seen: set[tuple[int, bool, bool]] = set()

    def reject(times: int) -> None:
        for _ in range(times):
            try:
                call()
            except CircuitOpen as error:
                depth = sum(1 for _ in _frames(error))
                seen.add((depth, error.__context__ is None, error.__cause__ is None))

    reject(500)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    desk.shelf.log.clear()
    reject(10_000)
    desk.shelf.log.clear()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(seen) == 1
    assert seen.pop()[1:] == (True, True)
    assert grown < 100_000


def _frames(error: BaseException) -> Iterator[Any]:
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
