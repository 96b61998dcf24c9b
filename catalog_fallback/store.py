"""How do we talk to a Django cache that may be slow, broken, or unsure?

Reads become misses and writes become no-ops while the cache is in trouble, and after one time-out, or three other
errors in a row, the process leaves it alone for a few seconds. What must not be swallowed (an invalidation) goes
through the ``…_or_raise`` methods, which ignore the pause.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
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
from catalog_fallback.log_events import fields
from catalog_fallback.redis_scripts import RedisScripts
from catalog_fallback.turns import Turns

logger = logging.getLogger("catalog_fallback")

T = TypeVar("T")

#: Seconds for which a process leaves a cache in trouble alone.
PAUSE = 5.0
#: Errors in a row, other than a time-out, after which it does.
ERRORS_BEFORE_PAUSE = 3
#: An operation that took so many seconds counts as a time-out, even if it came back: a backend may hide one (PyMemcache
#: with ignore_exc), or try again by itself. Not shorter: threads of a busy process wait for each other, too.
SLOW = 4.0
_DJANGO_REDIS = "django_redis.cache"
#: Backends whose objects may be used by any thread, so that asking ``caches`` once is enough.
_SHARED_BACKENDS = frozenset({"django.core.cache.backends.locmem", "django.core.cache.backends.redis", _DJANGO_REDIS})
#: Backends whose objects hold a connection that one thread at a time may use. Django makes a new object for each task
#: and each job of a pool; one for each thread is enough.
_CONNECTED_BACKENDS = "django.core.cache.backends.memcached"
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
        self._mine = threading.local()
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
        elif type(cache).__module__ == _CONNECTED_BACKENDS:
            return self._of_thread()
        return cache

    def _of_thread(self) -> BaseCache:
        """This thread's own object, made anew after a fork: two processes must not read from one connection."""
        mine: _OfThread | None = getattr(self._mine, "held", None)
        if mine is None or mine.process != os.getpid():
            mine = self._mine.held = _OfThread(caches.create_connection(self.alias))
        return mine.cache

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
            value = _outspoken(backend).incr(key, delta)
        except ValueError:
            return None
        if type(backend).__module__.startswith(_RESETTING_BACKENDS):
            backend.touch(key, seconds)
        if value is None or isinstance(value, bool):  # PyMemcache answers False while it holds its server for dead
            raise _Unsure(f"incr() returned {value}")
        return int(value)

    def add_and_get_pair(
        self, key: str, value: Any, ttl: float, first: str, second: str
    ) -> tuple[bool | None, tuple[Any, Any]]:
        """Do ``add`` and then ``get_pair``; in one round trip on Redis.

        There, a value that nobody else has counts as added where it stands already: redis-py may send a command again
        whose reply was lost.
        """
        fast = self._fast
        if fast is None:
            return self.add(key, value, ttl), self.get_pair(first, second)
        life, keys = whole_seconds(ttl), (key, first, second)
        otherwise: tuple[bool | None, list[Any] | None] = (None, [None] * len(keys))
        is_new, found = self._attempt(lambda: fast.add_and_read(key, value, life, keys), otherwise)
        if found is None:
            return is_new, self.get_pair(first, second)
        return True if found[0] == value else is_new, (found[1], found[2])

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

    @property
    def runs_scripts(self) -> bool:
        """The cache does some steps by itself, in one round trip each."""
        return self.scripts is not None

    @property
    def scripts(self) -> RedisScripts | None:
        """The scripts, where the server runs them."""
        scripts = None if self._fast is None else self._fast.scripts
        return None if scripts is None or scripts.are_refused else scripts

    def put_up(
        self, gate: tuple[str, str, float], lease: tuple[str, str, float], entry_key: str
    ) -> tuple[bool, Any, Any] | None:
        """Put up a gate and take the lease with it, both given as key, value and life, in one round trip.

        Returns (whether both are ours, gate, entry); None where that has to be done one by one.
        """
        scripts = self.scripts
        if scripts is None:
            return None
        (gate_key, token, gate_life), (lease_key, owner, lease_life) = gate, lease
        gate = gate_key, token, whole_seconds(gate_life)
        lease = lease_key, owner, whole_seconds(lease_life)
        return self._attempt(lambda: scripts.put_up(gate, lease, entry_key), None)

    def keep_under(
        self, gate_key: str, token: str, entry: tuple[str, Any, float], gate_life: float | None, lease_key: str | None
    ) -> tuple[bool, bool]:
        """Write an entry (key, value, life) if the gate still holds the token; give the gate a new life if that is due.

        Returns whether it was written, and whether the lease, where one is given, was deleted with it.
        """
        entry_key, value, life = entry
        scripts = self.scripts
        if scripts is not None:
            words = (entry_key, value, whole_seconds(life)), whole_seconds(gate_life) if gate_life else 0, lease_key
            failed: bool | None = False
            is_kept = self._attempt(lambda: scripts.keep(gate_key, token, *words), failed)
            if is_kept is not None:
                return is_kept, is_kept
        if self.get_many((gate_key,)).get(gate_key) != token:
            return False, False
        touched = gate_key if gate_life else None
        return True, self.set_and_touch(entry_key, value, life, touched, gate_life or 0.0, lease_key)

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
        return self._fast or _outspoken(backend)

    def _attempt(self, operation: Callable[[], T], otherwise: T) -> T:
        started = self._begin()
        if self._paused_until and not self._may_try(started):
            return otherwise
        try:
            answer = operation()
        except Exception as error:  # noqa: BLE001 - whatever a backend raises is its trouble, not the lookup's
            if not is_about_a_value(error):
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
            found: Mapping[str, Any] = _outspoken(backend).get_many(keys)
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
            return _outspoken(self.backend).get(key)
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
            name = type(error).__name__
            logger.warning(
                "Cache %r is left alone for %s s after %s.", self.alias, PAUSE, name, extra=self._paused(name)
            )

    def _came_back(self, started: float) -> None:
        """An operation ended without an error: all is well again, unless it took as long as a time-out."""
        with self._lock:
            self._errors = 0
            is_slow = clock.monotonic() - started > SLOW
            was_paused = bool(self._paused_until)
            self._paused_until = clock.monotonic() + PAUSE if is_slow else 0.0
        if is_slow and not was_paused:
            logger.warning(
                "Cache %r is left alone for %s s: it took more than %s s.",
                self.alias,
                PAUSE,
                SLOW,
                extra=self._paused("slow"),
            )
        elif was_paused and not is_slow:
            about = fields("cache_resumed", cache=self.alias, old="paused", new="ready", reason="answered")
            logger.info("Cache %r answers again.", self.alias, extra=about)

    def _paused(self, reason: str) -> dict[str, object]:
        return fields("cache_paused", cache=self.alias, old="ready", new="paused", reason=reason, seconds=PAUSE)


def _outspoken(backend: BaseCache) -> Any:
    """The client below django-redis' cache: it raises a time-out that the cache hides (IGNORE_EXCEPTIONS).

    Both have the same methods; the cache only decides what becomes of errors.
    """
    return backend.client if type(backend).__module__ == _DJANGO_REDIS else backend  # type: ignore[attr-defined]


class _OfThread:
    """A backend's object that is closed with the thread that uses it, or when the settings change."""

    def __init__(self, cache: BaseCache) -> None:
        self.cache = cache
        self.process = os.getpid()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the end of the process what it needs may be gone
            self.cache.close()


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
