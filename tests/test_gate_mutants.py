"""Would the machine notice if a rule of the gate protocol were missing? Mutants, each of which it objects to.

Each has a short history that is fine with the protocol as it is. ``GATE_MACHINE_EXAMPLES=1`` also lets the machine
search for one by itself, which takes minutes.
"""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import pytest
from hypothesis.stateful import run_state_machine_as_test

from catalog_fallback import boarding, cache, classify, filling, flights, publishing, trips
from tests.test_gate_machine import STARTS, GateMachine, hypothesis_settings


@contextmanager
def mutated(owner: Any, name: str, old: str, new: str) -> Iterator[None]:
    """Run with one function of the package rewritten; what is to be rewritten has to be there."""
    function = inspect.getattr_static(owner, name)
    module = inspect.getmodule(function)
    source = textwrap.dedent(inspect.getsource(function))
    assert old in source, f"{name}() has changed: the mutant has to keep in step"
    source = source.replace(old, new)
    made: dict[str, Any] = {}
    exec(compile(source, f"<mutant of {name}>", "exec"), vars(module), made)  # noqa: S102 - our own code
    with mock.patch.object(owner, name, made[name]):
        yield


Change = tuple[Any, str, str, str]
#: What is taken away → where, the text that goes, and what comes instead.
MUTANTS: dict[str, list[Change]] = {
    "the tie between gate and entry": [(cache, "decode", "token != gate or ", "")],
    "the entry's own name": [(cache, "decode", " or stored_name != name", "")],
    "the second look after winning the flight": [
        (flights, "_fly", "lookup = from_entry(fill, kept, seen)", "lookup = None")
    ],
    "reading back": [(publishing, "_write_gates", "if found.get(key) == tokens[key]", "")],
    "asking the database again after the write": [
        (publishing, "_publish_part", "after = _state(catalog, left)", "after = before")
    ],
    "asking the database on a miss": [
        (filling.Fill, "refused", "is_stopped = stop_list.is_stopped(self.query)", "is_stopped = False")
    ],
    "the mark, for those who see an old stop list": [(filling.Fill, "refused", "is_marked(gate)", "False")],
    "that what an old view fetched is unchecked": [
        (filling.Fill, "_settle", "is_checked=not self.is_old_view", "is_checked=True")
    ],
    "that an old view owns no flight": [(trips, "board", "fill.is_old_view or ", "")],
    "the gate's token in the flight's name": [
        (trips, "join", "(fill.query.entry_key, kept.gate)", "(fill.query.entry_key, '')"),
        (trips, "under_way", "(fill.query.entry_key, kept.gate)", "(fill.query.entry_key, '')"),
        (trips, "land", "kept.gate or ", ""),
        (boarding, "_join", "(fill.query.entry_key, gate)", "(fill.query.entry_key, '')"),
        (boarding, "_board_under_new_gate", "fill.query.entry_key, token", "fill.query.entry_key, ''"),
        (boarding.Boarding, "_name", "self.gate or ", ""),
    ],
    "the lease": [(flights, "take_lease", "lease is not False", "True")],
    "a new token for each publish": [(publishing, "_write_gates", "new_token(", "'o' + '0' * 32 or new_token(")],
    "that a failure is not taken for an answer": [
        (classify, "conclude", "attempt.outcome is Outcome.NOT_FOUND", "attempt.outcome is not Outcome.FOUND")
    ],
}
Steps = list[tuple[Any, ...]]
LOOK, AT_ONCE = ("look_up", "P1", "", 0, 9, 9, False), ("look_up", "P1", "", 0, 9, 9, True)
OLD_LOOK, OLD_AT_ONCE = ("look_up", "P1", "", 0, 0, 9, False), ("look_up", "P1", "", 0, 0, 9, True)
ELSEWHERE_AT_ONCE = ("look_up", "P1", "", 1, 9, 9, True)
STOP, FORGET = ("change", "stop", "P1", 9, True), ("change", "invalidate", "P1", 9, True)
NOTHING, KEPT, BEHIND = (("begin", start) for start in STARTS)
#: The short history in which each of them breaks a promise, and which one.
HISTORIES: dict[str, tuple[str, Steps]] = {
    "the tie between gate and entry": ("I2", [KEPT, FORGET, AT_ONCE]),
    "the entry's own name": ("I7", [KEPT, ("poison", 1, 0), ("look_up", "P1", "de", 0, 9, 9, True)]),
    "the second look after winning the flight": (
        "second fetch",
        [NOTHING, LOOK, ("run", 0, "flight"), AT_ONCE, ("finish", 0, "well")],
    ),
    "reading back": ("I2", [KEPT, ("change", "invalidate", "P1", 9, False), ("finish", 0, "lost"), AT_ONCE]),
    "asking the database again after the write": (
        "the mark",
        [NOTHING, ("change", "invalidate", "P1", 9, False), ("run", 0, "cache.set_many"), STOP, ("finish", 0, "well")],
    ),
    "asking the database on a miss": ("I1", [NOTHING, STOP, AT_ONCE]),
    "the mark, for those who see an old stop list": (
        "I1",
        [NOTHING, ("begin_transaction", 0, 0), STOP, OLD_AT_ONCE],
    ),
    "that what an old view fetched is unchecked": ("I1", [BEHIND, OLD_AT_ONCE, AT_ONCE]),
    "that an old view owns no flight": (
        "I1",
        [BEHIND, OLD_LOOK, ("run", 0, "source.body"), LOOK, ("run", 1, "the end"), ("finish", 0, "well")],
    ),
    "the gate's token in the flight's name": (
        "I2",
        [NOTHING, LOOK, ("run", 0, "cache.set"), FORGET, LOOK, ("run", 1, "the end"), ("finish", 0, "well")],
    ),
    "the lease": ("two fetches", [NOTHING, LOOK, ("run", 0, "source.body"), ELSEWHERE_AT_ONCE]),
    "a new token for each publish": ("I2", [NOTHING, FORGET, AT_ONCE, FORGET, AT_ONCE]),
    "that a failure is not taken for an answer": ("UNKNOWN", [NOTHING, ("upstream_changes", 2, 0), AT_ONCE]),
}


def replay(steps: Steps) -> None:
    """One history, with all the judges of the machine."""
    machine = GateMachine()
    try:
        for name, *arguments in steps:
            getattr(machine, name)(*arguments)
    finally:
        machine.teardown()


@pytest.mark.parametrize("missing", MUTANTS)
def test_without_it_a_promise_is_broken(missing: str) -> None:
    """The history is fine with the protocol as it is, and a judge objects to it without this one rule."""
    objection, steps = HISTORIES[missing]
    replay(steps)
    with mutants(missing), pytest.raises(AssertionError, match=objection):
        replay(steps)


@pytest.mark.skipif("GATE_MACHINE_EXAMPLES" not in os.environ, reason="searching for all of them takes minutes")
@pytest.mark.parametrize("missing", MUTANTS)
def test_the_machine_finds_out(missing: str) -> None:
    """Without this rule the search comes to a history that a judge objects to."""
    with mutants(missing), pytest.raises(AssertionError, match=r"I\d|second fetch|two fetches|UNKNOWN|the mark"):
        run_state_machine_as_test(GateMachine, settings=hypothesis_settings(5000))


@contextmanager
def mutants(missing: str) -> Iterator[None]:
    """Everything that has to be rewritten to take a rule away."""
    with ExitStack() as stack:
        for change in MUTANTS[missing]:
            stack.enter_context(mutated(*change))
        yield
