"""What is true of a circuit breaker at every moment, whatever happens to the store and whoever comes between?"""

from __future__ import annotations

import itertools
import logging
import secrets
from collections import Counter
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from catalog_fallback.configuration import BreakerConfig
from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.breaker_record import Record, record_of
from tests.resilience.breakers import CLOSED, HALF_OPEN, NAMES, OPEN, Process
from tests.resilience.worlds import FaultyStore, MovableClock

HEAD = NAMES.key("breaker")
PROCESSES = 3
LEASE = 7.0


class World(RuleBasedStateMachine):
    """Several simulated processes, one store, a movable clock; and what is true of them."""

    @initialize(
        by_rate=st.booleans(),
        half_open_calls=st.integers(1, 2),
        successes_to_close=st.integers(1, 2),
        is_open=st.booleans(),
    )
    def begin(self, by_rate: bool, half_open_calls: int, successes_to_close: int, is_open: bool) -> None:
        """A fresh store, processes that know nothing, or a breaker that is about to be half-open."""
        self.patch = pytest.MonkeyPatch()
        tokens = itertools.count()
        self.patch.setattr(secrets, "token_urlsafe", lambda _size: f"t{next(tokens):05}")
        self.patch.setattr(logging.getLogger("catalog_fallback"), "disabled", True)
        self.moving = MovableClock().install(self.patch)
        self.store = FaultyStore()
        self.store.on_add = self.on_add
        self.config = BreakerConfig(
            None if by_rate else 2,
            0.5 if by_rate else None,
            minimum_calls=2,
            open_for=10,
            max_open_for=40,
            half_open_calls=half_open_calls,
            successes_to_close=successes_to_close,
        )
        self.processes = [Process(self.store, self.config) for _ in range(PROCESSES)]
        self.gone: list[Process] = []
        self.views: list[Any] = [process.found() for process in self.processes]
        self.permits: list[list[BreakerPermit]] = [[] for _ in self.processes]
        self.probes: list[BreakerPermit] = []
        #: Generation → its record, and → the one that follows it.
        self.records: dict[str, Record] = {"0": Record("0")}
        self.links: dict[str, Record] = {}
        self.changes: Counter[tuple[str, str, str]] = Counter()
        self.good_probes: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.lost: set[str] = set()
        self.had_faults = False
        if is_open:
            self.make_calls(0, "FF")
            self.moving.move(10)

    # ---------------------------------------------------------------------------------------- what is true

    def truth(self) -> Record:
        """The state as the store has it."""
        contents = self.store.contents()
        link = contents.get(f"{HEAD}:hint") or {"g": "0"}
        while following := contents.get(f"{HEAD}:next:{link['g']}"):
            link = following
        return record_of(link)

    def on_add(self, key: str, value: Any) -> None:
        """A key was added: if it is a link, is it one that may be?"""
        before, _, old_generation = key.partition(":next:")
        if before != HEAD:
            return
        new = record_of(value)
        assert old_generation not in self.links or key in self.lost, "two successors of one generation"
        old = self.records[old_generation]
        self.records[new.generation] = self.links[old_generation] = new
        if old.state is not new.state:
            self.changes[str(old.state), str(new.state), new.reason] += 1
        self.check_change(old, new)

    def check_change(self, old: Record, new: Record) -> None:
        """Was there a reason for it?"""
        if new.reason == "reset":
            return
        if new.state is HALF_OPEN:
            assert old.state is OPEN
            assert f"{HEAD}:open:{old.generation}" not in self.store.contents(), "its time was not over"
        elif new.state is CLOSED:
            assert old.state is HALF_OPEN
            assert self.good_probes[old.generation] >= self.config.successes_to_close, "closed without enough probes"
        elif old.state is HALF_OPEN:
            assert self.failures[old.generation] >= 1, "reopened without a failed probe"
            assert new.open_for == min(40, 2 * old.open_for)
        else:
            assert old.state is CLOSED
            assert new.open_for == 10
            needed = 1 if self.config.consecutive_failures is None or self.store.lost_replies else 2
            assert self.failures[old.generation] >= needed, "opened without enough failures"

    @invariant()
    def never_too_many_probes(self) -> None:
        """At most HALF_OPEN_CALLS probes of one generation are under way, those of dead processes included."""
        live = Counter(
            probe.generation
            for probe in self.probes
            if probe.slot and not probe.slot.has_expired and probe.slot.key not in self.lost
        )
        assert max(live.values(), default=0) <= self.config.half_open_calls

    @invariant()
    def at_most_one_listener_is_told(self) -> None:
        """Nobody is told of a change that was not made; every change is told while no reply gets lost."""
        told = Counter(each for process in (*self.processes, *self.gone) for each in process.told)
        assert not told - self.changes
        assert self.had_faults or told == self.changes
