"""Which caches do the tests use that no site has? One whose clock can be moved, and the ways in which a cache breaks.

Name them as any backend: ``CACHES = {"default": {"BACKEND": "tests.stores.LossyCache", "LOCATION": "mine"}}``. All
objects with one LOCATION share one :class:`Shelf`, which a test may look into and break while it runs::

    shelf = stores.shelf("mine")
    shelf.fault = stores.raising(ConnectionError("down"))      # from now on
    shelf.fault = None                                         # all is well again
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache

from catalog_fallback import clock

Effect = Callable[[], Any]
#: Called with an operation's name and keys and what it would do; returns the operation's answer.
Fault = Callable[[str, tuple[str, ...], Effect], Any]

WRITES = frozenset({"add", "set", "set_many", "incr", "touch", "delete", "delete_many", "clear"})
GARBAGE = b"\x80\x05no pickle"


class Shelf:
    """What one cache holds. Values are pickled, so that nobody shares an object with the cache."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.values: dict[str, tuple[float | None, bytes]] = {}
        self.fault: Fault | None = None
        #: Every operation so far: its name and its keys.
        self.log: list[tuple[str, tuple[str, ...]]] = []
        #: Seconds of life that were given to each key, in the order of the writes.
        self.lives: list[tuple[str, float | None]] = []

    def read(self, key: str) -> Any:
        """The value, None when it is missing or its time is over. Raises what unpickling raises."""
        found = self.alive(key)
        return None if found is None else pickle.loads(found[1])

    def alive(self, key: str) -> tuple[float | None, bytes] | None:
        """The moment of expiry and the pickled value, None when there is none."""
        found = self.values.get(key)
        if found is not None and found[0] is not None and found[0] <= clock.wall():
            del self.values[key]
            return None
        return found

    def write(self, key: str, value: Any, life: float | None) -> None:
        """Keep the value for ``life`` seconds, None is for ever."""
        self.lives.append((key, life))
        pickled = value if value is GARBAGE else pickle.dumps(value)
        self.values[key] = (None if life is None else clock.wall() + life, pickled)

    def life_of(self, key: str) -> float | None:
        """The seconds that a key has still to live; None is for ever."""
        expires_at = self.values[key][0]
        return None if expires_at is None else expires_at - clock.wall()

    def keys(self) -> list[str]:
        """The keys that are alive."""
        return [key for key in list(self.values) if self.alive(key) is not None]


_shelves: dict[str, Shelf] = {}


def shelf(location: str) -> Shelf:
    """The shelf of a LOCATION."""
    return _shelves.setdefault(location, Shelf())


