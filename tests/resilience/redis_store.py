"""How do the guards use a real server, without Django between? Imports little: each process of a race test does it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import redis


class RedisStore:
    """The store over a real server: JSON values, whole seconds, as a Django cache over Redis does it."""

    is_paused = False

    def __init__(self, url: str) -> None:
        self.client: Any = redis.Redis.from_url(url, socket_timeout=20)

    def get_many(self, keys: tuple[str, ...]) -> Mapping[str, Any]:
        """Return what there is."""
        values = self.client.mget(keys)
        return {key: json.loads(value) for key, value in zip(keys, values, strict=True) if value is not None}

    def add(self, key: str, value: Any, ttl: float) -> bool | None:
        """Write unless the key exists."""
        return bool(self.client.set(key, json.dumps(value), nx=True, ex=_seconds(ttl)))

    def set(self, key: str, value: Any, ttl: float) -> None:
        """Write."""
        self.client.set(key, json.dumps(value), ex=_seconds(ttl))

    def incr(self, key: str, delta: int, ttl: float) -> int | None:
        """Add to a number that exists."""
        if not self.client.exists(key):
            return None
        value: int = self.client.incrby(key, delta)
        return value

    def touch(self, key: str, ttl: float) -> None:
        """Give the key a new life."""
        self.client.expire(key, _seconds(ttl))

    def delete(self, key: str) -> None:
        """Delete."""
        self.client.delete(key)


def _seconds(ttl: float) -> int:
    return max(1, math.ceil(ttl))
