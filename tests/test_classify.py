"""Does every reply, and every sequence of replies, mean what the tables say?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback import classify
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Attempt, Outcome, Reply, State, Verdict

FOUND, NOT_FOUND, TEMPORARY, STOP = Outcome.FOUND, Outcome.NOT_FOUND, Outcome.TEMPORARY, Outcome.STOP
NOW = 1_800_000_000.0


def _name(value: object) -> str:
    """A parameter's name, the same in every process: sets are sorted, at any depth."""
    if isinstance(value, frozenset):
        return "+".join(sorted(map(str, value))) or "nothing"
    return "[" + ", ".join(map(_name, value)) + "]" if isinstance(value, list) else str(value)


TABLE = [
    ("timeout", TEMPORARY),
    ("connect_failed", TEMPORARY),
    ("dns_failed", TEMPORARY),
    ("connection_lost", TEMPORARY),
    ("http_502", TEMPORARY),
    ("http_503", TEMPORARY),
    ("http_504", TEMPORARY),
    ("circuit_open", TEMPORARY),
    ("rate_limited", TEMPORARY),
    ("bulkhead_full", TEMPORARY),
    ("isolated", TEMPORARY),
    ("http_429", STOP),
    ("cooling_down", STOP),
    ("http_401", STOP),
    ("http_403", STOP),
    ("http_404", STOP),
    ("http_410", STOP),
    ("http_418", STOP),
    ("http_500", STOP),
    ("http_501", STOP),
    ("http_505", STOP),
    ("http_302", STOP),
    ("http_304", STOP),
    ("http_204", STOP),
    ("http_206", STOP),
    ("http_999", STOP),
    ("invalid_http", STOP),
    ("tls_failed", STOP),
    ("incomplete_body", STOP),
    ("too_large", STOP),
    ("invalid_json", STOP),
    ("invalid_schema", STOP),
    ("invalid_item", STOP),
    ("unverifiable", STOP),
    ("no_name", STOP),
    ("invalid_request", STOP),
    ("other_type", NOT_FOUND),
    ("empty_result", NOT_FOUND),
    ("source_error", STOP),
    ("deadline", STOP),
    ("ok", FOUND),
    ("a reason of somebody's own adapter", STOP),
]
DOCS = Path(__file__).parents[1] / "docs" / "reference" / "classification.md"


@pytest.mark.parametrize(("reason", "outcome"), TABLE, ids=[reason for reason, _ in TABLE])
def test_every_row_of_the_table(reason: str, outcome: Outcome) -> None:
    """Each reason has the outcome that the specification's table gives it."""
    assert classify.of_reason(reason) is outcome
    assert classify.verdict(reason) == Verdict(outcome, reason)


def test_table_of_this_test_is_complete() -> None:
    """No reason can be added to the code's table without a row here."""
    assert set(classify.REASONS) <= {reason for reason, _ in TABLE}


