"""What does a reply mean, and what do all replies together mean? Tables and pure functions, no I/O.

One reply becomes a :class:`Verdict` (``verdict``, ``by_status``, ``settle``), the verdicts of all sources become the
state of the lookup (``conclude``). Nothing here turns "could not find out" into "not found".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from catalog_fallback import headers
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Attempt, Item, Outcome, Reply, State, Verdict

#: The classification table: what happened → outcome. ``http_NNN`` and ``cooling_down`` are in :func:`of_reason`.
REASONS: Mapping[str, Outcome] = MappingProxyType(
    {
        "ok": Outcome.FOUND,
        "empty_result": Outcome.NOT_FOUND,
        "other_type": Outcome.NOT_FOUND,
        "timeout": Outcome.TEMPORARY,
        "connect_failed": Outcome.TEMPORARY,
        "dns_failed": Outcome.TEMPORARY,
        "connection_lost": Outcome.TEMPORARY,
        "circuit_open": Outcome.TEMPORARY,
        "rate_limited": Outcome.TEMPORARY,
        "bulkhead_full": Outcome.TEMPORARY,
        "isolated": Outcome.TEMPORARY,
        "tls_failed": Outcome.STOP,
        "invalid_http": Outcome.STOP,
        "incomplete_body": Outcome.STOP,
        "too_large": Outcome.STOP,
        "invalid_json": Outcome.STOP,
        "invalid_schema": Outcome.STOP,
        "invalid_item": Outcome.STOP,
        "invalid_request": Outcome.STOP,
        "unverifiable": Outcome.STOP,
        "no_name": Outcome.STOP,
        "source_error": Outcome.STOP,
        "deadline": Outcome.STOP,
    }
)

#: The only statuses that mean "not now" by themselves; every other one is a stop.
TEMPORARY_STATUSES = frozenset({502, 503, 504})
#: Statuses whose ``Retry-After`` counts.
_COOLING_STATUSES = frozenset({429, 503})
_BROKEN = frozenset({"tls_failed", "invalid_http", "incomplete_body"})
_BUSY = frozenset({"http_429", "cooling_down"})
_SERVER_ERROR = re.compile(r"http_5[0-9][0-9]")
#: What ends a lookup as unavailable because sources could not be reached in time.
_NOT_NOW = frozenset({"incomplete_search", "deadline"})


def of_reason(reason: str) -> Outcome:
    """Return the outcome that the table gives a reason; what it does not know is a stop.

    ``cooling_down`` keeps the kind of the reply that began the cool-down (``stop`` after a 429, ``temporary`` after a
    503); whoever knows that kind makes the verdict, and here it is the strict one.
    """
    known = REASONS.get(reason)
    if known is not None:
        return known
    return Outcome.TEMPORARY if reason in _TEMPORARY_HTTP else Outcome.STOP


_TEMPORARY_HTTP = frozenset(f"http_{status}" for status in TEMPORARY_STATUSES)


def verdict(reason: str, retry_after: float | None = None) -> Verdict:
    """Return the table's verdict on a reason."""
    return Verdict(of_reason(reason), reason, retry_after=retry_after)


def found(item: Item) -> Verdict:
    """Return the verdict on a valid item with the ID that was asked for."""
    return Verdict(Outcome.FOUND, "ok", item)


def by_status(reply: Reply, now: float) -> Verdict | None:
    """Return what the status alone decides; None for a 200, whose body has to be read.

    ``now`` (seconds since the epoch) is for a ``Retry-After`` that is a date.
    """
    if reply.status == 200:
        return None
    wait = headers.retry_after(reply.headers, now) if reply.status in _COOLING_STATUSES else None
    return verdict(f"http_{reply.status}", wait)


