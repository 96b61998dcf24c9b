"""How do we talk to a Django cache that may be slow, broken, or unsure?

Reads become misses and writes become no-ops while the cache is in trouble. What must not be swallowed (an invalidation)
goes through the ``…_or_raise`` methods, which ignore the pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from django.core.cache import BaseCache

from catalog_fallback import cache_trouble, clock
from catalog_fallback.cache_backends import Backend, whole_seconds
from catalog_fallback.cache_errors import VALUE_ERRORS, is_about_a_value
from catalog_fallback.cache_trouble import Trouble
from catalog_fallback.fast_cache import Undecodable

T = TypeVar("T")


class Store:
    """One alias of CACHES, with a memory of its troubles. One object per process and alias, used by all threads."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._backend = Backend(alias)
        self._trouble = Trouble(alias)

    def get_pair(self, first: str, second: str) -> tuple[Any, Any]:
        """Return what the cache holds under two keys, None for what is missing: the read of every hit."""
        backend, trouble, keys = self._backend, self._trouble, (first, second)
        fast, reads = backend.fast, backend.reads
        if fast is None or trouble.errors or trouble.paused_until:
            found = self.get_many(keys)
            return found.get(first), found.get(second)
        values = self._ask(keys) if reads is None else reads.read(keys, self._ask)
        if values is None:
            return None, None
        try:
            one, two = fast.decoded(values)
        except Undecodable as error:
            found = self._without_what_failed(keys, error, clock.monotonic())
            return found.get(first), found.get(second)
        return one, two

    def _ask(self, keys: tuple[str, ...]) -> list[bytes | None] | None:
        """Read without decoding; None where the cache is in trouble."""
        fast, trouble = self._backend.fast, self._trouble
        if fast is None or trouble.paused_until:  # whoever had the turn before has found out why
            return None
        started = clock.monotonic()
        try:
            values = fast.raw(keys)
        except Exception as error:  # noqa: BLE001 - whatever a backend raises is its trouble, not the lookup's
            trouble.failed(error, started)
            return None
        if clock.monotonic() - started > cache_trouble.SLOW:
            trouble.answered(started)
        return values

    @property
    def backend(self) -> BaseCache:
        """The Django cache of this thread."""
        return self._backend.cache

    @property
    def is_local(self) -> bool:
        """No other process sees what this alias keeps."""
        return self._backend.is_local

    @property
    def keeps_nothing(self) -> bool:
        """The alias is a dummy: nothing is ever kept, so nothing has to be invalidated."""
        return self._backend.keeps_nothing

    @property
    def culls(self) -> bool:
        """The cache throws away many keys at once when it holds more than MAX_ENTRIES."""
        return hasattr(self.backend, "_cull")

    @property
    def is_paused(self) -> bool:
        """The process leaves this cache alone just now. Asking takes nothing."""
        return self._trouble.is_paused

    @property
    def is_in_trouble(self) -> bool:
        """The last operation failed, or the process leaves this cache alone."""
        return self._trouble.is_there

    def get_many(self, keys: tuple[str, ...]) -> Mapping[str, Any]:
        """Return what the cache holds of ``keys``; nothing while it is in trouble. Undecodable values are left out."""
        started = self._begin()
        if not self._trouble.may_try(started):
            return {}
        try:
            found = self._read_all(keys)
        except Exception as error:  # noqa: BLE001 - whatever a backend raises is its trouble, not the lookup's
            return self._without_what_failed(keys, error, started)
        self._trouble.answered(started)
        return found

    def add(self, key: str, value: Any, ttl: float) -> bool | None:
        """Return whether the key was new; None when the cache cannot tell."""
        return self._attempt(lambda: self._backend.add(key, value, whole_seconds(ttl)), None)

    def set(self, key: str, value: Any, ttl: float) -> None:
        """Write, if the cache takes it."""
        self._attempt(lambda: self._backend.quickest.set(key, value, whole_seconds(ttl)), None)

    def touch(self, key: str, ttl: float) -> None:
        """Give the key a new life, if it and the cache are there, and the cache does it without a look at the value."""
        if not self._backend.rewrites_to_touch:
            self._attempt(lambda: self._backend.quickest.touch(key, whole_seconds(ttl)), None)

    def incr(self, key: str, delta: int, ttl: float) -> int | None:
        """Add to a number; None when it is missing or the cache cannot tell.

        ``ttl`` is given to the key again where the backend's ``incr`` would reset it (file and database caches).
        """
        return self._attempt(lambda: self._backend.incr(key, delta, whole_seconds(ttl)), None)

    def delete(self, key: str) -> None:
        """Delete, if the cache takes it."""
        self._attempt(lambda: self._backend.quickest.delete(key), None)

    def set_many_or_raise(self, values: Mapping[str, Any], ttl: float) -> None:
        """Write whatever the pause says; whatever the backend raises goes to the caller."""
        self.backend.set_many(dict(values), whole_seconds(ttl))

    def get_many_or_raise(self, keys: Iterable[str]) -> Mapping[str, Any]:
        """Read whatever the pause says; whatever the backend raises goes to the caller."""
        found: Mapping[str, Any] = self.backend.get_many(tuple(keys))
        return found

    def _attempt(self, operation: Callable[[], T], otherwise: T) -> T:
        started = self._begin()
        if not self._trouble.may_try(started):
            return otherwise
        try:
            answer = operation()
        except Exception as error:  # noqa: BLE001 - whatever a backend raises is its trouble, not the lookup's
            self._trouble.failed(error, started)
            return otherwise
        self._trouble.answered(started)
        return answer

    def _begin(self) -> float:
        """Return the moment from which an operation is timed; importing a backend is no trouble of the cache's."""
        self._backend.load()
        return clock.monotonic()

    def _read_all(self, keys: tuple[str, ...]) -> Mapping[str, Any]:
        outspoken, fast = self._backend.outspoken, self._backend.fast
        if fast is None or not keys:
            found: Mapping[str, Any] = outspoken.get_many(keys)
            return found
        return {key: value for key, value in zip(keys, fast.read(keys), strict=True) if value is not None}

    def _without_what_failed(self, keys: tuple[str, ...], error: Exception, started: float) -> Mapping[str, Any]:
        """One value that cannot be decoded must not hide the others; after other trouble there is no second try."""
        if not is_about_a_value(error):
            self._trouble.failed(error, started)
            return {}
        found = {key: self._attempt(lambda key=key: self._get_or_none(key), None) for key in keys}  # type: ignore[misc]
        return {key: value for key, value in found.items() if value is not None}

    def _get_or_none(self, key: str) -> Any:
        try:
            return self._backend.outspoken.get(key)
        except VALUE_ERRORS:
            return None