def test_documented_table_is_the_code_s() -> None:
    """The reference page lists every reason of the code, with its outcome, and no other."""
    text = DOCS.read_text("utf-8").partition("## The table")[2].partition("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.MULTILINE)
    assert documented == [(reason, str(outcome)) for reason, outcome in classify.REASONS.items()]


@pytest.mark.parametrize("status", [*range(100, 600), 999])
def test_status_alone_never_says_found_or_not_found(status: int) -> None:
    """Only a 200 is looked into; of all others 502, 503 and 504 are temporary and the rest are stops."""
    judged = classify.by_status(Reply(status), NOW)
    if status == 200:
        assert judged is None
        return
    assert judged == Verdict(TEMPORARY if status in (502, 503, 504) else STOP, f"http_{status}")


@pytest.mark.parametrize(("status", "expected"), [(429, 120.0), (503, 120.0), (500, None), (404, None), (502, None)])
def test_retry_after_counts_for_429_and_503_only(status: int, expected: float | None) -> None:
    """A ``Retry-After`` on another status puts nobody on a cool-down."""
    judged = classify.by_status(Reply(status, {"retry-after": "120"}), NOW)
    assert judged is not None
    assert judged.retry_after == expected


def test_urllib3_1822_garbage_retry_after_keeps_the_verdict() -> None:
    """A header that cannot be read is absent; it changes neither outcome nor reason."""
    assert classify.by_status(Reply(429, {"retry-after": "1m0s"}), NOW) == Verdict(STOP, "http_429")


# ------------------------------------------------------------------------------------------------ settings of a source


def config(alias: str = "a", **values: object) -> SourceConfig:
    """Return a source's configuration."""
    return SourceConfig(alias, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("judged", "settings", "expected"),
    [
        (classify.verdict("http_404"), {}, (STOP, "http_404")),
        (classify.verdict("http_404"), {"not_found_statuses": frozenset({404, 410})}, (NOT_FOUND, "http_404")),
        (classify.verdict("http_410"), {"not_found_statuses": frozenset({404, 410})}, (NOT_FOUND, "http_410")),
        (classify.verdict("http_404"), {"not_found_statuses": frozenset({410})}, (STOP, "http_404")),
        (classify.verdict("http_503"), {"not_found_statuses": frozenset({503})}, (TEMPORARY, "http_503")),
        (classify.verdict("http_429"), {"not_found_statuses": frozenset({429})}, (STOP, "http_429")),
        (classify.verdict("http_500"), {"temporary_reasons": frozenset({"http_500"})}, (TEMPORARY, "http_500")),
        (classify.verdict("tls_failed"), {"temporary_reasons": frozenset({"http_500"})}, (STOP, "tls_failed")),
        (
            classify.verdict("http_404"),
            {"temporary_reasons": frozenset({"http_404"}), "not_found_statuses": frozenset({404})},
            (TEMPORARY, "http_404"),
        ),
        (
            classify.verdict("empty_result"),
            {"temporary_reasons": frozenset({"empty_result"})},
            (TEMPORARY, "empty_result"),
        ),
        (classify.found({"id": "P1"}), {"temporary_reasons": frozenset({"ok"})}, (FOUND, "ok")),
    ],
    ids=_name,
)
def test_settings_change_the_table(judged: Verdict, settings: dict[str, object], expected: tuple[Outcome, str]) -> None:
    """NOT_FOUND_STATUSES and TEMPORARY_REASONS do what they say, and never make a busy source say "not found"."""
    settled = classify.settle(judged, config(**settings))
    assert (settled.outcome, settled.reason) == expected


def test_settled_verdict_keeps_what_it_carries() -> None:
    """The item of a find and the wait of a busy source survive the settings."""
    item = {"id": "P1", "name": "One"}
    assert classify.settle(classify.found(item), config()).item is item
    busy = classify.settle(classify.verdict("http_429", 7.0), config(temporary_reasons=frozenset({"http_429"})))
    assert (busy.outcome, busy.retry_after) == (TEMPORARY, 7.0)


DEFAULT_NEXT_ON = frozenset({"not_found", "temporary"})


@pytest.mark.parametrize(
    ("judged", "next_on", "expected"),
    [
        (classify.verdict("empty_result"), DEFAULT_NEXT_ON, True),
        (classify.verdict("timeout"), DEFAULT_NEXT_ON, True),
        (classify.verdict("http_404"), DEFAULT_NEXT_ON, False),
        (classify.found({}), DEFAULT_NEXT_ON, False),
        (classify.verdict("empty_result"), frozenset(), False),
        (classify.verdict("no_name"), DEFAULT_NEXT_ON | {"no_name"}, True),
        (classify.verdict("unverifiable"), DEFAULT_NEXT_ON | {"no_name"}, False),
        (classify.verdict("http_404"), frozenset({"stop"}), True),
        (classify.found({}), frozenset({"found", "ok"}), False),
    ],
    ids=_name,
)
def test_next_on_names_outcomes_or_reasons(judged: Verdict, next_on: frozenset[str], *, expected: bool) -> None:
    """A source is followed by the next one where NEXT_ON names its outcome or its reason; a find ends the search."""
    assert classify.goes_on(judged, next_on) is expected


# ------------------------------------------------------------------------------------------------ the whole lookup


def trace(*reasons: str) -> tuple[Attempt, ...]:
    """Return one attempt a source, ``a``, ``b``, …, with the table's outcome for each reason."""
    aliases = "abcdef"
    return tuple(Attempt(aliases[n], classify.of_reason(reason), reason, 1.0) for n, reason in enumerate(reasons))


def sources(count: int, next_on: Sequence[frozenset[str]] = ()) -> list[SourceConfig]:
    """Return so many sources, with the NEXT_ON of the first ones."""
    given_on = [*next_on, *[DEFAULT_NEXT_ON] * count][:count]
    return [config(alias, next_on=on) for alias, on in zip("abcdef", given_on, strict=False)]


@pytest.mark.parametrize(
    ("reasons", "state", "reason"),
    [
        (["ok"], State.FOUND, "ok"),
        (["empty_result", "ok"], State.FOUND, "ok"),
        (["timeout", "ok"], State.FOUND, "ok"),
        (["empty_result", "empty_result"], State.NOT_FOUND, "all_not_found"),
        (["empty_result", "other_type"], State.NOT_FOUND, "all_not_found"),
        (["http_503", "empty_result"], State.UNAVAILABLE, "incomplete_search"),
        (["empty_result", "circuit_open"], State.UNAVAILABLE, "incomplete_search"),
        (["connect_failed", "timeout"], State.UNAVAILABLE, "incomplete_search"),
        (["http_401"], State.UNAVAILABLE, "http_401"),
        (["timeout", "invalid_json"], State.UNAVAILABLE, "invalid_json"),
        (["empty_result", "http_404"], State.UNAVAILABLE, "http_404"),
    ],
    ids=_name,
)
def test_worked_cases_of_the_specification(reasons: list[str], state: State, reason: str) -> None:
    """Primary and secondary together mean what the specification works out for them."""
    assert classify.conclude(trace(*reasons), sources(2)) == (state, reason)


@pytest.mark.parametrize(
    ("reasons", "state", "reason"),
    [
        (["timeout"], State.UNAVAILABLE, "deadline"),
        (["empty_result"], State.UNAVAILABLE, "deadline"),
        (["timeout", "timeout"], State.UNAVAILABLE, "deadline"),
        (["empty_result", "deadline"], State.UNAVAILABLE, "deadline"),
        ([], State.UNAVAILABLE, "deadline"),
        (["empty_result", "empty_result"], State.NOT_FOUND, "all_not_found"),
        (["timeout", "ok"], State.FOUND, "ok"),
        (["http_403"], State.UNAVAILABLE, "http_403"),
    ],
    ids=_name,
)
def test_budget_gone(reasons: list[str], state: State, reason: str) -> None:
    """Without a definite answer the reason is the deadline; an answer that came in time still counts."""
    assert classify.conclude(trace(*reasons), sources(2), deadline_passed=True) == (state, reason)


NOTHING: frozenset[str] = frozenset()
NO_NAME = DEFAULT_NEXT_ON | {"no_name"}


@pytest.mark.parametrize(
    ("reasons", "next_on", "state", "reason"),
    [
        (["empty_result"], [NOTHING], State.NOT_FOUND, "all_not_found"),
        (["timeout"], [NOTHING], State.UNAVAILABLE, "incomplete_search"),
        (["http_404"], [NOTHING], State.UNAVAILABLE, "http_404"),
        (["empty_result"], [frozenset({"temporary"})], State.NOT_FOUND, "all_not_found"),
        (["timeout", "empty_result"], [DEFAULT_NEXT_ON, NOTHING], State.UNAVAILABLE, "incomplete_search"),
        (["no_name", "empty_result"], [NO_NAME, NOTHING], State.UNAVAILABLE, "no_name"),
        (["no_name", "empty_result"], [NO_NAME], State.UNAVAILABLE, "no_name"),
        (["no_name", "ok"], [NO_NAME], State.FOUND, "ok"),
        (["no_name", "timeout"], [NO_NAME], State.UNAVAILABLE, "incomplete_search"),
        (["timeout", "no_name"], [DEFAULT_NEXT_ON, NO_NAME], State.UNAVAILABLE, "incomplete_search"),
        (["timeout", "no_name"], [DEFAULT_NEXT_ON], State.UNAVAILABLE, "no_name"),
        (["empty_result", "no_name"], [DEFAULT_NEXT_ON, NO_NAME], State.UNAVAILABLE, "no_name"),
        (["no_name", "http_403"], [NO_NAME], State.UNAVAILABLE, "http_403"),
        (["no_name", "timeout"], [NO_NAME, NOTHING], State.UNAVAILABLE, "incomplete_search"),
    ],
    ids=_name,
)
def test_next_on_decides_what_ends_the_lookup(
    reasons: list[str], next_on: list[frozenset[str]], state: State, reason: str
) -> None:
    """An authoritative source ends the search, and a stop that was passed on leaves it unknown."""
    assert classify.conclude(trace(*reasons), sources(2, next_on)) == (state, reason)


def test_no_source_at_all_is_not_not_found() -> None:
    """A catalog whose sources are all disabled has asked nobody."""
    assert classify.conclude((), []) == (State.UNAVAILABLE, "incomplete_search")


def test_source_that_was_not_asked_is_unknown() -> None:
    """Fewer answers than sources never make a "not found", whatever ended the search."""
    assert classify.conclude(trace("empty_result"), sources(2)) == (State.UNAVAILABLE, "incomplete_search")


@pytest.mark.parametrize(
    ("second_try", "expected"),
    [
        ("empty_result", (State.NOT_FOUND, "all_not_found")),
        ("timeout", (State.UNAVAILABLE, "incomplete_search")),
        ("http_403", (State.UNAVAILABLE, "http_403")),
    ],
)
def test_last_attempt_at_a_source_counts(second_try: str, expected: tuple[State, str]) -> None:
    """With ATTEMPTS a source may answer the second time; its first failure is made up for."""
    attempts = (*trace("timeout"), *trace(second_try))
    assert classify.conclude(attempts, sources(1)) == expected


REASON = st.sampled_from([*classify.REASONS, "http_404", "http_500", "http_503", "http_429", "cooling_down"])
NEXT_ON = st.frozensets(st.sampled_from(["not_found", "temporary", "stop", "no_name", "http_404"]))


@given(st.lists(st.tuples(REASON, NEXT_ON), min_size=1, max_size=4), st.booleans())
def test_go_32715_unknown_never_becomes_not_found(rows: list[tuple[str, frozenset[str]]], passed: bool) -> None:
    """Whatever the sources say and whatever NEXT_ON holds, "not found" needs nothing unknown in the trace."""
    configs = sources(len(rows), [next_on for _, next_on in rows])
    asked: list[Attempt] = []
    for attempt, source in zip(trace(*[reason for reason, _ in rows]), configs, strict=True):
        asked.append(attempt)
        if not classify.goes_on(attempt, source.next_on):
            break
    state, reason = classify.conclude(tuple(asked), configs, deadline_passed=passed)
    outcomes = [attempt.outcome for attempt in asked]
    assert (state is State.NOT_FOUND) == all(outcome is NOT_FOUND for outcome in outcomes)
    assert (state is State.FOUND) == (FOUND in outcomes)
    assert (reason in ("ok", "all_not_found")) == (state is not State.UNAVAILABLE)


# ------------------------------------------------------------------------------------------------ stale-if-error

BROKEN_OR_BUSY = ["tls_failed", "invalid_http", "incomplete_body", "http_500", "http_505", "http_429", "cooling_down"]
OTHER_STOPS = [
    "http_401",
    "http_403",
    "http_404",
    "http_410",
    "http_302",
    "http_204",
    "too_large",
    "invalid_json",
    "invalid_schema",
    "invalid_item",
    "unverifiable",
    "no_name",
    "invalid_request",
    "source_error",
]
NOT_NOW = [reason for reason, outcome in TABLE if outcome is TEMPORARY]


@pytest.mark.parametrize("reason", [*NOT_NOW, *BROKEN_OR_BUSY, "deadline"])
def test_undici_5507_every_broken_or_busy_source_allows_stale(reason: str) -> None:
    """A refused connection, a time-out, a 5xx or a 429 are all reasons to show an expired entry."""
    attempts = trace(reason)
    assert classify.may_serve_stale(attempts, *classify.conclude(attempts, sources(1)))


@pytest.mark.parametrize("reason", OTHER_STOPS)
def test_cache_subscriber_49_other_stops_forbid_stale(reason: str) -> None:
    """A 404, 410, 403 or a reply that makes no sense never brings an expired item back."""
    attempts = trace(reason)
    assert not classify.may_serve_stale(attempts, *classify.conclude(attempts, sources(1)))
    passed = trace(reason, "timeout")
    passed_on = sources(2, [frozenset({"stop"})])
    assert not classify.may_serve_stale(passed, *classify.conclude(passed, passed_on))


def test_stale_tables_cover_every_reason() -> None:
    """Each reason of the code's table was decided on, one way or the other."""
    decided = {*NOT_NOW, *BROKEN_OR_BUSY, *OTHER_STOPS, "deadline"}
    assert {reason for reason, outcome in classify.REASONS.items() if outcome in (TEMPORARY, STOP)} <= decided


@pytest.mark.parametrize(
    ("attempts", "state", "reason", "expected"),
    [
        ((), State.UNAVAILABLE, "deadline", True),
        ((), State.UNAVAILABLE, "incomplete_search", True),
        ((), State.UNAVAILABLE, "http_503", True),
        ((), State.UNAVAILABLE, "http_404", False),
        ((), State.UNAVAILABLE, "stop_list_unavailable", False),
        ((), State.STOPPED, "stopped", False),
        (trace("empty_result", "empty_result"), State.NOT_FOUND, "all_not_found", False),
        (trace("empty_result", "timeout"), State.UNAVAILABLE, "incomplete_search", True),
        (trace("ok"), State.FOUND, "ok", False),
    ],
    ids=_name,
)
def test_stale_needs_an_unavailable_lookup(
    attempts: tuple[Attempt, ...], state: State, reason: str, *, expected: bool
) -> None:
    """A definite answer, a stopped item and a stop list that cannot be asked beat a stale entry."""
    assert classify.may_serve_stale(attempts, state, reason) is expected


#: Every reason that there is, and every status.
EVERY_REASON = [*classify.REASONS, "cooling_down", "incomplete_search", "all_not_found", "stopped"]
EVERY_STATUS = [f"http_{status}" for status in range(100, 1000)]


def test_broken_and_busy_are_these_reasons_and_no_others() -> None:
    """5xx, whatever it is, and nothing that only looks like it."""
    reasons = [*EVERY_REASON, *EVERY_STATUS, "http_5xx", "http_5000", "xhttp_500"]
    broken = {reason for reason in reasons if classify.says_broken(reason)}
    assert broken == {"tls_failed", "invalid_http", "incomplete_body", *(f"http_{n}" for n in range(500, 600))}
    assert {reason for reason in reasons if classify.says_busy(reason)} == {"http_429", "cooling_down"}


def test_an_expired_entry_stands_in_for_somebody_else_s_search_for_these_reasons_only() -> None:
    """Who joined a flight has no trace: the reason alone has to say that nobody could answer in time."""
    reasons = [*EVERY_REASON, *EVERY_STATUS]
    assert {reason for reason in reasons if classify.may_serve_stale((), State.UNAVAILABLE, reason)} == {
        "incomplete_search",
        "deadline",
        "cooling_down",
        "http_429",
        "tls_failed",
        "invalid_http",
        "incomplete_body",
        *(f"http_{n}" for n in range(500, 600)),
    }


def test_retry_after_is_read_from_429_and_503_alone() -> None:
    """Of all statuses."""
    read = {}
    for status in range(201, 600):
        judged = classify.by_status(Reply(status, {"retry-after": "7"}), NOW)
        assert judged is not None
        read[status] = judged.retry_after
    assert {status for status, wait in read.items() if wait is not None} == {429, 503}
