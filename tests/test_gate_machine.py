"""Does the gate protocol hold in every order of events? A state machine that tries to break it.

``GATE_MACHINE_EXAMPLES=5000`` looks longer; ``GATE_MACHINE_SHRINK=1`` makes what it finds short.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from catalog_fallback import boarding, clock, publishing, services
from catalog_fallback.cache import entries_of
from catalog_fallback.results import Lookup, NoReply, Reply
from tests import staging, stores
from tests.gate_rules import NEVER_FOUND, Fetch, History
from tests.staging import Actor, stage

ITEMS = ("P1", "P1", "P1", "P1", "P1", NEVER_FOUND)
LANGUAGES = ("", "", "", "de")
UPSTREAMS = ("found", "not_found", "temporary", "broken", "refused", "found")
WAITS = (0.1, 6.0, 31.0, 61.0, 130.0, 4000.0)
FATES = ("well",) * 6 + staging.FATES
WHO = st.integers(0, 5)
KINDS = ("stop", "stop", "release", "invalidate")
STARTS = ("nothing is kept", "everything is kept", "stopped behind an old view")
PLACES = ("cache", "cache.add", "cache.set", "flight", "source.before", "source.body", "database")
ACCIDENTS = (
    "begin_transaction",
    "begin_transaction",
    "interrupt",
    "late_write_arrives",
    "lose_all_keys",
    "lose_key",
    "pass_time",
    "poison",
    "upstream_changes",
)


class GateMachine(RuleBasedStateMachine):
    """Lookups, publishes and accidents in any order."""

    @initialize(start=st.sampled_from(STARTS))
    def begin(self, start: str) -> None:
        self.staged = staging.staged(self.joined)
        self.clock = self.staged.__enter__()
        self.history = History(stage)
        self.outcome = "found"
        self.snapshot: staging.Rows | None = None
        stage.upstream = self.reply
        stage.on_write = self.history.judge_lives
        if start == "everything is kept":
            for language in ("", "de"):
                self.look_up("P1", language, process=0, old=9, again=9, at_once=True)
        if start == "stopped behind an old view":
            self.begin_transaction(0, 0)
            self.change("stop", "P1", old=9, at_once=True)
            self.accident("lose_all_keys", 0, 0)

    # -------------------------------------------------------------------------------------------- beginning

    @precondition(lambda self: len(self.active) < 4)
    @rule(
        item_id=st.sampled_from(ITEMS),
        language=st.sampled_from(LANGUAGES),
        process=st.sampled_from((0, 0, 0, 1)),
        old=WHO,
        again=WHO,
        at_once=st.booleans(),
    )
    def look_up(self, item_id: str, language: str, process: int, old: int, again: int, at_once: bool) -> None:
        snapshot = self.snapshot if old < 3 else None
        actor = Actor("lookup", item_id, language, snapshot, is_refresh=again == 5, process=process)
        actor.facts = {
            "began": stage.tick(),
            "wall": clock.wall(),
            "query": entries_of["default"].query(item_id, language),
            "saw_mark": self.history.is_marked(item_id),
        }
        stage.start(actor, lambda: self.ask(actor, in_batch=again == 4))
        self.go(actor, 99 if at_once else 1)

    @precondition(lambda self: len(self.active) < 4)
    @rule(kind=st.sampled_from(KINDS), item_id=st.sampled_from(ITEMS), old=WHO, at_once=st.booleans())
    def change(self, kind: str, item_id: str, old: int, at_once: bool) -> None:
        snapshot = self.snapshot if old < 2 and kind == "invalidate" else None
        actor = Actor(kind, item_id, snapshot=snapshot)

        def publish() -> None:
            if kind != "invalidate":
                stage.step("database.commit")
                self.history.commit(actor, is_stopped=kind == "stop")
            publishing.publish("default", [item_id])

        actor.facts = {"began": stage.tick()}
        stage.start(actor, publish)
        self.go(actor, 99 if at_once else 1)

    # -------------------------------------------------------------------------------------------- going on

    @precondition(lambda self: self.active)
    @rule(who=WHO, fate=st.sampled_from(FATES), steps=st.integers(1, 3))
    def step(self, who: int, fate: str, steps: int) -> None:
        self.go(self.pick(who), steps, fate)

    @precondition(lambda self: self.active)
    @rule(who=WHO, place=st.sampled_from(PLACES))
    def run(self, who: int, place: str) -> None:
        actor = self.pick(who)
        self.go(actor, 1)
        while actor.can_go and not actor.at.startswith(place):
            self.go(actor, 1)

    @precondition(lambda self: self.active)
    @rule(who=WHO, fate=st.sampled_from(FATES))
    def finish(self, who: int, fate: str) -> None:
        """To the end; the fate is that of the first write on the way."""
        actor = self.pick(who)
        while actor.can_go:
            is_write = actor.at.removeprefix("cache.") in stores.WRITES
            self.go(actor, 1, fate if is_write else "well")
            fate = "well" if is_write else fate

    # -------------------------------------------------------------------------------------------- accidents

    @rule(which=st.sampled_from(ACCIDENTS), who=WHO, other=WHO)
    def accident(self, which: str, who: int, other: int) -> None:
        """One rule for all of them: what goes well has to be more frequent."""
        self.history.is_calm &= which in {"begin_transaction", "upstream_changes"}
        getattr(self, which)(who, other)

    def begin_transaction(self, who: int, other: int) -> None:
        self.snapshot = dict(stage.rows)

    def interrupt(self, who: int, other: int) -> None:
        lookups = [actor for actor in self.active if actor.kind == "lookup"]
        if lookups:
            self.go(lookups[who % len(lookups)], 1, "interrupt")

    def pass_time(self, who: int, other: int) -> None:
        """Never in the middle of a cache operation: that would be a time-out."""
        if not any(actor.at.startswith("cache") for actor in self.active):
            self.clock.advance(WAITS[who])

    def upstream_changes(self, who: int, other: int) -> None:
        self.outcome = UPSTREAMS[who]

    def late_write_arrives(self, who: int, other: int) -> None:
        if stage.late:
            with suppress(ValueError):  # a counter that is gone meanwhile
                stage.late.pop(who % len(stage.late))()
            self.history.judge_lives("set_many")

    def lose_key(self, who: int, other: int) -> None:
        keys = sorted(stage.shelf.values)
        if keys:
            del stage.shelf.values[keys[who % len(keys)]]

    def lose_all_keys(self, who: int, other: int) -> None:
        stage.shelf.values.clear()

    def poison(self, who: int, other: int) -> None:
        """Garbage, or what was meant for another variant; never another gate, which would be one that comes back."""
        keys = sorted(key for key in stage.shelf.values if ":e:" in key)
        if keys:
            key, source = keys[who % len(keys)], keys[other % len(keys)]
            stage.shelf.values[key] = (None, stores.GARBAGE) if key == source else stage.shelf.values[source]

    # -------------------------------------------------------------------------------------------- the end

    def teardown(self) -> None:
        if not hasattr(self, "staged"):
            return
        try:
            self.land_everybody()
        finally:
            self.staged.__exit__(None, None, None)

    def land_everybody(self) -> None:
        for _ in range(600):
            if not self.active:
                break
            ready = [actor for actor in self.active if actor.can_go]
            if not ready:
                assert any(actor.at == "sleep" for actor in self.active), "all wait for a flight that nobody flies"
                stage.moves += 2
                self.clock.advance(0.5)
            else:
                self.run_to_end(ready[0])
        assert not self.active, f"never ends: {self.active}"
        assert len(boarding.table) == 0, "a flight never landed"
        self.history.judge_marks()

    # -------------------------------------------------------------------------------------------- how it is done

    @staticmethod
    def ask(actor: Actor, *, in_batch: bool) -> Lookup:
        arguments: Any = {"language": actor.language, "refresh": actor.is_refresh}
        if in_batch:
            return services.find_items([actor.item_id], **arguments)[actor.item_id]
        return services.find_item(actor.item_id, **arguments)

    @property
    def active(self) -> list[Actor]:
        return [actor for actor in stage.actors if not actor.is_done]

    def pick(self, who: int) -> Actor:
        return self.active[who % len(self.active)]

    def run_to_end(self, actor: Actor) -> None:
        while actor.can_go:
            self.go(actor, 1)

    def go(self, actor: Actor, steps: int, fate: str = "well") -> None:
        for _ in range(steps):
            if not actor.can_go:
                return
            self.history.is_calm &= fate == "well"
            if fate != "well":
                actor.facts |= {"had_trouble": True, "saw_mark": False}
            stage.resume(actor, fate)
            self.watch()
            if actor.is_done:
                self.history.ended(actor)
            fate = "well"

    def watch(self) -> None:
        """Note what the judges want to know and nobody can tell afterwards."""
        is_paused = entries_of["default"].store.is_paused
        for actor in self.active:
            if is_paused:
                actor.facts["had_trouble"] = True
            if is_paused or not self.history.is_marked(actor.item_id):
                actor.facts["saw_mark"] = False
            if actor.at == "source.body" and not actor.facts.get("was_judged"):
                actor.facts["was_judged"] = True
                self.history.judge_send(actor)

    def reply(self, actor: Actor) -> Reply | NoReply:
        self.clock.advance(0.001)
        outcome = "not_found" if actor.item_id == NEVER_FOUND and self.outcome == "found" else self.outcome
        sent = actor.facts["sent"][-1]
        self.history.fetches.append(Fetch(sent, clock.wall(), outcome, actor.item_id, actor.language))
        if outcome == "found":
            return staging.item_reply(actor, sent=sent)
        if outcome == "not_found":
            return Reply(200, {}, json.dumps({"item": None}).encode())
        return {"temporary": NoReply("timeout"), "broken": Reply(503), "refused": Reply(403)}[outcome]

    def joined(self, actor: Actor, name: Any) -> None:
        actor.facts |= {"flight": name, "usable": self.history.usable(actor)}


def hypothesis_settings(examples: int, **more: Any) -> settings:
    """Shrinking takes minutes: ask for it when a failure is to be understood."""
    shrink = [Phase.shrink] if os.environ.get("GATE_MACHINE_SHRINK") else []
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        database=None,
        phases=[Phase.generate, *shrink],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        **more,
    )


def test_the_gate_protocol_holds() -> None:
    """I1 to I8 hold in every order of events that was tried."""
    run_state_machine_as_test(
        GateMachine, settings=hypothesis_settings(int(os.environ.get("GATE_MACHINE_EXAMPLES", "150")))
    )
