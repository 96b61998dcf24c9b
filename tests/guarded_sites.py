"""What does a site look like whose own calls are guarded? A catalog, a cache to look into, and what a guard holds."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from catalog_fallback.guards import guards_of
from catalog_fallback.off_loop import Pool, submit
from catalog_fallback.resilience.guard import GuardStatus
from catalog_fallback.services import guarded
from catalog_fallback.testing import fake_source
from tests import stores

#: Two failures open it.
QUICK = {"BREAKER": {"CONSECUTIVE_FAILURES": 2, "FAILURE_RATE": None, "OPEN_FOR": 30}}


class Desk:
    """A site with guards; ``"desk"`` is the one that the tests use."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings
        self.location = uuid.uuid4().hex
        settings.CACHES = {"default": {"BACKEND": "tests.stores.MemoryCache", "LOCATION": self.location}}
        self.configure(desk=QUICK)

    def configure(self, **guards: Mapping[str, Any]) -> None:
        """Set GUARDS; as in a process that has just started."""
        source = {"only": fake_source({"P001": "Tea"})}
        catalog = {"SOURCES": source, "STOP_CHECK": "cache"}
        self._settings.CATALOG_FALLBACK = {"default": {**catalog, "GUARDS": guards}, "other": catalog}

    @property
    def shelf(self) -> stores.Shelf:
        """What the cache holds."""
        return stores.shelf(self.location)

    def status(self, alias: str = "desk", catalog: str = "default") -> GuardStatus:
        """What the guard does now."""
        guard = guards_of[catalog].get(alias)[1]
        return guard.status(guard.stores.read((guard,)))

    def is_idle(self) -> bool:
        """Nobody holds a seat of the bulkhead."""
        return self.status().in_use == 0


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