class MemoryCache(BaseCache):
    """A cache as Django means it, by the clock of ``catalog_fallback.clock``."""

    def __init__(self, location: str, params: Mapping[str, Any]) -> None:
        super().__init__(dict(params))
        self.shelf = shelf(location)

    def do(self, name: str, keys: tuple[str, ...], effect: Effect) -> Any:
        """Run one operation, atomically."""
        self.shelf.log.append((name, keys))
        if self.shelf.fault is not None:
            return self.shelf.fault(name, keys, effect)
        with self.shelf.lock:
            return effect()

    def _life(self, timeout: Any) -> float | None:
        life: float | None = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        return life

    def add(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> Any:
        key = self.make_and_validate_key(key, version=version)

        def effect() -> bool:
            if self.shelf.alive(key) is not None:
                return False
            self.shelf.write(key, value, self._life(timeout))
            return True

        return self.do("add", (key,), effect)

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        key = self.make_and_validate_key(key, version=version)
        found = self.do("get", (key,), lambda: self.shelf.read(key))
        return default if found is None else found

    def get_many(self, keys: Iterable[str], version: int | None = None) -> Any:
        names = {self.make_and_validate_key(key, version=version): key for key in keys}

        def effect() -> dict[str, Any]:
            return {name: self.shelf.read(key) for key, name in names.items() if self.shelf.alive(key) is not None}

        return self.do("get_many", tuple(names), effect)

    def set(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> Any:
        key = self.make_and_validate_key(key, version=version)
        return self.do("set", (key,), lambda: self.shelf.write(key, value, self._life(timeout)))

    def set_many(self, data: Mapping[str, Any], timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> Any:
        values = {self.make_and_validate_key(key, version=version): value for key, value in data.items()}

        def effect() -> list[str]:
            for key, value in values.items():
                self.shelf.write(key, value, self._life(timeout))
            return []

        return self.do("set_many", tuple(values), effect)

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> Any:
        key = self.make_and_validate_key(key, version=version)

        def effect() -> int:
            found = self.shelf.alive(key)
            if found is None:
                raise ValueError(f"Key {key!r} not found")
            value: int = pickle.loads(found[1]) + delta
            self.shelf.values[key] = (found[0], pickle.dumps(value))
            return value

        return self.do("incr", (key,), effect)

    def touch(self, key: str, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> Any:
        key = self.make_and_validate_key(key, version=version)

        def effect() -> bool:
            found = self.shelf.alive(key)
            if found is None:
                return False
            life = self._life(timeout)
            self.shelf.lives.append((key, life))
            self.shelf.values[key] = (None if life is None else clock.wall() + life, found[1])
            return True

        return self.do("touch", (key,), effect)

    def delete(self, key: str, version: int | None = None) -> Any:
        key = self.make_and_validate_key(key, version=version)
        return self.do("delete", (key,), lambda: self.shelf.values.pop(key, None) is not None)

    def clear(self) -> None:
        self.do("clear", (), self.shelf.values.clear)


# ------------------------------------------------------------------------------------------------ how a cache breaks


def raising(error: Exception) -> Fault:
    """Every operation raises."""

    def fault(name: str, keys: tuple[str, ...], effect: Effect) -> Any:
        raise error

    return fault


def _silent(name: str, keys: tuple[str, ...], effect: Effect) -> Any:
    """Nothing is done and every question is answered by None, as django-redis does with IGNORE_EXCEPTIONS."""
    return {} if name == "get_many" else None


def _lossy(name: str, keys: tuple[str, ...], effect: Effect) -> Any:
    """Reads work; writes are lost, and the answer is that of a write that worked."""
    if name not in WRITES:
        return effect()
    return {"add": True, "touch": True, "set_many": [], "incr": 1}.get(name)


def _mute(name: str, keys: tuple[str, ...], effect: Effect) -> Any:
    """Reads work; writes are done, and then the reply is lost."""
    answer = effect()
    if name in WRITES:
        raise ConnectionError("reply lost")
    return answer


class Late:
    """Reads work; each write is answered as if it were done, and is done when the test delivers it."""

    def __init__(self) -> None:
        self.writes: list[Effect] = []

    def __call__(self, name: str, keys: tuple[str, ...], effect: Effect) -> Any:
        if name in WRITES:
            self.writes.append(effect)
        return _lossy(name, keys, effect)

    def deliver(self) -> None:
        """Let everything arrive that is on its way."""
        writes, self.writes = self.writes, []
        for write in writes:
            write()


class Hanging:
    """Every operation blocks until the test lets go; then it raises TimeoutError, as a socket time-out does."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let_go = threading.Event()

    def __call__(self, name: str, keys: tuple[str, ...], effect: Effect) -> Any:
        self.entered.set()
        if not self.let_go.wait(30):
            raise AssertionError("the test never let go of the hanging cache")
        raise TimeoutError("timed out")


class _Broken(MemoryCache):
    fault: Fault

    def __init__(self, location: str, params: Mapping[str, Any]) -> None:
        super().__init__(location, params)
        self.shelf.fault = self.fault


class RaisingCache(_Broken):
    """A server that refuses connections."""

    fault = staticmethod(raising(ConnectionError("refused")))


class TimingOutCache(_Broken):
    """A server that never answers, with a socket time-out of no time."""

    fault = staticmethod(raising(TimeoutError("timed out")))


class SilentCache(_Broken):
    """A server that is down behind django-redis with IGNORE_EXCEPTIONS."""

    fault = staticmethod(_silent)


class LossyCache(_Broken):
    """A server that forgets what is written to it."""

    fault = staticmethod(_lossy)


class MuteCache(_Broken):
    """A server whose replies to writes are lost."""

    fault = staticmethod(_mute)


def poison(location: str, key: str, life: float | None = 300.0) -> None:
    """Put a value that cannot be decoded under a key (as the backend makes it)."""
    shelf(location).write(key, GARBAGE, life)
