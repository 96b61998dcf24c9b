"""Which types does a site see that guards calls of its own?"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Any, assert_type

from catalog_fallback.exceptions import (
    BudgetExhausted,
    BulkheadFull,
    CallRejected,
    CircuitOpen,
    CoolingDown,
    RateLimited,
)
from catalog_fallback.services import guarded


@guarded("payments")
def pay(order: int, *, amount: Decimal) -> str:
    """A function without a fallback."""
    return f"{order} {amount}"


@guarded("prices", catalog="books", fallback=None, counted=(ConnectionError, TimeoutError))
def price(item_id: str) -> Decimal:
    """A function with a value as its fallback."""
    return Decimal(len(item_id))


def no_names(item_id: str) -> list[str]:
    """A fallback that gets the call's arguments."""
    return [item_id]


@guarded("names", fallback=no_names, counted=ConnectionError)
def names(item_id: str) -> tuple[str, ...]:
    """A function with a callable as its fallback."""
    return (item_id,)


@guarded("payments")
async def apay(order: int) -> str:
    """A coroutine function without a fallback."""
    return str(order)


async def no_stock(item_id: str) -> None:
    """A fallback that is awaited."""


@guarded("stock", fallback=no_stock)
async def stock(item_id: str) -> int:
    """A coroutine function whose fallback is one, too."""
    return len(item_id)


def functions_keep_their_signature() -> None:
    """Arguments and results are those of the function; a fallback widens the result."""
    assert_type(pay(1, amount=Decimal(2)), str)
    assert_type(price("P001"), Decimal | None)
    assert_type(names("P001"), tuple[str, ...] | list[str])


async def coroutine_functions_stay_coroutine_functions() -> None:
    """What they return is awaited, and is what the function or its fallback returns."""
    assert_type(await apay(1), str)
    assert_type(await stock("P001"), int | None)
    task: Coroutine[Any, Any, str] = apay(2)
    await task


class Provider:
    """A guarded method is called like a method."""

    @guarded("provider")
    def order(self, number: int) -> bool:
        """Takes self and a number."""
        return number > 0


def methods_are_bound() -> None:
    """Self is not asked for again."""
    assert_type(Provider().order(1), bool)


def with_a_block() -> int:
    """A context manager swallows nothing, so what follows the block needs no return."""
    with guarded("database") as nothing:
        assert_type(nothing, None)
        return 1


async def with_a_block_under_asyncio() -> int:
    """The same."""
    async with guarded("database", catalog="books"):
        return 1


def refusals() -> float | None:
    """Every refusal is a CallRejected, which knows when to come back."""
    kinds: tuple[type[CallRejected], ...] = (CircuitOpen, RateLimited, CoolingDown, BulkheadFull, BudgetExhausted)
    try:
        pay(1, amount=Decimal(2))
    except kinds as error:
        assert_type(error.retry_after, float | None)
        return error.retry_after
    return None


#: A guard can be named once and used in many places.
payments = guarded("payments")
refund: Callable[[int], str] = payments(str)
