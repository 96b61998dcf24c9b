"""What of a lookup's steps takes one round trip? Several operations on the keys of one item, where the cache can.

Redis does some of them in a pipeline, and some in a script; elsewhere they are done one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catalog_fallback.cache_backends import whole_seconds
from catalog_fallback.redis_scripts import Precondition, RedisScripts, Unmet
from catalog_fallback.store import Store

#: Whether it is ours, gate and entry; or what stands instead of a precondition.
Taken = tuple[bool, Any, Any] | Unmet


class ItemStore(Store):
    """One alias of CACHES, as those use it who keep items in it."""

    def add_and_get_pair(
        self, key: str, value: Any, ttl: float, first: str, second: str
    ) -> tuple[bool | None, tuple[Any, Any]]:
        """Do ``add`` and then ``get_pair``; in one round trip on Redis.

        There, a value that nobody else has counts as added where it stands already: redis-py may send a command again
        whose reply was lost.
        """
        fast = self._backend.fast
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
        fast = self._backend.fast
        if fast is None or touched is deleted is None:
            self.set(key, value, ttl)
            if touched is not None:
                self.touch(touched, touched_ttl)
            return False
        life, touched_life = whole_seconds(ttl), whole_seconds(touched_ttl)

        def write() -> bool:
            fast.set_and_touch(key, value, life, touched, touched_life, deleted)
            return deleted is not None

        return self._attempt(write, False)

    @property
    def runs_scripts(self) -> bool:
        """The cache does some steps by itself, in one round trip each."""
        return self.scripts is not None

    @property
    def scripts(self) -> RedisScripts | None:
        """The scripts, where the server runs them."""
        fast = self._backend.fast
        scripts = None if fast is None else fast.scripts
        return None if scripts is None or scripts.are_refused else scripts

    def put_up(
        self,
        gate: tuple[str, str, float],
        lease: tuple[str, str, float],
        entry_key: str,
        precondition: Precondition | None = None,
    ) -> Taken | None:
        """Put up a gate and take the lease with it, both given as key, value and life, in one round trip.

        Returns (whether both are ours, gate, entry), or what is there instead of what the ``precondition`` names; None
        where that has to be done one by one.
        """
        words = _in_whole_seconds(gate), _in_whole_seconds(lease), entry_key, precondition
        return self._by_script(lambda scripts: scripts.put_up(*words))

    def take_lease(
        self, lease: tuple[str, str, float], gate_key: str, entry_key: str, precondition: Precondition
    ) -> Taken | None:
        """Take a lease, given as key, value and life, and read gate and entry after it, in one round trip.

        Returns (whether it is ours, gate, entry), or what is there instead of what the ``precondition`` names; None
        where that has to be done one by one.
        """
        words = _in_whole_seconds(lease), gate_key, entry_key, precondition
        return self._by_script(lambda scripts: scripts.take(*words))

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

    def _by_script(self, run: Callable[[RedisScripts], Taken | None]) -> Taken | None:
        """Have the server do it; None where it runs no scripts, or has not answered."""
        scripts = self.scripts
        otherwise: Taken | None = None
        return otherwise if scripts is None else self._attempt(lambda: run(scripts), otherwise)


def _in_whole_seconds(what: tuple[str, str, float]) -> tuple[str, str, int]:
    key, value, life = what
    return key, value, whole_seconds(life)
