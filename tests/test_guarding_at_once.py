"""Is every permit given back when threads and tasks share a guard, are cancelled, or leave in odd ways?"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest

from catalog_fallback.exceptions import (
    BudgetExhausted,
)
from catalog_fallback.guards import Guards, guards_of
from catalog_fallback.off_loop import Pool, submit
from catalog_fallback.services import guarded, time_budget
from tests.guarded_sites import (
    QUICK,
    Desk,
    Provider,
    Stuck,
    drained,
    settled,
    way_plain,
)
from tests.shops import elsewhere, later
from tests.sites import MovableClock


@pytest.fixture
def desk(settings: Any) -> Desk:
    """A site with one guard that two failures open."""
    return Desk(settings)


# --- one object, many uses ------------------------------------------------------------------------------------------


def _fail(as_expected: bool) -> None:
    assert as_expected
    raise TimeoutError


def test_one_object_serves_blocks_within_blocks(desk: Desk) -> None:
    """And as a decorator inside of its own block; each end is its own."""
    desk.configure(desk={**QUICK, "MAX_CONCURRENT": 3})
    guard = guarded("desk")
    with guard:
        outer = list(guard._blocks)
        with pytest.raises(TimeoutError), guard:
            _fail(guard(lambda: desk.status().in_use)() == 3)
        assert guard._blocks == outer
        with guard:
            assert desk.status().in_use == 2
    assert desk.is_idle()


def test_threads_that_come_first_share_one_guard(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would have a bulkhead each."""
    begun, go, real, made = threading.Event(), threading.Event(), Guards._make, []

    def slow(self: Guards, alias: str) -> Any:
        made.append(alias)
        begun.set()
        assert go.wait(20)
        return real(self, alias)

    monkeypatch.setattr(Guards, "_make", slow)
    guards = guards_of["default"]
    one = later(lambda: guards.get("desk")[1])
    assert begun.wait(20)
    other = later(lambda: guards.get("desk")[1])
    go.set()
    assert one() is other()
    assert made == ["desk"]


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


def test_cancelled_while_a_refusal_is_on_its_way(desk: Desk) -> None:
    """There is nothing to give back."""
    desk.configure(desk={**QUICK, "MAX_CONCURRENT": 1})
    stuck = Stuck(desk, "get_many")

    @guarded("desk")
    async def call() -> None:
        raise AssertionError("never called")

    async def main() -> None:
        task = asyncio.create_task(call())
        await stuck.until_reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        stuck.go.set()
        drained()

    with guarded("desk"):
        asyncio.run(main())
        assert desk.status().in_use == 1
    assert desk.is_idle()


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
        others = [asyncio.create_task(call()) for _ in range(Pool.READING.value)]
        await stuck.until_reached()
        await asyncio.sleep(0.05)
        begun_at = time.monotonic()
        with time_budget(0.05), pytest.raises(BudgetExhausted):
            await call()
        assert time.monotonic() - begun_at < 10
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        stuck.go.set()

    asyncio.run(main())
    settled(desk)
