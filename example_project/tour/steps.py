"""What does the tour show? One row a step: what is done, what is asked, what has to come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tour.visitor import Facts, Visitor

Act = Callable[[Visitor], Facts]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to see. ``acts`` are done in order; the facts that they bring must hold ``expect``."""

    title: str
    acts: tuple[Act, ...]
    expect: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a step did and brought, and the sentences that say what was wrong with it."""

    step: Step
    done: tuple[str, ...]
    facts: Facts
    complaints: tuple[str, ...]


def take(steps: Iterable[Step], visitor: Visitor) -> Iterator[Shown]:
    """Do the steps one after the other."""
    for step in steps:
        visitor.done.clear()
        facts: Facts = {}
        for act in step.acts:
            facts |= act(visitor)
        yield Shown(step, tuple(visitor.done), facts, tuple(complaints(step.expect, facts)))


def complaints(expect: Mapping[str, Any], facts: Facts) -> Iterator[str]:
    """What is not as expected; a function as expectation is asked whether the value will do."""
    for name, wanted in expect.items():
        got = facts.get(name)
        if callable(wanted) and not wanted(got):
            yield f"{name}: expected {wanted.__doc__}, got {got!r}"
        elif not callable(wanted) and wanted != got:
            yield f"{name}: expected {wanted!r}, got {got!r}"


# ------------------------------------------------------------------------------------------------ acts


def look_up(item_id: str, catalog: str = "default") -> Act:
    """Look up over HTTP."""
    return lambda visitor: visitor.look_up(item_id, catalog)


def lookup_item(item_id: str, catalog: str = "default") -> Act:
    """Look up with the command."""
    return lambda visitor: visitor.look_up_by_command(item_id, catalog)


def hammer(item_id: str) -> Act:
    """Press the button that sends 50 callers at once."""
    return lambda visitor: visitor.hammer(item_id)


def press(action: str, item_id: str) -> Act:
    """Press a button of the page about an item."""
    return lambda visitor: visitor.press(action, item_id)


def fault(catalog: str, name: str) -> Act:
    """Break or mend a simulated catalog."""

    def act(visitor: Visitor) -> Facts:
        visitor.switch(catalog, name)
        return {}

    return act


def command(*arguments: str) -> Act:
    """Run a command, which has to succeed."""

    def act(visitor: Visitor) -> Facts:
        exit_code, output = visitor.command(*arguments)
        return {"command": "done" if exit_code == 0 else f"exit code {exit_code}: {output.strip()[-500:]}"}

    return act


def notice(item_id: str, type_: str) -> Act:
    """Post a signed notice to the site, as the catalog's owner would."""
    return lambda visitor: command(
        "send_test_notice", f"{visitor.stage.site}/catalog/default/notices/", item_id, "--type", type_
    )(visitor)


def within_budget(seconds: float | None) -> bool:
    """at most 3.5 seconds (BUDGET is 3)"""
    return seconds is not None and seconds < 3.5


# ------------------------------------------------------------------------------------------------ the tour

