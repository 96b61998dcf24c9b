"""Do names, refusals, weights, seats and locks do what they say?"""

from __future__ import annotations

import itertools
import os
import threading

import pytest

from catalog_fallback import classify, exceptions
from catalog_fallback.resilience.bulkhead import Bulkhead, Seat
from catalog_fallback.resilience.keys import Names, token
from catalog_fallback.resilience.process_lock import ProcessLock
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.weighing import Weight, weigh
from catalog_fallback.results import Outcome, Verdict

NAMES = [
    Names("default", "primary"),
    Names("default", "secondary"),
    Names("books", "primary"),
    Names("default", "primary", kind="guard"),
    Names("default", "primary", key_prefix="other"),
    Names("default", "primary", version=2),
    Names("default", "primary", key_prefix="catalog:1", version=2),
    Names("default", "primary", version="1:2"),
    Names("default", "primary:open"),
    Names("default", "a" * 64),
    Names("default", "a" * 63 + "b"),
    Names("d" * 64, "a" * 64, key_prefix="p" * 64, version="v" * 64),
    Names("d" * 64, "a" * 64, key_prefix="p" * 64, version="v" * 63),
    Names("default", "with blank"),
    Names("default", "Büro"),
    Names("def{au}lt", "primary"),
    Names("default", "primary", key_prefix=""),
]


@pytest.mark.parametrize("names", NAMES, ids=lambda names: str(names)[:30])
def test_keys_are_legal_everywhere(names: Names) -> None:
    """Keys are short, without blanks or controls, and hold one hash tag."""
    key = names.key("breaker", "tally", token(), 10**12)
    assert len(key) <= 200
    assert all("!" <= character <= "~" for character in key)
    assert key.count("{") == key.count("}") == 1


def test_no_two_guards_share_a_key() -> None:
    """Different prefixes, versions, catalogs, kinds and aliases have different keys."""
    heads = [names.key("open", "x") for names in NAMES]
    assert len(set(heads)) == len(heads)
    assert Names("default", "primary").isolated not in heads


@pytest.mark.parametrize("catalog", ["default", "c" * 64, "no slug"])
def test_guards_of_one_catalog_share_the_hash_tag(catalog: str) -> None:
    """On a cluster one slot holds all guards of a catalog."""
    tags = {Names(catalog, alias).key("x").partition("{")[2].partition("}")[0] for alias in ("a", "b" * 64, "c c")}
    assert len(tags) == 1


