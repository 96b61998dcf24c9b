"""Is any call guarded as a source's is: counted right, refused right, made once, and every permit given back?"""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest
import requests

from catalog_fallback import conf, services, signals
from catalog_fallback.exceptions import (
    BudgetExhausted,
    BulkheadFull,
    CallRejected,
    CircuitOpen,
    RateLimited,
    UnknownCatalog,
)
from catalog_fallback.off_loop import Pool, submit
from catalog_fallback.services import NOT_SET, guarded, time_budget
from tests.guarded_sites import QUICK, Desk
from tests.shops import elsewhere
from tests.sites import MovableClock

HOUR = {"RATE_LIMIT": {"CALLS": 1, "PER": 3600}}


@pytest.fixture
def desk(settings: Any) -> Desk:
    """A site with one guard that two failures open."""
    return Desk(settings)


class Provider:
    """Somebody to call, who answers or raises as he is told, and counts."""

    def __init__(self, *errors: BaseException | None) -> None:
        self.errors = list(errors)
        self.calls = 0

    def call(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """One call."""
        self.calls += 1
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return (*args, *kwargs.items())


def way_plain(provider: Provider, **options: Any) -> None:
    """Decorate a function."""
    guarded("desk", **options)(provider.call)()


def way_block(provider: Provider, **options: Any) -> None:
    """Use a block."""
    with guarded("desk", **options):
        provider.call()


def way_coroutine(provider: Provider, **options: Any) -> None:
    """Decorate a coroutine function."""

    @guarded("desk", **options)
    async def call() -> None:
        await asyncio.sleep(0)
        provider.call()

    asyncio.run(call())


def way_async_block(provider: Provider, **options: Any) -> None:
    """Use an asynchronous block."""

    async def call() -> None:
        async with guarded("desk", **options):
            await asyncio.sleep(0)
            provider.call()

    asyncio.run(call())


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


# --- state ----------------------------------------------------------------------------------------------------------


def test_the_state_is_shared_by_all_processes(desk: Desk) -> None:
    """One that starts while it is open finds it open, and writes nothing."""
    provider = Provider(*[TimeoutError()] * 2)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            way_plain(provider)
    conf.forget()
    kept = desk.shelf.values.copy()
    with pytest.raises(CircuitOpen):
        way_plain(provider)
    assert desk.shelf.values == kept


def test_a_guard_is_no_source_and_no_other_catalogs_guard(desk: Desk, transactional_db: None) -> None:
    """The same alias elsewhere has its own state."""
    desk.configure(only=QUICK)
    call = guarded("only")(Provider(*[TimeoutError()] * 2).call)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            call()
    assert desk.status("only").state == "open"
    assert desk.status("only", "other").state == "closed"
    assert services.explain_item("P001").sources[0].may_call


def test_a_listener_hears_of_a_change_once(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """The alias stands where a source's would; one line is logged."""
    heard: list[tuple[str, ...]] = []

    def listen(catalog: str, source: str, old: str, new: str, reason: str, **_: Any) -> None:
        heard.append((catalog, source, old, new, reason))

    signals.breaker_changed.connect(listen)
    provider = Provider(*[TimeoutError()] * 2)
    with caplog.at_level(logging.INFO, "catalog_fallback"):
        for _ in range(2):
            with pytest.raises(TimeoutError):
                way_plain(provider)
    assert heard == [("default", "desk", "closed", "open", "consecutive_failures")]
    assert len([line for line in caplog.messages if "open" in line]) == 1


@pytest.mark.parametrize("alias", ["fresh", "a" * 64, "A_b-9"])
def test_an_alias_needs_no_settings(desk: Desk, alias: str) -> None:
    """Its guard has the defaults: five failures in a row."""
    call = guarded(alias)(Provider(*[TimeoutError()] * 5).call)
    for _ in range(5):
        assert desk.status(alias).state == "closed"
        with pytest.raises(TimeoutError):
            call()
    with pytest.raises(CircuitOpen):
        call()


def test_a_slip_of_the_pen_is_logged(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """An alias near to one of GUARDS, once; any other alias is nobody's mistake."""
    for alias in ("dsek", "dsek", "somewhere"):
        with guarded(alias):
            pass
    assert [line for line in caplog.messages if "GUARDS" in line] == [
        "Guard 'dsek' is not in GUARDS of 'default': it has the defaults. Did you mean \"desk\"?"
    ]


def test_settings_are_read_when_it_is_used(desk: Desk) -> None:
    """Not where it is written: modules are imported before settings are complete."""
    call = guarded("desk", catalog="nowhere")(Provider().call)
    with pytest.raises(UnknownCatalog):
        call()
    late = guarded("desk")(Provider(*[KeyError()] * 1).call)
    desk.configure(desk={"COUNTED": ["builtins.KeyError"], "FALLBACK": []})
    assert late() == []


def test_arguments_win_over_settings(desk: Desk) -> None:
    """Key by key."""
    desk.configure(desk={"COUNTED": [KeyError], "FALLBACK": "setting"})
    assert guarded("desk", fallback="argument")(Provider(KeyError()).call)() == "argument"
    assert guarded("desk", fallback=None)(Provider(KeyError()).call)() is None
    assert guarded("desk", counted=ValueError)(Provider(ValueError()).call)() == "setting"
    with pytest.raises(KeyError):
        guarded("desk", counted=ValueError)(Provider(KeyError()).call)()


def test_a_fallback_of_the_settings_and_a_block(desk: Desk) -> None:
    """The same TypeError, which says where the fallback is."""
    desk.configure(desk={"FALLBACK": None})
    with pytest.raises(TypeError, match="setting FALLBACK"):
        way_block(Provider())
    assert guarded("desk")(Provider(TimeoutError()).call)() is None


def test_without_a_cache_the_process_guards_by_itself(desk: Desk) -> None:
    """A cache that fails breaks no call, and the breaker still opens."""

    def down(name: str, keys: tuple[str, ...], effect: Any) -> Any:
        raise ConnectionError("cache is off")

    desk.shelf.fault = down
    provider = Provider(*[TimeoutError()] * 20)
    for _ in range(20):
        with pytest.raises((TimeoutError, CircuitOpen)):
            way_plain(provider)
    assert provider.calls < 10


# --- functions and methods ------------------------------------------------------------------------------------------


def test_a_function_keeps_its_name_and_signature(desk: Desk) -> None:
    """As with any well-behaved decorator."""

    @guarded("desk")
    def pay(order: int, *, amount: str = "1") -> str:
        """Pay."""
        return f"{order} {amount}"

    @guarded("desk")
    async def apay(order: int) -> None:
        """Pay later."""

    assert (pay.__name__, pay.__doc__, pay(3)) == ("pay", "Pay.", "3 1")
    assert list(inspect.signature(pay).parameters) == ["order", "amount"]
    assert inspect.iscoroutinefunction(apay)
    assert not inspect.iscoroutinefunction(pay)


def test_methods(desk: Desk) -> None:
    """Plain, static, of the class, and asynchronous ones."""

    class Portal:
        name = "portal"

        @guarded("desk")
        def plain(self, number: int) -> tuple[str, int]:
            return self.name, number

        @staticmethod
        @guarded("desk")
        def static(number: int) -> int:
            return number

        @classmethod
        @guarded("desk")
        def of_class(cls) -> str:
            return cls.name

        @guarded("desk")
        async def later(self) -> str:
            return self.name

    portal = Portal()
    assert (portal.plain(1), portal.static(2), Portal.of_class()) == (("portal", 1), 2, "portal")
    assert asyncio.run(portal.later()) == "portal"


def test_an_object_with_an_asynchronous_call(desk: Desk) -> None:
    """It is a coroutine function in all but name."""

    class Client:
        async def __call__(self) -> str:
            return "sent"

    client = guarded("desk")(Client().__call__)
    assert asyncio.run(client()) == "sent"


def _numbers() -> Iterator[int]:
    yield 1


async def _anumbers() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("what", "hint"),
    [
        (_numbers, "inside of it"),
        (_anumbers, "inside of it"),
        (staticmethod(len), "below @staticmethod"),
        (classmethod(len), "below @classmethod"),
        (7, "decorates functions"),
    ],
    ids=["generator", "async generator", "staticmethod", "classmethod", "number"],
)
def test_what_cannot_be_guarded(what: Any, hint: str) -> None:
    """Said where it is written."""
    with pytest.raises(TypeError, match=hint):
        guarded("desk")(what)


def test_a_function_that_returns_a_coroutine(desk: Desk) -> None:
    """Its guard would say that all went well before anything was done."""

    async def send() -> None:
        raise AssertionError("never")

    with pytest.raises(TypeError, match="guard the coroutine function"):
        guarded("desk")(lambda: send())()  # noqa: PLW0108  # a function around it is the point
    assert desk.is_idle()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"alias": len}, TypeError),
        ({"alias": ""}, ValueError),
        ({"alias": "a b"}, ValueError),
        ({"alias": "a" * 65}, ValueError),
        ({"alias": "desk", "counted": "ConnectionError"}, TypeError),
        ({"alias": "desk", "counted": [KeyError()]}, TypeError),
        ({"alias": "desk", "counted": KeyboardInterrupt}, TypeError),
        ({"alias": "desk", "counted": [asyncio.CancelledError]}, TypeError),
        ({"alias": "desk", "counted": 1}, TypeError),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception]) -> None:
    """Said at once, before any settings are read."""
    with pytest.raises(error):
        guarded(**arguments)