STEPS = (
    Step(
        "The first source has it, so nobody else is asked",
        (look_up("P001"),),
        {"state": "found", "source": "primary", "cache": "miss", "asked": ["primary found"], "calls": 1},
    ),
    Step(
        "The second time the answer comes from the cache: no call",
        (look_up("P001"),),
        {"state": "found", "source": "primary", "cache": "hit", "asked": [], "calls": 0},
    ),
    Step(
        "The first source has no such item, so the second one is asked",
        (look_up("P002"),),
        {"state": "found", "source": "secondary", "asked": ["primary not_found", "secondary found"]},
    ),
    Step(
        "Both say that there is no such item: not found",
        (look_up("P404"),),
        {
            "state": "not_found",
            "asked": ["primary not_found", "secondary not_found"],
        },
    ),
    Step(
        "A real book by its ISBN, with a command: openBD knows it",
        (lookup_item("9784063879179", "books"),),
        {"state": "found", "source": "openbd", "name": "甘々と稲妻（1）", "asked": ["openbd found"], "exit": 0},
    ),
    Step(
        "A French book: openBD does not know it, Open Library does",
        (look_up("978-2-07-046423-4", "books"),),
        {"state": "found", "source": "open_library", "asked": ["openbd not_found", "open_library found"]},
    ),
    Step(
        "The first source is down: the second one still helps",
        (fault("primary", "down"), look_up("P004")),
        {"state": "found", "source": "secondary", "asked": ["primary temporary", "secondary found"]},
    ),
    Step(
        "Down, and the second one has no such item: could not find out, which is not 'not found'",
        (look_up("P404"),),
        {
            "state": "unavailable",
            "reason": "incomplete_search",
            "asked": ["primary temporary", "secondary not_found"],
        },
    ),
    Step(
        "Slow: a call ends at its limit, and the lookup inside its budget",
        (fault("primary", "slow"), look_up("P404")),
        {"state": "unavailable", "asked": ["primary temporary", "secondary not_found"], "seconds": within_budget},
    ),
    Step(
        "Garbage: something is wrong that another source must not paper over",
        (fault("primary", "garbage"), look_up("P005")),
        {"state": "unavailable", "reason": "invalid_json", "asked": ["primary stop"]},
    ),
    Step(
        "Healthy again: the same item is found",
        (fault("primary", "ok"), look_up("P005")),
        {"state": "found", "source": "primary", "asked": ["primary found"]},
    ),
    Step(
        "50 callers at the same moment, and the catalog needs 0.3 seconds: it is called once",
        (fault("primary", "lag"), hammer("P001"), fault("primary", "ok")),
        {"callers": 50, "states": {"found": 50}, "total": 1, "calls": 1},
    ),
    Step(
        "The same while nobody can answer: one search, and everybody is told that it could not find out",
        (fault("primary", "slow"), fault("secondary", "503"), hammer("P404")),
        {"callers": 50, "states": {"unavailable": 50}, "calls": 2},
    ),
    Step(
        "Healthy again: the item is in the cache since the 50 callers",
        (fault("primary", "ok"), fault("secondary", "ok"), look_up("P001")),
        {"state": "found", "source": "primary", "cache": "hit", "calls": 0},
    ),
    Step(
        "A command in another process forgets the kept answer: it is fetched anew",
        (command("invalidate_item", "P001"), look_up("P001")),
        {"command": "done", "state": "found", "cache": "miss", "asked": ["primary found"]},
    ),
    Step(
        "The item is withdrawn: stopped, and nobody is called, although it was in the cache",
        (command("invalidate_item", "P001", "--stop", "legal"), look_up("P001")),
        {
            "command": "done",
            "state": "stopped",
            "name": None,
            "asked": [],
            "calls": 0,
        },
    ),
    Step(
        "The whole cache is lost: the item is still stopped, as the stop list is in the database",
        (press("flush", "P001"), look_up("P001")),
        {"state": "stopped", "name": None, "asked": [], "calls": 0},
    ),
    Step(
        "A command says the same of it",
        (lookup_item("P001"),),
        {"state": "stopped", "name": None, "calls": 0, "exit": 6},
    ),
    Step(
        "Released: it is found again",
        (command("invalidate_item", "P001", "--release"), look_up("P001")),
        {"command": "done", "state": "found", "source": "primary", "asked": ["primary found"]},
    ),
    Step(
        "The catalog's owner says so in a signed notice over HTTP: stopped",
        (look_up("P005"), notice("P005", "item.stopped"), look_up("P005")),
        {"command": "done", "state": "stopped", "name": None, "asked": [], "calls": 0},
    ),
    Step(
        "Another notice brings it back",
        (notice("P005", "item.released"), look_up("P005")),
        {"command": "done", "state": "found"},
    ),
)