def settle(judged: Verdict, config: SourceConfig) -> Verdict:
    """Apply the source's NOT_FOUND_STATUSES and TEMPORARY_REASONS; where both name one reason, it is temporary."""
    if judged.outcome is Outcome.FOUND:
        return judged
    if judged.reason in config.temporary_reasons:
        return Verdict(Outcome.TEMPORARY, judged.reason, retry_after=judged.retry_after)
    if judged.outcome is Outcome.STOP and _is_listed(judged.reason, config.not_found_statuses):
        return Verdict(Outcome.NOT_FOUND, judged.reason)
    return judged


def _is_listed(reason: str, statuses: frozenset[int]) -> bool:
    """Whether the reason is one of the statuses; a 429 says "too busy to tell", whatever the list says."""
    return reason != "http_429" and any(reason == f"http_{status}" for status in statuses)


def goes_on(judged: Verdict | Attempt, next_on: frozenset[str]) -> bool:
    """Whether the next source is asked after this one; NEXT_ON names outcomes or reasons, a find always ends it."""
    if judged.outcome is Outcome.FOUND:
        return False
    return judged.outcome in next_on or judged.reason in next_on


def conclude(
    attempts: Sequence[Attempt], sources: Sequence[SourceConfig], *, deadline_passed: bool = False
) -> tuple[State, str]:
    """Return state and reason of a lookup from its trace.

    ``sources`` are the catalog's sources in the order asked; their NEXT_ON tells whether the last attempt ended the
    search. ``deadline_passed``: the budget was gone when the search ended. Of several attempts at one source the last
    counts. ``not_found`` needs that answer from every source, or from one that ends the search with nothing unknown
    before it.
    """
    final = _last_of_each(attempts)
    last = final[-1] if final else None
    if last is not None and last.outcome is Outcome.FOUND:
        return State.FOUND, "ok"
    has_ended = last is not None and not goes_on(last, _next_on(last.source, sources))
    if last is not None and has_ended and last.outcome is Outcome.STOP:
        return State.UNAVAILABLE, last.reason
    is_complete = has_ended or {source.alias for source in sources} <= {attempt.source for attempt in final}
    if final and is_complete and all(attempt.outcome is Outcome.NOT_FOUND for attempt in final):
        return State.NOT_FOUND, "all_not_found"
    return State.UNAVAILABLE, "deadline" if deadline_passed else _unknown_reason(final)


def _last_of_each(attempts: Sequence[Attempt]) -> list[Attempt]:
    return list({attempt.source: attempt for attempt in attempts}.values())


def _next_on(alias: str, sources: Sequence[SourceConfig]) -> frozenset[str]:
    return next((source.next_on for source in sources if source.alias == alias), frozenset())


def _unknown_reason(final: Sequence[Attempt]) -> str:
    """Why nothing is known: a temporary outcome, else the first stop that NEXT_ON passed on."""
    if any(attempt.outcome is Outcome.TEMPORARY for attempt in final):
        return "incomplete_search"
    return next((attempt.reason for attempt in final if attempt.outcome is Outcome.STOP), "incomplete_search")


def may_serve_stale(attempts: Sequence[Attempt], state: State, reason: str) -> bool:
    """Whether an expired entry may stand in for a lookup that ended so, where the site allows it at all.

    Yes when it is unavailable because sources could not answer in time, are broken or are busy; any other stop in the
    trace, passed on or not, forbids it. ``attempts`` may be empty (somebody else did the search).
    """
    if state is not State.UNAVAILABLE or not (reason in _NOT_NOW or says_broken(reason) or says_busy(reason)):
        return False
    return all(_allows_stale(attempt) for attempt in _last_of_each(attempts))


def _allows_stale(attempt: Attempt) -> bool:
    if attempt.outcome is not Outcome.STOP or attempt.reason == "deadline":
        return True
    return says_broken(attempt.reason) or says_busy(attempt.reason)


def says_broken(reason: str) -> bool:
    """Whether a reason means that the source is out of order (it counts against the circuit breaker)."""
    return reason in _BROKEN or _SERVER_ERROR.fullmatch(reason) is not None


def says_busy(reason: str) -> bool:
    """Whether a reason means that the source asked to be left alone."""
    return reason in _BUSY