def test_the_sentinel_and_the_object_show_well() -> None:
    """In a debugger, and in documentation."""
    assert repr(NOT_SET) == "NOT_SET"
    assert repr(guarded("desk")) == "<guarded 'desk'>"


# --- one object, many uses ------------------------------------------------------------------------------------------


def test_one_object_serves_blocks_within_blocks(desk: Desk) -> None:
    """And as a decorator inside of its own block; each end is its own."""
    desk.configure(desk={**QUICK, "MAX_CONCURRENT": 3})
    guard = guarded("desk")
    with guard:
        with pytest.raises(TimeoutError), guard:
            assert guard(lambda: desk.status().in_use)() == 3
            raise TimeoutError
        with guard:
            assert desk.status().in_use == 2
    assert desk.is_idle()


def test_threads_share_one_object(desk: Desk) -> None:
    """Whoever leaves first settles his own permit: of two that overlap only one has failed."""
    guard = guarded("desk")
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with guard:
            inside.set()
            assert leave.wait(20)

    thread = threading.Thread(target=stay)
    thread.start()
    assert inside.wait(20)
    permits = [held._permit for _, held in guard._blocks]
    with pytest.raises(TimeoutError), guard:
        raise TimeoutError
    assert [held._permit for _, held in guard._blocks] == permits
    leave.set()
    thread.join()
    assert (guard._blocks, desk.is_idle()) == ([], True)


