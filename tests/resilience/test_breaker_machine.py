"""Do breaker, slots and generations hold together, whatever happens to the store and whoever comes between?

A state machine over several simulated processes, one store and a movable clock. Before any command of one process
another may do something; commands and replies get lost, writes arrive late, keys vanish, processes die.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from catalog_fallback.resilience.breaker_permit import BreakerPermit
from catalog_fallback.resilience.circuit_breaker import CircuitBreaker
from catalog_fallback.resilience.generations import Generations
from catalog_fallback.resilience.probe_slots import ProbeSlots
from catalog_fallback.resilience.refusal import Refusal
from tests.resilience.breaker_world import HEAD, LEASE, PROCESSES, World
from tests.resilience.breakers import CLOSED, HALF_OPEN, OPEN, Process

Who = st.integers(0, PROCESSES - 1)
Result = st.sampled_from("SFFN")
#: What another process does in between: takes, or ends its oldest permit with a result.
Deed = st.tuples(Who, st.sampled_from(["take", "S", "F", "N", "reset"]))


class Breakers(World):
    """What happens in that world."""

    def take(self, who: int, view: Any) -> None:
        """Take a permit; a probe's belongs to the round that is on, however old the view."""
        answer = self.processes[who].breaker.take(view)
        if not isinstance(answer, BreakerPermit):
            return
        self.permits[who].append(answer)
        if answer.slot is not None:
            self.probes.append(answer)
            truth = self.truth()
            assert self.lost or (truth.state, truth.generation) == (HALF_OPEN, answer.generation)

    def end(self, who: int, permit: BreakerPermit, result: str) -> None:
        """End a call; what is late changes nothing."""
        if permit in self.probes:
            self.probes.remove(permit)
        before, is_disturbed = self.truth(), bool(self.store.interruptions or self.store.faults)
        is_late = permit.is_late or permit.generation != before.generation
        run = self.store.contents().get(f"{HEAD}:run:{before.generation}")
        if result == "S" and permit.slot and not permit.is_late:
            self.good_probes[permit.generation] += 1
        if result == "F":
            self.failures[permit.generation] += 1
        self.processes[who].end(permit, result)
        if is_late and not is_disturbed:
            assert self.truth() == before, "a late result changed the state"
            assert self.store.contents().get(f"{HEAD}:run:{before.generation}") == run, "a late result was counted"
        has_time = permit.slot is not None and self.moving.monotonic() < permit.slot.expires_at - 1
        if permit.slot and has_time and not is_disturbed:
            assert permit.slot.key not in self.store.contents(), "the slot was not given back"

    def end_oldest(self, who: int, result: str) -> None:
        """End the oldest call of a process, if it has one."""
        if self.permits[who]:
            self.end(who, self.permits[who].pop(0), result)

    def deed(self, who: int, what: str) -> Callable[[], None]:
        """What another process does in between."""

        def do() -> None:
            faults, self.store.faults = self.store.faults, []
            interruptions, self.store.interruptions = self.store.interruptions, []
            match what:
                case "take":
                    self.take(who, self.processes[who].found())
                case "reset":
                    self.processes[who].breaker.reset()
                case _:
                    self.end_oldest(who, what)
            self.store.faults, self.store.interruptions = faults, interruptions

        return do

    def undisturbed(self) -> None:
        """What was to disturb the last action does not disturb the next."""
        self.store.faults.clear()
        self.store.interruptions.clear()

    @rule(
        faults=st.lists(st.sampled_from(["", "", "lost", "reply", "late"]), max_size=6),
        deeds=st.lists(st.one_of(st.none(), Deed), max_size=6),
    )
    def disturb(self, faults: list[str], deeds: list[tuple[int, str] | None]) -> None:
        """Something will happen during the next action."""
        self.store.faults = faults
        self.store.interruptions = [deed and self.deed(*deed) for deed in deeds]
        self.had_faults = self.had_faults or any(faults)

    @rule(who=Who)
    def look_and_take(self, who: int) -> None:
        """A call with a fresh view; none gets through while the open key lives."""
        truth, is_disturbed = self.truth(), bool(self.store.interruptions)
        is_open = truth.state is OPEN and f"{HEAD}:open:{truth.generation}" in self.store.contents()
        before = len(self.permits[who])
        self.take(who, self.processes[who].found())
        assert is_disturbed or not is_open or len(self.permits[who]) == before, "a call got through an open breaker"
        self.undisturbed()

    @rule(who=Who)
    def take_with_an_old_view(self, who: int) -> None:
        """A call that looked long ago."""
        self.take(who, self.views[who])
        self.undisturbed()

    @rule(who=Who)
    def only_look(self, who: int) -> None:
        """A look changes nothing, and leaves the process with a view that will be old."""
        self.undisturbed()
        before = self.store.contents()
        self.views[who] = self.processes[who].found()
        refusal = self.processes[who].breaker.look(self.views[who])
        assert refusal is None or isinstance(refusal, Refusal)
        assert self.processes[who].breaker.record(self.views[who]) == self.truth()
        assert self.store.contents() == before

    @rule(who=Who, result=Result)
    def end_a_call(self, who: int, result: str) -> None:
        """The oldest call of a process ends."""
        self.end_oldest(who, result)
        self.undisturbed()

    @rule(who=Who, results=st.text("SF", min_size=1, max_size=3))
    def make_calls(self, who: int, results: str) -> None:
        """Calls one after the other."""
        for result in results:
            self.take(who, self.processes[who].found())
            if self.permits[who]:
                self.end(who, self.permits[who].pop(), result)
        self.undisturbed()

    @rule(who=Who)
    def die_and_start_anew(self, who: int) -> None:
        """A process is killed within its calls; another starts, and writes nothing."""
        before = self.store.contents()
        self.gone.append(self.processes[who])
        self.permits[who].clear()
        self.processes[who] = Process(self.store, self.config)
        assert self.store.contents() == before

    @rule(who=Who)
    def reset(self, who: int) -> None:
        """An operator closes it."""
        is_disturbed = bool(self.store.interruptions or self.store.faults)
        assert self.processes[who].breaker.reset() or is_disturbed
        assert is_disturbed or self.truth().state is CLOSED
        self.undisturbed()

    @rule(seconds=st.sampled_from([0.5, 3, 6, 8, 10, 40, 61]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.moving.move(seconds)

    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        """The store loses a key."""
        keys = sorted(self.store.contents())
        if keys and data.draw(st.integers(0, 3)) == 0:
            key = keys[data.draw(st.integers(0, len(keys) - 1))]
            self.store.evict(key)
            self.lost.add(key)

    @rule()
    def deliver(self) -> None:
        """Late writes arrive."""
        self.store.deliver()

    def teardown(self) -> None:
        """Recovery depends on time alone: once the trouble is over a working source is used again."""
        if not hasattr(self, "store"):
            return
        try:
            self.undisturbed()
            self.store.deliver()
            self.recover()
        finally:
            self.patch.undo()

    def recover(self) -> None:
        """Time passes, a new process starts, and its probes succeed."""
        self.moving.move(41 + LEASE)
        process = Process(self.store, self.config)
        for _ in range(self.config.successes_to_close):
            permit = process.permit()
            self.good_probes[permit.generation] += 1
            process.end(permit, "S")
        assert process.state is CLOSED


QUICK = settings(max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
#: For mutants: always the same trials, as many as it takes to notice, nothing kept, nothing made small.
HUNT = settings(QUICK, max_examples=3000, derandomize=True, database=None, phases=[Phase.generate])

TestBreakers = Breakers.TestCase
TestBreakers.settings = QUICK


def forget_the_generation(patch: pytest.MonkeyPatch) -> None:
    """Results count whatever generation they are of."""
    patch.setattr(CircuitBreaker, "_is_outdated", lambda self, permit, found: permit.is_late)


def keep_the_slot(patch: pytest.MonkeyPatch) -> None:
    """A probe that ends keeps its slot."""
    patch.setattr(ProbeSlots, "give_back", lambda self, slot: None)


def claim_for_seconds(patch: pytest.MonkeyPatch) -> None:
    """A change is claimed for two seconds instead of an hour."""
    follow = Generations._first

    def first(self: Generations, key: str, new: Any) -> Any:
        life, self._life = self._life, 2.0
        try:
            return follow(self, key, new)
        finally:
            self._life = life

    patch.setattr(Generations, "_first", first)


def take_the_hint(patch: pytest.MonkeyPatch) -> None:
    """The plain record is believed, the chain is not followed."""
    patch.setattr(Generations, "end", lambda self, found: found.get(f"{self._head}:hint") or {"g": "0"})


@pytest.mark.parametrize("mutate", [forget_the_generation, keep_the_slot, claim_for_seconds, take_the_hint])
def test_the_machine_notices_a_mutant(
    monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Each rule is there because leaving it out breaks something that the machine sees."""
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Breakers, settings=HUNT)
