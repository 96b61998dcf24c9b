"""How is Django's local-memory cache asked with less work, and to the same effect?"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any

from catalog_fallback.fast_cache import decoded, or_none
from catalog_fallback.redis_scripts import RedisScripts


class OverLocMem:
    """The same, without the search for characters that Memcached would refuse: our keys have none."""

    scripts: RedisScripts | None = None

    def __init__(self, cache: Any) -> None:
        self._make_key, self._has_expired = cache.make_key, cache._has_expired
        self._set_locked, self._delete_locked = cache._set, cache._delete
        self._lock, self._pickles, self._expiries = cache._lock, cache._cache, cache._expire_info
        self._life_of, self._protocol = cache.get_backend_timeout, cache.pickle_protocol
        assert isinstance(self._pickles, OrderedDict)

    def read(self, keys: tuple[str, ...]) -> list[Any]:
        return decoded(pickle.loads, self.raw(keys))

    def raw(self, keys: tuple[str, ...]) -> list[bytes | None]:
        make_key, pickles = self._make_key, self._pickles
        made = [make_key(key) for key in keys]
        with self._lock:
            return [self._pickle_locked(key) if key in pickles else None for key in made]

    def decoded(self, values: list[bytes | None]) -> list[Any]:
        return decoded(pickle.loads, values)

    def add(self, key: str, value: Any, seconds: int) -> bool:
        made, pickled = self._make_key(key), pickle.dumps(value, self._protocol)
        with self._lock:
            if made in self._pickles and not self._has_expired(made):
                return False
            self._set_locked(made, pickled, seconds)
            return True

    def set(self, key: str, value: Any, seconds: int) -> None:
        made, pickled = self._make_key(key), pickle.dumps(value, self._protocol)
        with self._lock:
            self._set_locked(made, pickled, seconds)

    def touch(self, key: str, seconds: int) -> bool:
        made = self._make_key(key)
        with self._lock:
            if self._has_expired(made):
                return False
            self._expiries[made] = self._life_of(seconds)
            return True

    def delete(self, key: str) -> bool:
        with self._lock:
            return bool(self._delete_locked(self._make_key(key)))

    def add_and_read(self, key: str, value: Any, seconds: int, keys: tuple[str, ...]) -> tuple[bool, list[Any] | None]:
        return self.add(key, value, seconds), or_none(self.read, keys)

    def set_and_touch(
        self, key: str, value: Any, seconds: int, touched: str | None, touched_seconds: int, deleted: str | None = None
    ) -> None:
        self.set(key, value, seconds)
        if touched is not None:
            self.touch(touched, touched_seconds)
        if deleted is not None:
            self.delete(deleted)

    def _pickle_locked(self, key: str) -> bytes | None:
        if self._has_expired(key):
            return None
        self._pickles.move_to_end(key, last=False)
        found: bytes = self._pickles[key]
        return found
