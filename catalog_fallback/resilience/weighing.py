"""Does the end of a call speak for its source, or against it?"""

from __future__ import annotations

from enum import StrEnum

from catalog_fallback import classify
from catalog_fallback.results import Outcome, Verdict

#: Ends that say nothing about the source's health: it is busy, or the fault is ours, or nobody called.
_NEUTRAL = frozenset(
    {
        "bulkhead_full",
        "circuit_open",
        "cooling_down",
        "http_429",
        "isolated",
        "rate_limited",
        "source_error",
    }
)


class Weight(StrEnum):
    """What a circuit breaker makes of a call."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


def weigh(verdict: Verdict, *, timed_out: bool = False) -> Weight:
    """Return what a verdict on a call says about the source.

    ``timed_out``: the call itself ran into its limit; it tells a source that is too slow from a ``deadline`` that
    passed for other reasons.
    """
    if verdict.outcome is Outcome.FOUND or verdict.outcome is Outcome.NOT_FOUND:
        return Weight.SUCCESS
    if verdict.reason in _NEUTRAL:
        return Weight.NEUTRAL
    if verdict.reason == "deadline":
        return Weight.FAILURE if timed_out else Weight.NEUTRAL
    if verdict.outcome is Outcome.TEMPORARY or classify.says_broken(verdict.reason):
        return Weight.FAILURE
    return Weight.SUCCESS
