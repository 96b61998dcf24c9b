"""How do we talk to a Django cache that may be slow, broken, or unsure?

Reads become misses and writes become no-ops while the cache is in trouble, and after one time-out, or three other
errors in a row, the process leaves it alone for a few seconds. What must not be swallowed (an invalidation) goes
through the ``…_or_raise`` methods, which ignore the pause.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from django.core.cache import BaseCache, caches
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.locmem import LocMemCache

from catalog_fallback import clock
from catalog_fallback.cache_errors import VALUE_ERRORS, is_about_a_value, is_timeout
from catalog_fallback.fast_caches import FastCache, fast_cache
from catalog_fallback.turns import Turns

logger = logging.getLogger("catalog_fallback")

T = TypeVar("T")

#: Seconds for which a process leaves a cache in trouble alone.
PAUSE = 5.0
#: Errors in a row, other than a time-out, after which it does.
ERRORS_BEFORE_PAUSE = 3
#: An operation that took so many seconds counts as a time-out, even if it came back (IGNORE_EXCEPTIONS hides them).
#: Not shorter: threads of a busy process wait for each other, too; redis-py gives up after 5 s where nobody says else.
SLOW = 4.0
#: Backends whose objects may be used by any thread, so that asking ``caches`` once is enough.
_SHARED_BACKENDS = frozenset(
    {"django.core.cache.backends.locmem", "django.core.cache.backends.redis", "django_redis.cache"}
)
#: Backends whose ``incr`` gives the key the backend's default life.
_RESETTING_BACKENDS = ("django.core.cache.backends.filebased", "django.core.cache.backends.db")
#: Clients of django-redis whose ``touch`` reads and writes the value.
_REWRITING_CLIENTS = frozenset({"HerdClient"})


class Store:
    """One alias of CACHES, with a memory of its troubles. One object per process and alias, used by all threads."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._shared: BaseCache | None = None
        self._fast: FastCache | None = None
        #: For hits from another process's memory; None where there is nothing to wait for.
        self._turns: Turns | None = None
        self._lock = threading.Lock()
        self._errors = 0
        #: Monotonic moment until which the cache is left alone; 0.0 while all is well.
        self._paused_until = 0.0

    def get_pair(self, first: str, second: str) -> tuple[Any, Any]:
        """Return what the cache holds under two keys, None for what is missing: the read of every hit."""
        if self._fast is None or self._errors or self._paused_until:
            found = self.get_many((first, second))
            return found.get(first), found.get(second)
        turn = None if self._turns is None else self._turns.take()
        started = clock.monotonic()
        try:
            if self._paused_until:  # whoever had the turn before has found out why
                return None, None
            one, two = self._fast.read((first, second))
        except Exception as error:  # noqa: BLE001 - whatever a backend raises is its trouble, not the lookup's
            found = self._without_what_failed((first, second), error, started)
            return found.get(first), found.get(second)
        finally:
            if turn is not None:
                turn.put(0)
        if clock.monotonic() - started > SLOW:
            self._came_back(started)
        return one, two

    @property
    def backend(self) -> BaseCache:
        """The Django cache of this thread."""
        if self._shared is not None:
            return self._shared
        cache: BaseCache = caches[self.alias]
        if type(cache).__module__ in _SHARED_BACKENDS:
            self._shared = cache
            self._turns = None if isinstance(cache, LocMemCache) else Turns()
            self._fast = fast_cache(cache)
        return cache

    @property
    def is_local(self) -> bool:
        """No other process sees what this alias keeps."""
        return isinstance(self.backend, (LocMemCache, DummyCache))

    @property
    def keeps_nothing(self) -> bool:
        """The alias is a dummy: nothing is ever kept, so nothing has to be invalidated."""
        return isinstance(self.backend, DummyCache)

    @property
    def is_paused(self) -> bool:
        """The process leaves this cache alone just now. Asking takes nothing."""
        return self._paused_until > clock.monotonic()

    @property
    def is_in_trouble(self) -> bool:
        """The last operation failed, or the process leaves this cache alone."""
        return bool(self._errors or self._paused_until)

    def get_many(self, keys: tuple[str, ...]) -> Mapping[str, Any]:
        """Return what the cache holds of ``keys``; nothing while it is in trouble. Undecodable values are left out."""
        started = self._begin()
        if self._paused_until and not self._may_try(started):
            return {}
        try:
            found = self._read_all(keys)
        except Exception as error:  # noqa: BLE001 - whatever a backend raises is its trouble, not the lookup's
            return self._without_what_failed(keys, error, started)
        if self._errors or self._paused_until or clock.monotonic() - started > SLOW:
            self._came_back(started)
        return found

    def add(self, key: str, value: Any, ttl: float) -> bool | None:
        """Return whether the key was new; None when the cache cannot tell."""
        return self._attempt(lambda: _sure(self._operations.add(key, value, whole_seconds(ttl))), None)

    def set(self, key: str, value: Any, ttl: float) -> None:
        """Write, if the cache takes it."""
        self._attempt(lambda: self._operations.set(key, value, whole_seconds(ttl)), None)

    def touch(self, key: str, ttl: float) -> None:
        """Give the key a new life, if it and the cache are there.

        Not with a client that does so by writing the value again: it could bring back what was replaced meanwhile.
        """
        if type(getattr(self.backend, "client", None)).__name__ in _REWRITING_CLIENTS:
            return
        self._attempt(lambda: self._operations.touch(key, whole_seconds(ttl)), None)

    def incr(self, key: str, delta: int, ttl: float) -> int | None:
        """Add to a number; None when it is missing or the cache cannot tell.

        ``ttl`` is given to the key again where the backend's ``incr`` would reset it (file and database caches).
        """
        return self._attempt(lambda: self._incr_now(key, delta, whole_seconds(ttl)), None)

    def _incr_now(self, key: str, delta: int, seconds: int) -> int | None:
        backend = self.backend
        try:
            value = backend.incr(key, delta)
        except ValueError:
            return None
        if type(backend).__module__.startswith(_RESETTING_BACKENDS):
            backend.touch(key, seconds)
        if value is None:
            raise _Unsure("incr() returned None")
        return int(value)

    def add_and_get_pair(
        self, key: str, value: Any, ttl: float, first: str, second: str
    ) -> tuple[bool | None, tuple[Any, Any]]:
        """Do ``add`` and then ``get_pair``; in one round trip on Redis."""
        fast = self._fast
        if fast is None:
            return self.add(key, value, ttl), self.get_pair(first, second)
        life, keys = whole_seconds(ttl), (first, second)
        otherwise: tuple[bool | None, list[Any] | None] = (None, [None, None])
        is_new, found = self._attempt(lambda: fast.add_and_read(key, value, life, keys), otherwise)
        return is_new, self.get_pair(first, second) if found is None else (found[0], found[1])

    def set_and_touch(
        self, key: str, value: Any, ttl: float, touched: str | None, touched_ttl: float, deleted: str | None = None
    ) -> bool:
        """Do ``set``, then ``touch`` another key and ``delete`` a third one, where they are given.

        In one round trip on Redis. Returns whether ``deleted`` was deleted, too.
        """
        if self._fast is None or touched is deleted is None:
            self.set(key, value, ttl)
            if touched is not None:
                self.touch(touched, touched_ttl)
            return False
        life, touched_life = whole_seconds(ttl), whole_seconds(touched_ttl)
        return self._attempt(partial(self._fast_set_and_touch, key, value, life, touched, touched_life, deleted), False)

    def _fast_set_and_touch(self, *arguments: Any) -> bool:
        assert self._fast is not None
        self._fast.set_and_touch(*arguments)
        return arguments[-1] is not None

    def delete(self, key: str) -> None:
        """Delete, if the cache takes it."""
        self._attempt(lambda: self._operations.delete(key), None)

    def set_many_or_raise(self, values: Mapping[str, Any], ttl: float) -> None:
        """Write whatever the pause says; whatever the backend raises goes to the caller."""
        self.backend.set_many(dict(values), whole_seconds(ttl))

    def get_many_or_raise(self, keys: Iterable[str]) -> Mapping[str, Any]:
        """Read whatever the pause says; whatever the backend raises goes to the caller."""
        found: Mapping[str, Any] = self.backend.get_many(tuple(keys))
        return found

    @property
    def _operations(self) -> FastCache | BaseCache:
        backend = self.backend
        return self._fast or backend

    def _attempt(self, operation: Callable[[], T], otherwise: T) -> T:
        started = self._begin()
        if self._paused_until and not self._may_try(started):
            return otherwise
        try:
            answer = operation()
        except Exception as error:  # noqa: BLE001 - whatever a backend raises is its trouble, not the lookup's
            self._failed(error, started)
            return otherwise
        if self._errors or self._paused_until or clock.monotonic() - started > SLOW:
            self._came_back(started)
        return answer

    def _begin(self) -> float:
        """Return the moment from which an operation is timed; importing a backend is no trouble of the cache's."""
        if self._shared is None:
            with contextlib.suppress(Exception):  # the operation raises it again
                _ = self.backend
        return clock.monotonic()

    def _read_all(self, keys: tuple[str, ...]) -> Mapping[str, Any]:
        backend = self.backend
        if self._fast is None or not keys:
            found: Mapping[str, Any] = backend.get_many(keys)
            return found
        return {key: value for key, value in zip(keys, self._fast.read(keys), strict=True) if value is not None}

    def _without_what_failed(self, keys: tuple[str, ...], error: Exception, started: float) -> Mapping[str, Any]:
        """One value that cannot be decoded must not hide the others; after other trouble there is no second try."""
        if not is_about_a_value(error):
            self._failed(error, started)
            return {}
        found = {key: self._attempt(lambda key=key: self._get_or_none(key), None) for key in keys}  # type: ignore[misc]
        return {key: value for key, value in found.items() if value is not None}

    def _get_or_none(self, key: str) -> Any:
        try:
            return self.backend.get(key)
        except VALUE_ERRORS:
            return None

    def _may_try(self, now: float) -> bool:
        """The pause is over, and this caller is the one who tries; the others go on waiting for what it sees."""
        with self._lock:
            if self._paused_until > now:
                return False
            if self._paused_until:
                self._paused_until = now + PAUSE
            return True

    def _failed(self, error: Exception, started: float) -> None:
        with self._lock:
            self._errors += 1
            is_slow = is_timeout(error) or clock.monotonic() - started > SLOW
            if not is_slow and self._errors < ERRORS_BEFORE_PAUSE:
                return
            is_new = not self._paused_until
            self._paused_until = clock.monotonic() + PAUSE
        if is_new:
            logger.warning("Cache %r is left alone for %s s after %s.", self.alias, PAUSE, type(error).__name__)

    def _came_back(self, started: float) -> None:
        """An operation ended without an error: all is well again, unless it took as long as a time-out."""
        with self._lock:
            self._errors = 0
            is_slow = clock.monotonic() - started > SLOW
            was_paused = bool(self._paused_until)
            self._paused_until = clock.monotonic() + PAUSE if is_slow else 0.0
        if is_slow and not was_paused:
            logger.warning("Cache %r is left alone for %s s: it took more than %s s.", self.alias, PAUSE, SLOW)
        elif was_paused and not is_slow:
            logger.info("Cache %r answers again.", self.alias)


def whole_seconds(ttl: float) -> int:
    """Return ``ttl`` in whole seconds, rounded up, at least 1: some backends cut fractions, and 0 means expired."""
    return max(1, math.ceil(ttl))


class _Unsure(Exception):
    """The backend said neither yes nor no."""


def _sure(answer: object) -> bool:
    """A yes or a no; django-redis answers None to ``add`` when it hides an error (IGNORE_EXCEPTIONS)."""
    if answer is None:
        raise _Unsure("add() returned None")
    return bool(answer)
