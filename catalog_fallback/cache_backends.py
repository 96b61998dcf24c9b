"""Which object of Django's is one alias of CACHES, and how do its backends differ from each other?"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from typing import Any

from django.core.cache import BaseCache, caches
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.locmem import LocMemCache

from catalog_fallback.fast_cache import FastCache
from catalog_fallback.fast_caches import fast_cache
from catalog_fallback.shared_reads import SharedReads

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


class Backend:
    """One alias of CACHES, with the same answers from all its backends. One object for all threads of a process."""

    __slots__ = ("_mine", "_shared", "alias", "fast", "reads")

    def __init__(self, alias: str) -> None:
        self.alias = alias
        #: The faster way, where there is one; known once :attr:`cache` was asked for.
        self.fast: FastCache | None = None
        #: Of pairs, from another process's memory; None where there is nothing to wait for.
        self.reads: SharedReads | None = None
        self._shared: BaseCache | None = None
        self._mine = threading.local()

    @property
    def cache(self) -> BaseCache:
        """The Django cache of this thread."""
        if self._shared is not None:
            return self._shared
        cache: BaseCache = caches[self.alias]
        if type(cache).__module__ in _SHARED_BACKENDS:
            self._shared = cache
            self.reads = None if isinstance(cache, LocMemCache) else SharedReads()
            self.fast = fast_cache(cache)
        elif type(cache).__module__ == _CONNECTED_BACKENDS:
            return self._of_thread()
        return cache

    def _of_thread(self) -> BaseCache:
        """This thread's own object, made anew after a fork: two processes must not read from one connection."""
        mine: _OfThread | None = getattr(self._mine, "held", None)
        if mine is None or mine.process != os.getpid():
            mine = self._mine.held = _OfThread(caches.create_connection(self.alias))
        return mine.cache

    def load(self) -> None:
        """Import and set up what may take its time; whatever is wrong with it, the first operation raises it again."""
        if self._shared is None:
            with contextlib.suppress(Exception):
                _ = self.cache

    @property
    def outspoken(self) -> Any:
        """The cache, or the client below django-redis' cache: it raises a time-out that the cache hides.

        Both have the same methods; the cache only decides what becomes of errors (IGNORE_EXCEPTIONS).
        """
        cache = self.cache
        return cache.client if type(cache).__module__ == _DJANGO_REDIS else cache  # type: ignore[attr-defined]

    @property
    def quickest(self) -> Any:
        """Whatever does ``add``, ``set``, ``touch`` and ``delete`` with the least work."""
        return self.outspoken if self.fast is None else self.fast

    @property
    def is_local(self) -> bool:
        """No other process sees what this alias keeps."""
        return isinstance(self.cache, (LocMemCache, DummyCache))

    @property
    def keeps_nothing(self) -> bool:
        """The alias is a dummy: nothing is ever kept, so nothing has to be invalidated."""
        return isinstance(self.cache, DummyCache)

    @property
    def rewrites_to_touch(self) -> bool:
        """Its ``touch`` writes the value again, and could so bring back what was replaced meanwhile."""
        return type(getattr(self.cache, "client", None)).__name__ in _REWRITING_CLIENTS

    def add(self, key: str, value: Any, seconds: int) -> bool:
        """Return whether the key was new; raises Unsure where the backend does not say."""
        answer = self.quickest.add(key, value, seconds)
        if answer is None:  # so says django-redis when it hides an error (IGNORE_EXCEPTIONS)
            raise Unsure("add() returned None")
        return bool(answer)

    def incr(self, key: str, delta: int, seconds: int) -> int | None:
        """Add to a number, which keeps its life; None when it is missing. Raises Unsure for what is no number."""
        try:
            value = self.outspoken.incr(key, delta)
        except ValueError:
            return None
        cache = self.cache
        if type(cache).__module__.startswith(_RESETTING_BACKENDS):
            cache.touch(key, seconds)
        if value is None or isinstance(value, bool):  # PyMemcache answers False while it holds its server for dead
            raise Unsure(f"incr() returned {value}")
        return int(value)


class _OfThread:
    """A backend's object that is closed with the thread that uses it, or when the settings change."""

    def __init__(self, cache: BaseCache) -> None:
        self.cache = cache
        self.process = os.getpid()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the end of the process what it needs may be gone
            self.cache.close()


class Unsure(Exception):
    """The backend said neither yes nor no."""


def whole_seconds(ttl: float) -> int:
    """Return ``ttl`` in whole seconds, rounded up, at least 1: some backends cut fractions, and 0 means expired."""
    return max(1, math.ceil(ttl))
