"""Are names legal and one guard's own, and do refusals say what they mean?"""

from __future__ import annotations

import pytest

from catalog_fallback import exceptions
from catalog_fallback.resilience.keys import Names, token
from catalog_fallback.resilience.refusal import Refusal
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
