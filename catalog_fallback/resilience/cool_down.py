"""Did the source ask to be left alone? A cool-down that all processes see, and that is only ever extended."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from catalog_fallback import clock
from catalog_fallback.log_events import fields
from catalog_fallback.resilience.generations import FIRST, Generations, Link
from catalog_fallback.resilience.keys import Names, token
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.store import Store
from catalog_fallback.resilience.views import read
from catalog_fallback.results import Outcome

logger = logging.getLogger("catalog_fallback")

#: Longest cool-down, and that of a 429 which names none, in seconds.
LONGEST = 3600.0
UNNAMED = 30.0
_LINK_LIFE = 2 * LONGEST
#: How often a process tries to extend what others are extending at the same time.
_ROUNDS = 20
#: Replies that come within so many seconds ask for one cool-down (``Retry-After`` counts in whole ones).
_AT_ONCE = 0.1
_KINDS = (Outcome.STOP, Outcome.TEMPORARY)
_YEAR_10000 = 253_402_300_800


class CoolDown:
    """The cool-down of one source in one store.

    Each link of the chain holds a moment for each kind: until when calls are refused as a ``stop`` (after a 429), and
    until when as ``temporary`` (after a 503). It is in force as long as a key of its own lives: the store's clock
    decides, the moments are for people and for telling the kinds apart.
    """

    def __init__(self, store: Store, names: Names) -> None:
        self._store = store
        self._names = names
        self._head = names.key("cool")
        self._chain = Generations(store, self._head, _LINK_LIFE, self._keys_that_count)

    def keys(self) -> tuple[str, ...]:
        """Return the keys that a look needs, if nothing has changed since the last one."""
        return self._chain.keys()

    def more_keys(self, found: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the keys that it needs as well, where something has changed."""
        return self._chain.more_keys(found)

    def remember(self, found: Mapping[str, Any]) -> None:
        """Keep where the chain ended."""
        if not self._store.is_paused:
            self._chain.remember(found)

    def look(self, found: Mapping[str, Any]) -> Refusal | None:
        """Return the refusal that a call would meet now; takes nothing."""
        end = self._chain.end(found)
        until = self._until(end, found) if end["g"] != FIRST else None
        if not until:
            return None
        now = clock.wall()
        stop, temporary = (until.get(kind, 0.0) for kind in _KINDS)
        kind = Outcome.STOP if stop > now or stop >= temporary else Outcome.TEMPORARY
        return Refusal("cooling_down", min(max(0.0, max(stop, temporary) - now), LONGEST), kind)

    def start(self, seconds: float, kind: Outcome, reason: str = "") -> None:
        """Leave the source alone for so long, at most an hour; what is in force already is never shortened.

        ``kind`` is what a refusal will mean: STOP or TEMPORARY. Whoever begins one logs it under the ``reason``; with
        none, nobody does.
        """
        if not seconds > 0:
            return
        now = clock.wall()
        wanted = now + min(seconds, LONGEST)
        for _ in range(_ROUNDS):
            found = read(self._store, (self,)).found
            end = self._chain.end(found)
            until = self._until(end, found)
            if until.get(kind, 0.0) >= wanted - _AT_ONCE:
                return
            is_mine = self._extend(end, {**until, kind: wanted}, now)
            if is_mine and reason and not until:
                self._tell(reason, wanted - now)
            if is_mine is not False:
                return

    def _tell(self, reason: str, seconds: float) -> None:
        about = self._names.as_fields()
        logger.warning(
            "%s asked to be left alone for %.0f s (%s).",
            self._names,
            seconds,
            reason,
            extra=fields("cool_down_started", **about, old="ready", new="cooling_down", reason=reason, seconds=seconds),
        )

    def _extend(self, end: Link, until: Mapping[Outcome, float], now: float) -> bool | None:
        """Make a longer one follow. True: done; False: others were faster; None: the store cannot tell."""
        generation = token()
        link = {"g": generation, "until": {str(kind): moment for kind, moment in until.items()}}
        if self._store.add(self._in_force(generation), 1, min(max(until.values()) - now, LONGEST)) is None:
            return None
        successor = self._chain.follow(end["g"], link)
        return None if successor is None else successor.is_mine

    def _until(self, link: Link, found: Mapping[str, Any]) -> dict[Outcome, float]:
        until = link.get("until")
        if not isinstance(until, dict) or self._in_force(link["g"]) not in found:
            return {}
        return {kind: until[kind] for kind in _KINDS if _is_moment(until.get(kind))}

    def _keys_that_count(self, link: Link) -> tuple[str, ...]:
        return () if link["g"] == FIRST else (self._in_force(link["g"]),)

    def _in_force(self, generation: str) -> str:
        return f"{self._head}:on:{generation}"


def _is_moment(value: Any) -> bool:
    """Whether that can be the end of a cool-down: no text, no NaN, nothing that a float cannot hold."""
    return isinstance(value, (int, float)) and 0 <= value < _YEAR_10000
