"""Is the source out of order? Closed, open, half-open: one state for all processes, in the store.

::

    closed ── a rule of failure_counts is met ──► open ── its key expires, somebody calls ──► half-open
       ▲                                           ▲                                            │
       │                                           └────── one probe fails: twice as long ──────┤
       └────────────────────────── SUCCESSES_TO_CLOSE probes succeed ───────────────────────────┘

The state is the end of a chain (``generations``). While it is *open*, a key named by generation lives: the store's
clock decides when it ends. A call carries the generation under which it was let through, and what it has to say
counts only in that generation. Nothing here holds a lock while it talks to a store or a listener.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog_fallback import clock
from catalog_fallback.configuration import BreakerConfig
from catalog_fallback.resilience.breaker_news import BreakerNews, OnChange
from catalog_fallback.resilience.breaker_permit import LATE, BreakerPermit
from catalog_fallback.resilience.breaker_record import BreakerState, Record, record_of
from catalog_fallback.resilience.failure_counts import FailureCounts
from catalog_fallback.resilience.generations import FIRST, ROOT, Generations, Link
from catalog_fallback.resilience.keys import Names, token
from catalog_fallback.resilience.probe_slots import MARGIN, ProbeSlots, Slot
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.store import Store, count
from catalog_fallback.resilience.views import read

#: Shortest life of a record.
_HOUR = 3600.0
#: How often a call follows a state that changes under it, and how often a reset tries again.
_ROUNDS = 8
#: When to come back if all probes are under way.
_SOON = 1.0


class CircuitBreaker:
    """The circuit breaker of one source in one store. Making one writes nothing."""

    def __init__(
        self,
        config: BreakerConfig,
        store: Store,
        names: Names,
        *,
        call_limit: float,
        on_change: OnChange | None = None,
    ) -> None:
        self._config = config
        self._store = store
        self._news = BreakerNews(names, on_change)
        self._head = names.key("breaker")
        self._life = max(_HOUR, 2 * config.max_open_for, 2 * config.open_for)
        self._chain = Generations(store, self._head, self._life, self._keys_that_count)
        self._counts = FailureCounts(config, store, self._head)
        self._slots = ProbeSlots(store, self._head, config.half_open_calls, min(call_limit, LATE) + MARGIN)
        #: Results of this process that came too late to count.
        self.late_results = 0
        #: The link that was read last, and what it says.
        self._read_last: tuple[Link, Record] = ROOT, record_of(ROOT)

    def keys(self) -> tuple[str, ...]:
        """Return the keys that a look needs, if nothing has changed since the last one."""
        return self._chain.keys()

    def more_keys(self, found: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the keys that it needs as well, where something has changed."""
        return self._chain.more_keys(found)

    def remember(self, found: Mapping[str, Any]) -> None:
        """Keep where the chain ended; say so if the store has lost it."""
        if self._store.is_paused:
            return
        before = self._chain.last
        self._chain.remember(found)
        if self._chain.last["g"] != FIRST or before["g"] == FIRST:
            return
        self._news.is_lost(record_of(before))

    def record(self, found: Mapping[str, Any]) -> Record:
        """Return the state; takes no permit. An open record whose time is over stays until somebody calls."""
        end = self._chain.end(found)
        link, record = self._read_last
        if link is not end:
            record = record_of(end)
            self._read_last = end, record
        return record

    def is_open(self, record: Record, found: Mapping[str, Any]) -> bool:
        """Whether no call at all is let through."""
        return record.state is BreakerState.OPEN and self._open_key(record.generation) in found

    def look(self, found: Mapping[str, Any]) -> Refusal | None:
        """Return the refusal that a call would meet now; takes nothing."""
        record = self.record(found)
        if self.is_open(record, found):
            left = record.since + record.open_for - clock.wall()
            return Refusal("circuit_open", min(max(0.0, left), record.open_for))
        if record.state is BreakerState.HALF_OPEN and self._slots.are_taken(record.generation, found):
            return Refusal("circuit_open", _SOON)
        return None

    def take(self, found: Mapping[str, Any]) -> BreakerPermit | Refusal | None:
        """Let one call through, if the state allows it; None when the store cannot tell."""
        for _ in range(_ROUNDS):
            record = self.record(found)
            if record.state is BreakerState.CLOSED:
                has_run = self._counts.are_in_a_row(record.generation, found)
                return BreakerPermit(record.generation, clock.monotonic(), has_run=has_run)
            if refusal := self.look(found):
                return refusal
            if record.state is BreakerState.HALF_OPEN:
                return self._take_slot(record, found)
            if self._change(record, BreakerState.HALF_OPEN, record.reason, record.open_for) is None:
                return None
            found = self._read()
        return Refusal("circuit_open", _SOON)

    def succeed(self, permit: BreakerPermit) -> None:
        """The source answered."""
        if permit.slot is not None:
            self._probe_succeeded(permit, permit.slot)
        elif permit.is_late or permit.generation != self._chain.last["g"]:
            self._drop(permit)
        elif rule := self._counts.succeeded(permit.generation, has_run=permit.has_run):
            self._open(permit, self._read(), rule)

    def fail(self, permit: BreakerPermit) -> bool:
        """The source failed. Returns False when the store could not take it."""
        found = self._read()
        if self._store.is_paused:
            return False
        if permit.slot is not None:
            self._open(permit, found, "probe_failed")
            self._slots.give_back(permit.slot)
        elif self._is_outdated(permit, found):
            self._drop(permit)
        else:
            rule = self._counts.failed(permit.generation, found)
            if rule is None:
                return False
            if rule:
                self._open(permit, found, rule)
        return True

    def cancel(self, permit: BreakerPermit) -> None:
        """The call proved nothing."""
        if permit.slot is not None:
            self._slots.give_back(permit.slot)

    def permit_now(self) -> BreakerPermit:
        """Return a permit of the generation that is now: for a result whose own store could not take it."""
        return BreakerPermit(self.record(self._read()).generation, clock.monotonic())

    def reset(self) -> bool:
        """Close it and start counting anew, whatever others do meanwhile. False when the store cannot tell."""
        for _ in range(_ROUNDS):
            is_mine = self._change(self.record(self._read()), BreakerState.CLOSED, "reset", 0.0)
            if is_mine is not False:
                return is_mine is True
        return False

    # ------------------------------------------------------------------------------------------ within

    def _take_slot(self, record: Record, found: Mapping[str, Any]) -> BreakerPermit | Refusal | None:
        slot = self._slots.take(record.generation, found)
        if slot is None:
            return None
        if not isinstance(slot, Slot):
            return Refusal("circuit_open", _SOON)
        permit = BreakerPermit(record.generation, clock.monotonic(), slot)
        if not self._is_outdated(permit, self._read()):
            return permit
        # The slot was free because the round of probes is over: the state has changed meanwhile.
        self._slots.give_back(slot)
        return Refusal("circuit_open", _SOON)

    def _probe_succeeded(self, permit: BreakerPermit, slot: Slot) -> None:
        found = self._read()
        if self._is_outdated(permit, found):
            self._drop(permit)
        elif self._are_enough(permit.generation):
            self._change(self.record(found), BreakerState.CLOSED, "probes_succeeded", 0.0)
        self._slots.give_back(slot)

    def _are_enough(self, generation: str) -> bool:
        needed = self._config.successes_to_close
        if needed <= 1:
            return True
        return (count(self._store, f"{self._head}:succeeded:{generation}", 1, self._life) or 0) >= needed

    def _open(self, permit: BreakerPermit, found: Mapping[str, Any], reason: str) -> None:
        """Open it from the permit's generation, and from no other."""
        if self._is_outdated(permit, found):
            self._drop(permit)
            return
        record, config = self.record(found), self._config
        open_for = config.open_for
        if record.state is BreakerState.HALF_OPEN:
            open_for = min(2 * record.open_for, max(config.max_open_for, config.open_for))
        self._change(record, BreakerState.OPEN, reason, open_for)

    def _change(self, old: Record, state: BreakerState, reason: str, open_for: float) -> bool | None:
        """Make a new record follow the old one. True: done; False: others were faster; None: the store cannot tell."""
        since = old.since if state is BreakerState.HALF_OPEN else clock.wall()
        new = Record(token(), state, since, open_for, reason)
        if state is BreakerState.OPEN and self._store.add(self._open_key(new.generation), 1, open_for) is None:
            return None
        successor = self._chain.follow(old.generation, new.as_link())
        if successor is None:
            return None
        if successor.is_mine:
            self._news.has_changed(old.state, new)
        return successor.is_mine

    def _drop(self, permit: BreakerPermit) -> None:
        self.late_results += 1
        self._news.is_late(permit)

    def _is_outdated(self, permit: BreakerPermit, found: Mapping[str, Any]) -> bool:
        return permit.is_late or permit.generation != self.record(found).generation

    def _read(self) -> Mapping[str, Any]:
        return read(self._store, (self,)).found

    def _keys_that_count(self, link: Link) -> tuple[str, ...]:
        record = record_of(link)
        match record.state:
            case BreakerState.CLOSED:
                return self._counts.keys(record.generation)
            case BreakerState.OPEN:
                return (self._open_key(record.generation),)
            case _:
                return self._slots.keys(record.generation)

    def _open_key(self, generation: str) -> str:
        return f"{self._head}:open:{generation}"
