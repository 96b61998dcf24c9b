"""Which steps of the protocol does Redis take by itself? Three scripts, of which a lookup runs two.

They do what the plain operations do, in the same order, and nothing may come between. Their keys are all of one item,
so that they are in one slot of a Redis Cluster; only a precondition has keys in another one, and is left out there.
Where a server runs no scripts (a proxy, an ACL), the plain operations are used for good.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

#: Keys: gate, lease, entry, and those of a precondition. While these hold what is expected, put up a gate and take the
#: lease under its token, or say what stands there; otherwise say what they hold. A gate with that very token is ours,
#: whatever has changed since: redis-py may send a command again whose reply was lost.
_PUT_UP = """
local held = redis.call('MGET', KEYS[1], unpack(KEYS, 4))
local gate = table.remove(held, 1)
if gate ~= ARGV[1] then
    local is_met = true
    for i = 1, #held do is_met = is_met and (held[i] or '') == ARGV[i + 4] end
    if not is_met then return {0, held} end
    if gate then return {gate, redis.call('GET', KEYS[3])} end
    redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
end
redis.call('SET', KEYS[2], ARGV[3], 'EX', ARGV[4])
return 1
"""
#: Keys: lease, gate, entry, and those of a precondition. While these hold what is expected, take the lease unless
#: somebody has it, and say whether it is ours and what gate and entry are; otherwise say what they hold. A lease with
#: that very owner is ours, whatever has changed since.
_TAKE = """
local held = redis.call('MGET', unpack(KEYS))
local owner, gate, entry = unpack(held, 1, 3)
if owner ~= ARGV[1] then
    local is_met = true
    for i = 4, #held do is_met = is_met and (held[i] or '') == ARGV[i - 1] end
    if not is_met then return {0, {unpack(held, 4)}} end
    if owner then return {2, {gate, entry}} end
    redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
end
return {1, {gate, entry}}
"""
#: Keys: gate, entry and, where it is to be deleted, lease. Write the entry if the gate is as it was, else return it.
_KEEP = """
local gate = redis.call('GET', KEYS[1])
if gate ~= ARGV[1] then return gate end
redis.call('SET', KEYS[2], ARGV[2], 'EX', ARGV[3])
if ARGV[4] ~= '0' then redis.call('EXPIRE', KEYS[1], ARGV[4]) end
if KEYS[3] then redis.call('DEL', KEYS[3]) end
return 1
"""
_DONE, _UNMET = 1, 0
#: redis-py's classes for what a server says that does not know scripts, or does not allow them.
_REFUSALS = frozenset({"NoPermissionError", "ResponseError"})
#: What it says with the same class, and would of a plain operation too: it will run scripts again.
_PASSING = re.compile(r"\b(BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|NOREPLICAS|OOM|READONLY|TRYAGAIN|WRONGTYPE)\b")
#: What a cluster says of keys in several slots, also to a client that takes it for one server.
_OTHER_SLOT = "same slot"


class RedisAccess(NamedTuple):
    """How one cache of Django's talks to its server: its client, keys and serializer."""

    client: Callable[[], Any]
    make_key: Callable[[str], str]
    encode: Callable[[Any], Any]
    decode: Callable[[bytes], Any]


class Precondition(NamedTuple):
    """Keys, and the bytes that the server has to hold under them, ``b""`` for none; ``values`` None is never met."""

    keys: tuple[str, ...]
    values: tuple[bytes, ...] | None


class Unmet(NamedTuple):
    """What the server holds under the keys of a precondition: as it is there, and decoded without what is missing."""

    values: tuple[bytes, ...]
    found: dict[str, Any]