def test_tasks_share_one_object(desk: Desk) -> None:
    """A hundred at once, half of which fail; nobody leaves with another's permit."""
    desk.configure(desk={"MAX_CONCURRENT": 100, "BREAKER": None})
    guard = guarded("desk")
    ends: list[tuple[int, int]] = []

    async def stay(number: int) -> None:
        async with guard:
            mine = id(next(held for owner, held in guard._blocks if owner is asyncio.current_task())._permit)
            await asyncio.sleep(0.001 * (number % 7))
            now = id(next(held for owner, held in guard._blocks if owner is asyncio.current_task())._permit)
            ends.append((mine, now))
            if number % 2:
                raise TimeoutError

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*map(stay, range(100)), return_exceptions=True)

    errors = [result for result in asyncio.run(all_of_them()) if result is not None]
    assert (len(errors), {type(error) for error in errors}) == (50, {TimeoutError})
    assert len(ends) == 100
    assert all(mine == now for mine, now in ends)
    assert (guard._blocks, desk.is_idle()) == ([], True)


def test_a_generator_that_is_closed_elsewhere(desk: Desk) -> None:
    """By another thread, or by the garbage collector: the seat is given back, and it proves nothing."""
    guard = guarded("desk", counted=Exception)

    def rows() -> Iterator[int]:
        with guard:
            yield 1
            yield 2

    one, other = rows(), rows()
    assert (next(one), next(other), desk.status().in_use) == (1, 1, 2)
    elsewhere(one.close)
    assert desk.status().in_use == 1
    del other
    gc.collect()
    assert (guard._blocks, desk.is_idle(), desk.status().state) == ([], True, "closed")


# --- asyncio --------------------------------------------------------------------------------------------------------


def drained() -> None:
    """Everything that was handed to the threads which read and write the cache has been done."""
    together = threading.Barrier(Pool.READING.value + 1)
    for _ in range(Pool.READING.value):
        submit(Pool.READING, partial(together.wait, 20))
    together.wait(20)


def settled(desk: Desk) -> None:
    """Whatever a thread has still to give back has been given back."""
    drained()
    assert desk.is_idle(), "a permit was lost"


class Stuck:
    """A cache whose next operation of a kind waits until it is let go."""

    def __init__(self, desk: Desk, *names: str) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        self._names = names
        desk.shelf.fault = self

    def __call__(self, name: str, keys: tuple[str, ...], effect: Any) -> Any:
        if name in self._names and threading.current_thread() is not threading.main_thread():
            self.reached.set()
            assert self.go.wait(20)
        return effect()

    async def until_reached(self) -> None:
        """Wait for somebody to be stuck, without blocking the loop: that it goes on is the point."""
        while not self.reached.is_set():
            await asyncio.sleep(0.001)


