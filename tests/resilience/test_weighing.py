"""Does each verdict count for its source, against it, or not at all?"""

from __future__ import annotations

import pytest

from catalog_fallback import classify
from catalog_fallback.resilience.weighing import Weight, weigh
from catalog_fallback.results import Outcome, Verdict

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