class RedisScripts:
    """The scripts on one server. They raise whatever redis-py raises; None is their answer where they do not run.

    ``takes_any_keys``: keys of several slots may be named in one command.
    """

    def __init__(self, access: RedisAccess, *, takes_any_keys: bool = True) -> None:
        self._client, self._make_key, self._encode, self._decode = access
        self.takes_any_keys = takes_any_keys
        #: The server does not know scripts, or does not allow them.
        self.are_refused = False

    def put_up(
        self,
        gate: tuple[str, str, int],
        lease: tuple[str, str, int],
        entry_key: str,
        precondition: Precondition | None = None,
    ) -> tuple[bool, Any, Any] | Unmet | None:
        """Put up a gate, and take the lease with it, both given as key, value and seconds, if the precondition is met.

        Returns (whether both are ours, gate, entry), or what is there instead of what was to be met; None also where
        that cannot be decoded.
        """
        (gate_key, token, gate_life), (lease_key, owner, lease_life) = gate, lease
        keys, expected = precondition or _NO_PRECONDITION
        values = self._encode(token), gate_life, self._encode(owner), lease_life, *(expected or ())
        said = self._run(_PUT_UP, (gate_key, lease_key, entry_key, *keys), values)
        if said is None or said == _DONE:
            return None if said is None else (True, token, None)
        first, second = said
        try:
            if first == _UNMET:
                return self._unmet(keys, second)
            return False, self._decoded(first), self._decoded(second)
        except Exception:  # noqa: BLE001 - whatever a serializer raises, the plain operations know what to do
            return None

    def take(
        self, lease: tuple[str, str, int], gate_key: str, entry_key: str, precondition: Precondition
    ) -> tuple[bool, Any, Any] | Unmet | None:
        """Take the lease, given as key, value and seconds, if nobody has it and the precondition is met.

        Returns (whether it is ours, gate, entry), or what is there instead of what was to be met; None also where that
        cannot be decoded.
        """
        lease_key, owner, life = lease
        keys, expected = precondition
        said = self._run(_TAKE, (lease_key, gate_key, entry_key, *keys), (self._encode(owner), life, *(expected or ())))
        if said is None:
            return None
        first, second = said
        try:
            if first == _UNMET:
                return self._unmet(keys, second)
            gate, entry = map(self._decoded, second)
        except Exception:  # noqa: BLE001 - whatever a serializer raises, the plain operations know what to do
            return None
        return first == _DONE, gate, entry

    def keep(
        self, gate_key: str, token: str, entry: tuple[str, Any, int], gate_life: int, lease_key: str | None
    ) -> bool | None:
        """Write an entry (key, value, seconds) if the gate holds that very token, and delete the lease.

        The gate gets a new life of ``gate_life`` seconds, unless that is 0. Returns whether all that was done.
        """
        entry_key, value, life = entry
        keys = (gate_key, entry_key) if lease_key is None else (gate_key, entry_key, lease_key)
        try:
            values = self._encode(token), self._encode(value), life, gate_life
        except Exception:  # noqa: BLE001 - whatever a serializer raises: that says nothing about the gate
            return None
        said = self._run(_KEEP, keys, values)
        if said == _DONE:
            return True
        # Another token, or the same one as another version of a serializer writes it: the plain operations will see.
        return False if said is None and not self.are_refused else None

    def _decoded(self, value: bytes | None) -> Any:
        return None if value is None else self._decode(value)

    def _unmet(self, keys: Sequence[str], values: Sequence[bytes | None]) -> Unmet:
        held = zip(keys, values, strict=True)
        found = {key: self._decode(value) for key, value in held if value is not None}
        return Unmet(tuple(value or b"" for value in values), found)

    def _run(self, text: str, keys: Sequence[str], values: Sequence[Any]) -> Any:
        if self.are_refused:
            return None
        words = (len(keys), *map(self._make_key, keys), *values)
        client = self._client()
        try:
            return _evaluated(client, text, words)
        except Exception as error:
            if _OTHER_SLOT in str(error):
                self.takes_any_keys = False
            elif type(error).__name__ in _REFUSALS and not _PASSING.search(str(error)):
                self.are_refused = True
            else:
                raise
            return None


def _evaluated(client: Any, text: str, words: Sequence[Any]) -> Any:
    try:
        return client.execute_command("EVALSHA", _digests[text], *words)
    except Exception as error:
        if type(error).__name__ != "NoScriptError":
            raise
    return client.execute_command("EVAL", text, *words)


_NO_PRECONDITION = Precondition((), None)
_digests = {text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest() for text in (_PUT_UP, _TAKE, _KEEP)}
