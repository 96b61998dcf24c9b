"""How is the state of the sources shown on a terminal? As tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from catalog_fallback.configuration import GuardConfig, SourceConfig
from catalog_fallback.management.printing import aligned, plain
from catalog_fallback.resilience.breaker_record import BreakerState
from catalog_fallback.resilience.guard import GuardStatus
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.statistics import WINDOW
from catalog_fallback.status import CatalogStatus, OtherGuard, SourceStatus
from catalog_fallback.status_values import PERCENTILES
from catalog_fallback.waits import Waits

#: Why a breaker is in its state, for people.
_WHY = {
    "consecutive_failures": "failures in a row",
    "failure_rate": "too many of its calls failed",
    "probe_failed": "still failing when it was tried again",
    "probes_succeeded": "answered when it was tried again",
    "reset": "reset by an operator",
}
_WHY_NOT = {
    "bulkhead_full": "MAX_CONCURRENT calls are running",
    "circuit_open": "",
    "cooling_down": "asked to be left alone",
    "isolated": "",
    "rate_limited": "RATE_LIMIT is used up",
}
_NOTHING = "-"


def shown(status: CatalogStatus, *, database_answers: bool = True) -> str:
    """Return one catalog for people."""
    guards = [("SOURCE", *_GUARD), *map(_guard, status.sources)]
    calls = [_CALLS, *map(_calls, status.sources)]
    limits = [("SOURCE", *_LIMITS, "COOL-DOWN"), *map(_limits, status.sources)]
    others = [("GUARD", *_GUARD, *_LIMITS), *map(_other_guard, status.guards)]
    parts = [
        _head(status, database_answers=database_answers),
        aligned(guards),
        f"\n  Calls of the last {WINDOW / 60:.0f} minutes",
        aligned(calls, "    "),
        "\n  Limits",
        aligned(limits, "    "),
        *(("\n  Guards of other calls (GUARDS)", aligned(others, "    ")) if status.guards else ()),
        "\n  Waiting at most: each layer has to wait a little longer than the one inside it",
        aligned(_waits(status.waits), "    "),
    ]
    return "\n".join(parts)


def _head(status: CatalogStatus, *, database_answers: bool) -> str:
    cache = f"cache {plain(status.config.state_cache)}"
    lines = [f"Catalog {plain(status.config.alias)}"]
    if not status.answers:
        lines.append(f"  The {cache} does not answer: this is what this process knows by itself.")
    elif status.is_shared:
        lines.append(f"  All processes share this state ({cache}).")
    else:
        lines.append(f"  Each process has a state of its own ({cache} is not shared): this is the one of this command.")
    if not database_answers:
        lines.append("  The database does not answer: who isolated what, and why, is not known.")
    if status.answered.percent is not None:
        part = f"{status.answered.hits} of {status.answered.lookups} lookups ({status.answered.percent}%)"
        lines.append(f"  The cache answered {part} of the last {WINDOW / 60:.0f} minutes.")
    if status.disabled:
        lines.append(f"  Switched off in the settings: {', '.join(source.alias for source in status.disabled)}")
    return "\n".join(lines)


_GUARD = ("STATE", "WHY", "SINCE", "MAY BE CALLED")
_LIMITS = ("RUNNING HERE", "RATE LIMIT")


def _guard(source: SourceStatus) -> tuple[str, ...]:
    guard, row = source.guard, source.isolated
    if guard.state is not BreakerState.ISOLATED:
        return source.config.alias, *_state(source.config, guard)
    why = "by an operator" if row is None or not row.reason else f"by an operator: {row.reason}"
    since = row.isolated_at.timestamp() if row is not None else None
    return source.config.alias, str(guard.state), why, _moment(since), _may_be_called(guard.refusal)


def _other_guard(status: OtherGuard) -> tuple[str, ...]:
    config, guard = status.config, status.guard
    return config.alias, *_state(config, guard), *_running(config, guard)


def _state(config: SourceConfig | GuardConfig, guard: GuardStatus) -> tuple[str, ...]:
    why = _WHY.get(guard.reason, guard.reason)
    if guard.reason == "consecutive_failures" and config.breaker is not None:
        why = f"{config.breaker.consecutive_failures} {why}"
    if guard.state is BreakerState.CLOSED and not why:
        why = "works" if config.breaker else "has no breaker"
    state = str(guard.state).replace("_", "-")
    return state, why or _NOTHING, _moment(guard.since), _may_be_called(guard.refusal)


def _may_be_called(refusal: Refusal | None) -> str:
    if refusal is None:
        return "yes"
    wait = "" if refusal.retry_after is None else f"in {_seconds(refusal.retry_after)}"
    why = _WHY_NOT.get(refusal.reason, refusal.reason)
    return ", ".join(part for part in ("no", why, wait) if part)


_CALLS = ("SOURCE", "CALLS", "FAILED", "TIMED OUT", *(f"P{each}" for each in PERCENTILES), "LAST FAILURE")


def _calls(source: SourceStatus) -> tuple[object, ...]:
    figures = source.figures
    last = figures.last_failure
    latencies = (_latency(figures.percentile(each)) for each in PERCENTILES)
    failure = _NOTHING if last is None else f"{last.reason}, {_moment(last.at)}"
    return source.config.alias, figures.calls, figures.failures, figures.timeouts, *latencies, failure


def _limits(source: SourceStatus) -> tuple[str, ...]:
    config, guard = source.config, source.guard
    cool = _NOTHING
    if guard.cool_down is not None and guard.cool_down.retry_after is not None:
        cool = f"another {_seconds(guard.cool_down.retry_after)}"
    return config.alias, *_running(config, guard), cool


def _running(config: SourceConfig | GuardConfig, guard: GuardStatus) -> tuple[str, str]:
    limit, rate = config.rate_limit, _NOTHING
    if limit is not None:
        rate = f"{guard.calls_left} of {limit.calls} in {_seconds(limit.per)} left"
    return f"{guard.in_use} of {config.max_concurrent}", rate


def _waits(waits: Waits) -> Sequence[tuple[str, str, str]]:
    calls = [("one source", _seconds(seconds), alias) for alias, seconds in waits.calls]
    budget = f"BUDGET is {_seconds(waits.budget)}"
    why = f"{budget}; all calls together could take {_seconds(waits.all_calls)}" if waits.is_cut else budget
    outer = f"OUTER_TIMEOUT says {_seconds(waits.outer)}: {'fits' if waits.fits else 'TOO SHORT'}"
    return [
        *calls,
        ("one lookup", _seconds(waits.lookup), why),
        ("the web server", f"> {_seconds(waits.lookup)}", f"{outer}; more where a page makes several lookups"),
        ("its client", f"> {_seconds(max(waits.outer, waits.lookup))}", "a little longer than the web server"),
    ]


def _moment(seconds: float | None) -> str:
    return _NOTHING if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == round(seconds) else f"{seconds:.1f} s"


def _latency(seconds: float | None) -> str:
    if seconds is None:
        return _NOTHING
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
