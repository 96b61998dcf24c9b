"""Where does a guard keep its state, whose settings hold, and what can be guarded?"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from catalog_fallback import conf, services, signals
from catalog_fallback.exceptions import (
    CircuitOpen,
    UnknownCatalog,
)
from catalog_fallback.services import NOT_SET, guarded
from tests.guarded_sites import (
    QUICK,
    Desk,
    Provider,
    way_block,
    way_plain,
)


@pytest.fixture
def desk(settings: Any) -> Desk:
    """A site with one guard that two failures open."""
    return Desk(settings)


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
