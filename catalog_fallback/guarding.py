"""How is any other call guarded? ``guarded()``, for a POST to a provider, a database query, anything.

The breaker, the limits and the budget of a lookup around a call that is made once: it is never repeated, and never sent
to somebody else.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial, wraps
from types import TracebackType
from typing import Any, Generic, Never, ParamSpec, TypeVar, cast, overload

from asgiref.sync import iscoroutinefunction

from catalog_fallback.guards import NOT_SET, NotSet, Rules
from catalog_fallback.held_permits import Held, taken
from catalog_fallback.process_lock import ProcessLock
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.resilience.refusal import Refusal

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")

_ALIAS = re.compile(r"[A-Za-z0-9_-]{1,64}")
_Counted = type[Exception] | Iterable[type[Exception]] | None


class Guarded(Generic[F]):
    """What :func:`guarded` returns: a decorator, and a context manager for ``with`` and ``async with``.

    It may be used any number of times, by several threads and tasks at once, and within itself.
    """

    def __init__(
        self, alias: str, catalog: str, fallback: object | NotSet, counted: tuple[type[Exception], ...] | None
    ) -> None:
        self._rules = partial(Rules.of, alias, catalog, fallback, counted)
        self._has_own_fallback = fallback is not NOT_SET
        self._alias = alias
        self._lock = ProcessLock()
        #: The blocks that are running, and in which task or thread.
        self._blocks: list[tuple[object, Held]] = []

    def __repr__(self) -> str:
        return f"<guarded {self._alias!r}>"

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R | F]]: ...

    @overload
    def __call__(self, function: Callable[P, R]) -> Callable[P, R | F]: ...

    def __call__(self, function: Callable[P, Any]) -> Callable[P, Any]:
        """Return the function with the guard around it; a coroutine function stays one."""
        _refuse_what_cannot_be_guarded(function)
        if iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
            return self._around_coroutine(function)
        return self._around_function(function)

    def _around_function(self, function: Callable[P, R]) -> Callable[P, Any]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            rules = self._rules()
            permit = rules.take()
            if isinstance(permit, Refusal):
                if not rules.has_fallback:
                    raise rules.rejection(permit)
                return _not_awaitable(rules.substitute(args, kwargs))
            try:
                with Held(rules, permit):
                    return _not_awaitable(function(*args, **kwargs))
            except rules.counted:
                if not rules.has_fallback:
                    raise
                return _not_awaitable(rules.substitute(args, kwargs))

        return call

    def _around_coroutine(self, function: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, Any]]:
        @wraps(function)
        async def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            rules = self._rules()
            permit = await taken(rules)
            if isinstance(permit, Refusal):
                if not rules.has_fallback:
                    raise rules.rejection(permit)
                return await _awaited(rules.substitute(args, kwargs))
            try:
                async with Held(rules, permit):
                    return await function(*args, **kwargs)
            except rules.counted:
                if not rules.has_fallback:
                    raise
                return await _awaited(rules.substitute(args, kwargs))

        return call

    def __enter__(self) -> None:
        rules = self._rules_of_block()
        self._enter(rules, rules.take())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._left().__exit__(kind, error, traceback)

    async def __aenter__(self) -> None:
        rules = self._rules_of_block()
        self._enter(rules, await taken(rules))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._left().__aexit__(kind, error, traceback)

    def _rules_of_block(self) -> Rules:
        rules = self._rules()
        if rules.has_fallback:
            where = "argument fallback" if self._has_own_fallback else "setting FALLBACK"
            raise TypeError(
                f"Guard {self._alias!r} has a fallback ({where}), which a context manager cannot use: it cannot skip "
                "its block. Decorate a function, or handle CallRejected and the exception yourself."
            )
        return rules

    def _enter(self, rules: Rules, permit: Permit | Refusal) -> None:
        if isinstance(permit, Refusal):
            raise rules.rejection(permit)
        with self._lock.own:
            self._blocks.append((_whoever_runs(), Held(rules, permit)))

    def _left(self) -> Held:
        """Return the innermost block of this task or thread; a generator may be closed by somebody else's."""
        me = _whoever_runs()
        with self._lock.own:
            mine = [place for place, (owner, _) in enumerate(self._blocks) if owner == me]
            return self._blocks.pop(mine[-1] if mine else -1)[1]


@overload
def guarded(alias: str, *, catalog: str = ..., counted: _Counted = ...) -> Guarded[Never]: ...


@overload
def guarded(
    alias: str, *, catalog: str = ..., fallback: Callable[..., Coroutine[Any, Any, F]], counted: _Counted = ...
) -> Guarded[F]: ...


@overload
def guarded(alias: str, *, catalog: str = ..., fallback: Callable[..., F], counted: _Counted = ...) -> Guarded[F]: ...


@overload
def guarded(alias: str, *, catalog: str = ..., fallback: F, counted: _Counted = ...) -> Guarded[F]: ...


def guarded(
    alias: str, *, catalog: str = "default", fallback: object = NOT_SET, counted: _Counted = None
) -> Guarded[Any]:
    """Guard any call: a decorator for functions and coroutine functions, and a context manager for both worlds.

    ``alias`` names the guard; its settings are in GUARDS of the catalog, and without any it has the defaults. Its
    state is shared by all processes, and kept apart from that of a source of the same name.

    ``counted``: the exceptions (one class or several) that speak against the other side; None: connection errors and
    time-outs, those of ``requests`` too. All others pass and prove nothing. ``fallback``: what a call returns that was
    refused or raised one of ``counted``; a callable gets the call's arguments. Without one the exception goes to the
    caller: a :class:`~catalog_fallback.exceptions.CallRejected` when the call was refused. With ``with`` a fallback is
    a TypeError.

    The call is made once: it is never repeated, and never sent to somebody else. Raises TypeError and ValueError for
    wrong arguments; UnknownCatalog when it is used.
    """
    if not isinstance(alias, str):
        raise TypeError('guarded() takes the alias of a guard, as in @guarded("payments").')
    if _ALIAS.fullmatch(alias) is None:
        raise ValueError(f"{alias!r} is no alias of a guard: 1 to 64 of A-Z, a-z, 0-9, _ and -.")
    return Guarded(alias, catalog, fallback, None if counted is None else _classes(counted))


def _classes(counted: object) -> tuple[type[Exception], ...]:
    given = (counted,) if isinstance(counted, type) or not isinstance(counted, Iterable) else tuple(counted)
    for each in given:
        if not (isinstance(each, type) and issubclass(each, Exception)):
            raise TypeError(f"counted takes classes of exceptions (subclasses of Exception), not {each!r}.")
    return cast("tuple[type[Exception], ...]", given)


def _refuse_what_cannot_be_guarded(function: object) -> None:
    if isinstance(function, (staticmethod, classmethod)):
        raise TypeError(f"Put @guarded below @{type(function).__name__}.")
    if not callable(function):
        raise TypeError(f"guarded() decorates functions, not {type(function).__name__}.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError('A generator runs later than its call: use "with guarded(…)" inside of it.')


def _not_awaitable(result: Any) -> Any:
    """A coroutine has not run yet: its guard would say that all went well."""
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("The function returns a coroutine: guard the coroutine function itself.")
    return result


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


def _whoever_runs() -> object:
    """The asyncio task, or the thread where there is none."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop in this thread
        task = None
    return threading.get_ident() if task is None else task