def test_the_loop_goes_on_while_the_cache_hangs(desk: Desk) -> None:
    """Taking and settling are off the loop, for functions and for blocks."""
    stuck = Stuck(desk, "get_many", "incr", "add")

    @guarded("desk")
    async def call() -> None:
        raise TimeoutError

    async def main() -> None:
        task = asyncio.create_task(call())
        await stuck.until_reached()
        stuck.go.set()
        with pytest.raises(TimeoutError):
            await task
        stuck.reached.clear()
        stuck.go.clear()

        async def block() -> None:
            async with guarded("desk"):
                pass

        task = asyncio.create_task(block())
        await stuck.until_reached()
        stuck.go.set()
        await task

    asyncio.run(main())
    assert desk.is_idle()


def test_cancelled_while_the_permit_is_on_its_way(desk: Desk) -> None:
    """The thread takes it and finds nobody: it goes back."""
    desk.configure(desk={**QUICK, "RATE_LIMIT": {"CALLS": 100, "PER": 60}})
    stuck = Stuck(desk, "incr")
    called: list[int] = []

    @guarded("desk")
    async def call() -> None:
        called.append(1)

    async def main() -> None:
        task = asyncio.create_task(call())
        await stuck.until_reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        stuck.go.set()

    asyncio.run(main())
    settled(desk)
    assert called == []


def test_cancelled_when_the_permit_has_just_come(desk: Desk) -> None:
    """The answer is there, and the task is cancelled before it can take it."""

    @guarded("desk")
    async def call() -> None:
        raise AssertionError("never called")

    async def main() -> None:
        task = asyncio.create_task(call())
        await asyncio.sleep(0)
        while desk.is_idle():  # blocks the loop on purpose: the task cannot go on
            pass
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    settled(desk)


@pytest.mark.parametrize("is_block", [False, True], ids=["function", "block"])
def test_a15_resilience4j_682_a_cancelled_call_proves_nothing(desk: Desk, moving: MovableClock, is_block: bool) -> None:
    """Not even a probe: its slot is given back, and the next one probes."""
    provider = Provider(*[TimeoutError()] * 2)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            way_plain(provider)
    moving.move(31)

    async def body() -> None:
        await asyncio.sleep(20)

    async def block() -> None:
        async with guarded("desk", counted=Exception):
            await body()

    call = block if is_block else guarded("desk", counted=Exception)(body)

    async def main() -> None:
        task = asyncio.create_task(call())
        while desk.is_idle():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    settled(desk)
    assert desk.status().state == "half_open"
    way_plain(Provider())
    assert desk.status().state == "closed"


def test_cancelled_while_the_end_is_reported(desk: Desk) -> None:
    """The report is made all the same."""
    stuck = Stuck(desk, "incr")

    @guarded("desk")
    async def call() -> None:
        raise TimeoutError

    async def main() -> None:
        task = asyncio.create_task(call())
        await stuck.until_reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        stuck.go.set()

    asyncio.run(main())
    settled(desk)
    desk.shelf.fault = None
    with pytest.raises(TimeoutError):
        way_plain(Provider(TimeoutError()))
    assert desk.status().state == "open"


def test_cancelled_while_the_end_waits_to_be_reported(desk: Desk) -> None:
    """All threads are busy: the report is made as soon as one is free."""
    go = threading.Event()

    @guarded("desk")
    async def call() -> None:
        for _ in range(Pool.READING.value):
            submit(Pool.READING, partial(go.wait, 20))
        raise TimeoutError

    async def main() -> None:
        task = asyncio.create_task(call())
        while desk.is_idle():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()

    asyncio.run(main())
    settled(desk)
    with pytest.raises(TimeoutError):
        way_plain(Provider(TimeoutError()))
    assert desk.status().state == "open"


def test_a_coroutine_that_is_closed(desk: Desk) -> None:
    """Nobody can wait any more, and nothing is lost."""

    async def main() -> None:
        async def rows() -> AsyncIterator[int]:
            async with guarded("desk"):
                yield 1

        generator = rows()
        assert await anext(generator) == 1
        await generator.aclose()  # type: ignore[attr-defined]

        @guarded("desk")
        async def call() -> None:
            await asyncio.sleep(20)

        coroutine = call()
        future: Any = coroutine.send(None)
        del future
        coroutine.close()

    asyncio.run(main())
    settled(desk)


def test_a_budget_ends_the_wait_for_a_thread(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads hang in the cache: the call is refused when the budget is over, and takes nothing later."""
    stuck = Stuck(desk, "get_many")

    @guarded("desk")
    async def call() -> None:
        raise AssertionError("never called")

    async def main() -> None:
        others = [asyncio.create_task(call()) for _ in range(8)]
        await stuck.until_reached()
        await asyncio.sleep(0.05)
        with time_budget(0.05), pytest.raises(BudgetExhausted):
            await call()
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        stuck.go.set()

    asyncio.run(main())
    settled(desk)
