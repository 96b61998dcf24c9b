"""Do tasks that wait together go on together, and each when its own time is over?"""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from catalog_fallback.crowds import AT_ONCE, Crowd, call_in, in_turns, settle


async def a_crowd(count: int, seconds: float = 60.0) -> tuple[Crowd[str], list[asyncio.Future[str]]]:
    """A crowd of the running loop, and what each of so many waits for."""
    crowd = Crowd(asyncio.get_running_loop(), "too late")
    return crowd, [crowd.join(seconds) for _ in range(count)]


def test_everybody_gets_his_own_answer() -> None:
    """In the order of coming, however many there are."""

    async def run() -> list[str]:
        crowd, futures = await a_crowd(30)
        loop = asyncio.get_running_loop()
        in_turns(loop, [partial(settle, future, str(number)) for number, future in enumerate(crowd.leave())])
        return list(await asyncio.gather(*futures))

    assert asyncio.run(run()) == [str(number) for number in range(30)]


def test_the_first_goes_on_before_the_others() -> None:
    """One in this turn of the loop, more in each that follows."""

    async def run() -> list[int]:
        crowd, futures = await a_crowd(30)
        in_turns(asyncio.get_running_loop(), [partial(settle, future, "now") for future in crowd.leave()])
        done = [sum(future.done() for future in futures)]
        while done[-1] < 30:
            await asyncio.sleep(0)
            done.append(sum(future.done() for future in futures))
        return done

    assert asyncio.run(run()) == [1, 5, 21, 30]


def test_thousands_leave_turns_to_others() -> None:
    """However many wait for one thing, the loop serves something else after every few hundred of them."""

    async def run() -> list[int]:
        crowd, futures = await a_crowd(3 * AT_ONCE)
        crowd.let_all_go("here")
        done = [sum(future.done() for future in futures)]
        while done[-1] < len(futures):
            await asyncio.sleep(0)
            done.append(sum(future.done() for future in futures))
        return done

    assert asyncio.run(run()) == [AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE]


def test_who_was_cancelled_disturbs_nobody() -> None:
    """The others have their own answers still."""

    async def run() -> list[str]:
        crowd, futures = await a_crowd(4)
        futures[0].cancel()
        futures[2].cancel()
        first = crowd.first()
        assert first is futures[1]
        first.set_result("a")
        crowd.let_all_go("c")
        return [await futures[1], await futures[3]]

    assert asyncio.run(run()) == ["a", "c"]


def test_nobody_is_first_in_an_empty_crowd() -> None:
    """Nor in one whose members have all gone."""

    async def run() -> list[object]:
        crowd, futures = await a_crowd(2)
        for future in futures:
            future.cancel()
        return [crowd.first(), crowd.leave()]

    assert asyncio.run(run()) == [None, []]


def test_the_last_moment_may_bring_something_else() -> None:
    """What whoever runs out of time goes on with is what is known by then."""

    async def run() -> str:
        crowd = Crowd(asyncio.get_running_loop(), "nothing")
        future = crowd.join(0.01)
        crowd.otherwise = "something"
        return await future

    assert asyncio.run(run()) == "something"


@pytest.mark.parametrize("first", [0.0, 60.0], ids=["the first is the shorter", "the first is the longer"])
def test_only_whose_time_is_over_goes_on_without(first: float) -> None:
    """One timer serves everybody, and is set anew for the next."""

    async def run() -> tuple[str, bool]:
        crowd = Crowd(asyncio.get_running_loop(), "too late")
        one, other = crowd.join(first), crowd.join(60.0 - first)
        short, long = (one, other) if first == 0.0 else (other, one)
        answer = await short
        is_waiting = not long.done()
        crowd.let_all_go("here")
        assert await long == "here"
        return answer, is_waiting

    assert asyncio.run(run()) == ("too late", True)


def test_one_after_the_other_runs_out_of_time() -> None:
    """The timer is set for the next one as long as somebody waits."""

    async def run() -> list[str]:
        crowd = Crowd(asyncio.get_running_loop(), "too late")
        return list(await asyncio.gather(*(crowd.join(0.001 * number) for number in range(5))))

    assert asyncio.run(run()) == ["too late"] * 5


def test_a_thread_wakes_a_crowd_and_survives_a_closed_loop() -> None:
    """Nobody waits in a loop that is closed."""
    crowds: list[tuple[asyncio.AbstractEventLoop, Crowd[None]]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        crowds.append((loop, Crowd(loop, None)))
        future = crowds[0][1].join(60.0)
        await asyncio.to_thread(call_in, crowds[0][0], crowds[0][1].let_all_go, None)
        assert await future is None

    asyncio.run(run())
    call_in(crowds[0][0], crowds[0][1].let_all_go, None)
