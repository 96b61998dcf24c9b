"""What can a faster way to a cache do? The operations that lookups need, and the difference that they do not make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from catalog_fallback.redis_scripts import RedisScripts


class Undecodable(ValueError):
    """There is a value, but the cache's serializer does not understand it."""


class FastCache(Protocol):
    """The operations of one cache, for all threads. They raise whatever the cache raises, IGNORE_EXCEPTIONS or not."""

    @property
    def scripts(self) -> RedisScripts | None:
        """What the server can do by itself, if it is one that can."""

    def read(self, keys: tuple[str, ...]) -> list[Any]:
        """Return the values under keys (at least one), None for what is missing; may raise Undecodable."""

    def raw(self, keys: tuple[str, ...]) -> list[bytes | None]:
        """Return what :meth:`read` would decode."""

    def decoded(self, values: list[bytes | None]) -> list[Any]:
        """Return what :meth:`read` would return, in objects of the caller's own; may raise Undecodable."""

    def add(self, key: str, value: Any, seconds: int) -> bool:
        """Return whether the key was new."""

    def set(self, key: str, value: Any, seconds: int) -> None:
        """Write."""

    def touch(self, key: str, seconds: int) -> bool:
        """Give the key a new life; return whether it was there."""

    def delete(self, key: str) -> bool:
        """Delete; return whether it was there."""

    def add_and_read(self, key: str, value: Any, seconds: int, keys: tuple[str, ...]) -> tuple[bool, list[Any] | None]:
        """Do ``add``, then ``read``; None in the place of values of which one cannot be decoded."""

    def set_and_touch(
        self, key: str, value: Any, seconds: int, touched: str | None, touched_seconds: int, deleted: str | None = None
    ) -> None:
        """Do ``set``, then ``touch`` another key and ``delete`` a third one, where they are given."""


def decoded(decode: Callable[[bytes], Any], found: list[bytes | None]) -> list[Any]:
    """Return the values, None for what is missing; raises Undecodable."""
    try:
        return [None if each is None else decode(each) for each in found]
    except Exception as error:
        raise Undecodable from error


def or_none(read: Callable[[Any], list[Any]], what: Any) -> list[Any] | None:
    """Return what ``read`` returns, None where it cannot be decoded."""
    try:
        return read(what)
    except Undecodable:
        return None


def class_of(thing: object) -> str:
    """Return the full name of its very class: a subclass may do things differently."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
