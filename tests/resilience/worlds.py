"""What do the tests of the guards share? A movable clock, and a store that can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from catalog_fallback import clock
from catalog_fallback.resilience.store import ProcessStore


class MovableClock:
    """Both clocks of the clock module; they stand still until moved."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self.now = start
        #: How far the wall clock of the process that runs now is ahead of the others'.
        self.skew = 0.0

    def wall(self) -> float:
        """Seconds since the epoch, as this process sees them."""
        return self.now + self.skew

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return self.now - 1_000_000.0

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def install(self, patch: pytest.MonkeyPatch) -> MovableClock:
        """Make it the clock of the package."""
        patch.setattr(clock, "wall", self.wall)
        patch.setattr(clock, "monotonic", self.monotonic)
        return self


class FaultyStore:
    """A shared store with what happens to one: lost writes, lost replies, late writes, evictions, pauses.

    ``faults`` are used up one by one by operations that change something: ``"lost"`` does nothing and answers None,
    ``"reply"`` does it and answers None, ``"late"`` keeps a ``set`` back for :meth:`deliver`, ``""`` does it.
    ``interruptions`` run one before each operation, ``always`` before each: what other processes do just then.
    """

    def __init__(self) -> None:
        self.inner = ProcessStore()
        self.is_paused = False
        self.faults: list[str] = []
        self.interruptions: list[Callable[[], None] | None] = []
        self.always: Callable[[], object] | None = None
        self._is_interrupted = False
        self.late: list[tuple[str, Any, float]] = []
        self.commands: list[tuple[str, Any]] = []
        self.lost_replies = 0
        self.on_add: Callable[[str, Any], None] = lambda _key, _value: None

    def contents(self) -> Mapping[str, Any]:
        """Everything that is in it."""
        return dict(self.inner.get_many(tuple(self.inner._entries)))

    def life(self, key: str) -> float:
        """Seconds that a key has to live."""
        return self.inner._entries[key][1] - clock.monotonic()

    def evict(self, *keys: str) -> None:
        """Lose keys, all without an argument."""
        for key in keys or tuple(self.inner._entries):
            self.inner.delete(key)

    def deliver(self) -> None:
        """Let the writes arrive that were kept back."""
        for key, value, ttl in self.late:
            self.inner.set(key, value, ttl)
        self.late.clear()

    def get_many(self, keys: tuple[str, ...]) -> Mapping[str, Any]:
        """Return what there is, nothing while the store is paused."""
        self._begin("get_many", keys)
        return {} if self.is_paused else self.inner.get_many(keys)

    def add(self, key: str, value: Any, ttl: float) -> bool | None:
        """Write unless the key exists."""

        def write() -> bool | None:
            is_new = self.inner.add(key, value, ttl)
            if is_new:
                self.on_add(key, value)
            return is_new

        return self._change("add", key, write)

    def set(self, key: str, value: Any, ttl: float) -> None:
        """Write."""
        if self.faults[:1] == ["late"]:
            self.faults.pop(0)
            self.late.append((key, value, ttl))
        else:
            self._change("set", key, lambda: self.inner.set(key, value, ttl))

    def incr(self, key: str, delta: int, ttl: float) -> int | None:
        """Add to a number that exists."""
        answer: int | None = self._change("incr", key, lambda: self.inner.incr(key, delta, ttl))
        return answer

    def touch(self, key: str, ttl: float) -> None:
        """Give the key a new life."""
        self._change("touch", key, lambda: self.inner.touch(key, ttl))

    def delete(self, key: str) -> None:
        """Delete."""
        self._change("delete", key, lambda: self.inner.delete(key))

    def _begin(self, name: str, keys: Any) -> None:
        self.commands.append((name, keys))
        if self._is_interrupted:
            return
        interruption = self.interruptions.pop(0) if self.interruptions else self.always
        if interruption is not None:
            self._is_interrupted = True
            interruption()
            self._is_interrupted = False

    def _change(self, name: str, key: str, operation: Callable[[], Any]) -> Any:
        self._begin(name, key)
        fault = "lost" if self.is_paused else self.faults.pop(0) if self.faults else ""
        if fault == "lost":
            return None
        answer = operation()
        if fault == "reply":
            self.lost_replies += 1
            return None
        return answer