def test_tokens_differ() -> None:
    """A token names one thing."""
    assert len({token() for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    ("reason", "outcome", "error"),
    [
        ("circuit_open", Outcome.TEMPORARY, exceptions.CircuitOpen),
        ("isolated", Outcome.TEMPORARY, exceptions.CircuitOpen),
        ("rate_limited", Outcome.TEMPORARY, exceptions.RateLimited),
        ("bulkhead_full", Outcome.TEMPORARY, exceptions.BulkheadFull),
        ("deadline", Outcome.STOP, exceptions.BudgetExhausted),
        ("cooling_down", Outcome.STOP, exceptions.CoolingDown),
    ],
)
def test_a_refusal_is_a_verdict_and_an_error(
    reason: str, outcome: Outcome, error: type[exceptions.CallRejected]
) -> None:
    """Every refusal has the table's outcome and an exception of its own."""
    refusal = Refusal(reason, 2.5)
    assert refusal.verdict == Verdict(outcome, reason, retry_after=2.5)
    raised = refusal.error("default/primary")
    assert type(raised) is error
    assert raised.retry_after == 2.5
    assert str(raised).startswith("default/primary was not called: ")


def test_a_cool_down_keeps_its_kind() -> None:
    """A cool-down after a 503 is temporary, whatever the table says of the reason."""
    assert Refusal("cooling_down", kind=Outcome.TEMPORARY).verdict.outcome is Outcome.TEMPORARY


def test_polly_1878_errors_do_not_grow() -> None:
    """Each refusal makes a new exception: nothing grows with the number of raises."""
    refusal = Refusal("circuit_open")
    for _ in range(3):
        with pytest.raises(exceptions.CircuitOpen) as caught:
            raise refusal.error("x")
        assert len(caught.traceback) == 1
        assert caught.value.__context__ is None


SUCCESS, FAILURE, NEUTRAL = Weight.SUCCESS, Weight.FAILURE, Weight.NEUTRAL


@pytest.mark.parametrize(
    ("reason", "weight"),
    [
        *((reason, SUCCESS) for reason in ("ok", "empty_result", "other_type", "too_large", "invalid_json")),
        *((reason, SUCCESS) for reason in ("invalid_schema", "invalid_item", "invalid_request", "unverifiable")),
        *((f"http_{status}", SUCCESS) for status in (204, 302, 304, 400, 401, 403, 404, 410, 418, 451, 999)),
        *((reason, FAILURE) for reason in ("timeout", "connect_failed", "dns_failed", "connection_lost")),
        *((reason, FAILURE) for reason in ("tls_failed", "invalid_http", "incomplete_body")),
        *((f"http_{status}", FAILURE) for status in (500, 501, 502, 503, 504, 599)),
        *((reason, NEUTRAL) for reason in ("http_429", "cooling_down", "source_error", "deadline", "circuit_open")),
        *((reason, NEUTRAL) for reason in ("rate_limited", "bulkhead_full", "isolated")),
        ("no_name", SUCCESS),
    ],
)
def test_weights_of_the_classification_table(reason: str, weight: Weight) -> None:
    """Who answered is well, whatever it said; who could not is not; 429 and our own faults prove nothing."""
    assert weigh(classify.verdict(reason)) is weight


def test_every_reason_of_the_table_is_weighed() -> None:
    """A failure is what means temporary or broken, as long as somebody was called."""
    failures = {reason for reason in classify.REASONS if weigh(classify.verdict(reason)) is FAILURE}
    assert failures == {
        "timeout",
        "connect_failed",
        "dns_failed",
        "connection_lost",
        "tls_failed",
        "invalid_http",
        "incomplete_body",
    }


@pytest.mark.parametrize(
    ("verdict", "timed_out", "weight"),
    [
        pytest.param(Verdict(Outcome.STOP, "deadline"), True, FAILURE, id="the call itself was too slow"),
        pytest.param(Verdict(Outcome.STOP, "deadline"), False, NEUTRAL, id="the budget was too short"),
        pytest.param(Verdict(Outcome.TEMPORARY, "invalid_json"), False, FAILURE, id="temporary by TEMPORARY_REASONS"),
        pytest.param(Verdict(Outcome.TEMPORARY, "http_429"), False, NEUTRAL, id="429 is neutral all the same"),
        pytest.param(Verdict(Outcome.TEMPORARY, "source_error"), False, NEUTRAL, id="so is our own bug"),
        pytest.param(Verdict(Outcome.NOT_FOUND, "http_500"), False, SUCCESS, id="a documented 500 is an answer"),
    ],
)
def test_weights_that_settings_change(verdict: Verdict, timed_out: bool, weight: Weight) -> None:
    """The outcome after the source's settings is what counts."""
    assert weigh(verdict, timed_out=timed_out) is weight


def test_gobreaker_91_so_many_calls_at_a_time() -> None:
    """A bulkhead admits MAX_CONCURRENT calls, refuses at once, and is free again afterwards."""
    bulkhead = Bulkhead(2)
    first, second = bulkhead.take(), bulkhead.take()
    assert isinstance(first, Seat)
    assert isinstance(second, Seat)
    assert bulkhead.look() == bulkhead.take() == Refusal("bulkhead_full")
    bulkhead.release(first)
    assert bulkhead.in_use == 1
    assert bulkhead.look() is None
    assert isinstance(bulkhead.take(), Seat)


def test_a_bulkhead_under_threads_never_admits_too_many() -> None:
    """Threads that take and release at random never hold more seats than there are."""
    bulkhead, seen = Bulkhead(3), []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(300):
            seat = bulkhead.take()
            if isinstance(seat, Seat):
                seen.append(bulkhead.in_use)
                bulkhead.release(seat)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert max(seen) <= 3
    assert bulkhead.in_use == 0


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_with_free_seats_and_locks() -> None:
    """What threads of the parent hold at the fork does not bind the child, and its seats are nobody else's."""
    bulkhead, lock = Bulkhead(1), ProcessLock()
    parents = bulkhead.take()
    assert isinstance(parents, Seat)
    with lock:
        child = os.fork()
        if child == 0:
            with lock:
                own = bulkhead.take()
            bulkhead.release(parents)
            os._exit(0 if isinstance(own, Seat) and bulkhead.in_use == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bulkhead.in_use == 1


def test_a_process_lock_excludes() -> None:
    """Only one thread is inside at a time."""
    lock, inside, most = ProcessLock(), itertools.count(), []
    counter = {"now": 0}

    def work() -> None:
        for _ in range(200):
            with lock:
                counter["now"] += 1
                most.append(counter["now"])
                next(inside)
                counter["now"] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(most) == {1}
