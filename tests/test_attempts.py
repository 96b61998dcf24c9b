"""When is a source asked again in one lookup? Only where ATTEMPTS says so, after ``temporary``, inside the budget."""

from __future__ import annotations

import pytest

from catalog_fallback import clock
from catalog_fallback.calling import longest_pause
from catalog_fallback.fallback import chain_of
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import NoReply
from tests import loopback as wire
from tests.guard_scenes import EASY, caller, no_jitter, over_memory, refuse, trace
from tests.scripted import PATH, Programmed
from tests.sites import ALSO_FOUND, FOUND, NOT_FOUND, STOP, TEMPORARY, MovableClock, Site, words

Bounds = list[tuple[float, float]]


@pytest.fixture
def jitter(monkeypatch: pytest.MonkeyPatch) -> Bounds:
    """Every pause is the longest it may be; the bounds that were asked for."""
    return no_jitter(monkeypatch)


def test_every_attempt_is_in_the_trace_and_the_last_one_counts(
    site: Site, moving: MovableClock, jitter: Bounds
) -> None:
    """Two failures, then an answer; the second source is not asked."""
    site.configure({"ATTEMPTS": 3})
    site.primary.on_id("P001", TEMPORARY, wire.close_before_head, FOUND)
    assert trace(site.find()) == [
        ("primary", "temporary", "http_503", True),
        ("primary", "temporary", "connection_lost", True),
        ("primary", "found", "ok", True),
    ]
    assert (site.calls, jitter) == ((3, 0), [(0.0, 0.1), (0.0, 0.2)])


def test_one_attempt_is_one_call(site: Site) -> None:
    """The default: nothing is asked twice."""
    site.say(TEMPORARY, TEMPORARY)
    site.find()
    assert site.calls == (1, 1)


@pytest.mark.parametrize(
    "script", [STOP, NOT_FOUND, wire.reply(429), wire.ok(b"garbage")], ids=["403", "no", "429", "?"]
)
def test_only_temporary_is_tried_again(site: Site, jitter: Bounds, script: wire.Script) -> None:
    """After a stop, a "no such item" or a 429 nobody asks the same again."""
    site.configure({"ATTEMPTS": 3})
    site.say(script, ALSO_FOUND)
    site.find()
    assert (site.calls[0], jitter) == (1, [])


@pytest.mark.parametrize("reason", ["bulkhead_full", "isolated", "circuit_open"])
def test_a_refusal_is_not_tried_again(site: Site, jitter: Bounds, reason: str) -> None:
    """A guard says the same a moment later; the trace has it once."""
    site.configure({**EASY, "ATTEMPTS": 3})
    site.say(FOUND, ALSO_FOUND)
    refuse("primary", reason)
    assert [attempt.source for attempt in site.find().trace] == ["primary", "secondary"]
    assert jitter == []


def test_a_source_that_asked_to_be_left_alone_is_left_alone(site: Site, jitter: Bounds) -> None:
    """503 with Retry-After is temporary, and yet no second attempt is made, nor a pause."""
    site.configure({"ATTEMPTS": 3})
    site.say(wire.reply(503, headers={"Retry-After": "5"}), ALSO_FOUND)
    assert [attempt.source for attempt in site.find().trace] == ["primary", "secondary"]
    assert (site.calls, jitter) == ((1, 1), [])


def test_a_breaker_that_the_first_attempt_opened_refuses_the_second(site: Site, moving: MovableClock) -> None:
    """Each attempt asks the guard anew, however short the pause was."""
    over_memory(site)
    site.configure({"ATTEMPTS": 3, "BREAKER": {"CONSECUTIVE_FAILURES": 1}})
    site.say(TEMPORARY, ALSO_FOUND)
    assert trace(site.find()) == [
        ("primary", "temporary", "http_503", True),
        ("primary", "temporary", "circuit_open", False),
        ("secondary", "found", "ok", True),
    ]
    assert site.calls == (1, 1)


def test_attempts_take_from_the_rate_limit(site: Site, moving: MovableClock) -> None:
    """Two calls are allowed, so the third attempt is not made."""
    over_memory(site)
    site.configure({"ATTEMPTS": 3, "RATE_LIMIT": {"CALLS": 2, "PER": 60}})
    site.say(TEMPORARY, ALSO_FOUND)
    assert [(each.reason, each.called) for each in site.find().trace] == [
        ("http_503", True),
        ("http_503", True),
        ("rate_limited", False),
        ("ok", True),
    ]


def test_the_budget_holds_with_attempts(
    site: Site, moving: MovableClock, jitter: Bounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of 0.4 s and pauses fit twice into a second; what is left is the second source's."""
    site.configure({"BACKEND": PATH + "Programmed", "ATTEMPTS": 9, "TIMEOUT": 0.4}, BUDGET=1.0)
    site.say(FOUND, NOT_FOUND)
    monkeypatch.setattr(Programmed, "timeouts", [])

    def run(timeout: float) -> NoReply:
        moving.move(timeout)
        return NoReply("timeout")

    monkeypatch.setattr(Programmed, "program", staticmethod(run))
    before = moving.ahead
    lookup = site.find()
    assert moving.ahead - before <= 1.0
    assert Programmed.timeouts == pytest.approx([0.4, 0.4], abs=0.1)
    assert (words(lookup), site.calls) == (("unavailable", "incomplete_search"), (0, 1))


def test_pauses_double_up_to_two_seconds() -> None:
    """Full jitter: from nothing up to this."""
    assert [longest_pause(retry) for retry in range(1, 8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert longest_pause(10_000) == 2.0


def test_pauses_differ(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are random within their bounds, so that processes do not come back together."""
    slept: list[float] = []
    monkeypatch.setattr("catalog_fallback.clock.sleep", slept.append)
    site.configure({"ATTEMPTS": 2, "BREAKER": None})
    site.say(TEMPORARY, NOT_FOUND)
    for _ in range(20):
        site.find()
    assert all(0 <= pause <= 0.1 for pause in slept)
    assert len(set(slept)) == 20


def test_no_slot_is_held_while_a_retry_waits(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause is nobody's call."""
    seen: list[int] = []
    monkeypatch.setattr("catalog_fallback.clock.sleep", lambda _: seen.append(caller("primary").guard.bulkhead.in_use))
    site.configure({"ATTEMPTS": 2})
    site.say(TEMPORARY, NOT_FOUND)
    site.find()
    assert seen == [0]


@pytest.mark.parametrize(
    ("attempts", "left", "seconds"), [(1, 60, 1.0), (3, 60, 3.3), (3, 2, 2.0), (10, 60, 10 + 3.1 + 4 * 2.0)]
)
def test_a_lease_lives_as_long_as_all_attempts_may_take(
    site: Site, moving: MovableClock, attempts: int, left: float, seconds: float
) -> None:
    """With the pauses between them, and not for the whole budget: whoever waits for a killed process waits so long."""
    site.configure({"TIMEOUT": 1, "ATTEMPTS": attempts}, BUDGET=60)
    wait = chain_of["default"].longest_wait(0, Deadline(clock.monotonic() + left))
    assert wait == pytest.approx(seconds, abs=0.05)
