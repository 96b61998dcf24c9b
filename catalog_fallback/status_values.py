"""How is the state of the sources told to programs? As plain JSON values; documented in docs/how-to/operate-sources.md.

Durations are seconds, moments ISO 8601 in UTC; what is not known is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from catalog_fallback import clock
from catalog_fallback.configuration import GuardConfig, SourceConfig
from catalog_fallback.models import CatalogSource
from catalog_fallback.resilience.guard import GuardStatus
from catalog_fallback.results import Outcome
from catalog_fallback.statistics import WINDOW, Calls, Figures
from catalog_fallback.status import CatalogStatus, OtherGuard, Overview, SourceStatus

#: The latencies that are shown, in percent of the calls.
PERCENTILES = (50, 95, 99)
#: What began a cool-down, by what a refusal means.
COOL_DOWN_KINDS: Mapping[Outcome | None, str] = MappingProxyType(
    {Outcome.STOP: "http_429", Outcome.TEMPORARY: "http_503"}
)


def all_values(overview: Overview) -> dict[str, Any]:
    """Return everything that the operations page shows."""
    return {
        "at": _iso(clock.wall()),
        "database_answers": overview.database_answers,
        "catalogs": [catalog_values(each) for each in overview.catalogs],
        "left_behind": [{"catalog": row.catalog, "source": row.source, **_row(row)} for row in overview.left_behind],
    }


def catalog_values(status: CatalogStatus) -> dict[str, Any]:
    """Return one catalog."""
    waits = status.waits
    return {
        "catalog": status.config.alias,
        "state_cache": status.config.state_cache,
        "is_shared": status.is_shared,
        "cache_answers": status.answers,
        "lookups": {
            "window": WINDOW,
            "made": status.answered.lookups,
            "hits": status.answered.hits,
            "hit_ratio": status.answered.ratio,
        },
        "sources": [_source(source) for source in status.sources],
        "disabled": [source.alias for source in status.disabled],
        "guards": [_other_guard(guard) for guard in status.guards],
        "waits": {
            "sources": dict(waits.calls),
            "all_calls": waits.all_calls,
            "budget": waits.budget,
            "lookup": waits.lookup,
            "outer_timeout": waits.outer,
            "fits": waits.fits,
        },
    }


def _source(source: SourceStatus) -> dict[str, Any]:
    cool_down, row = source.guard.cool_down, source.isolated
    return {
        "source": source.config.alias,
        **_state(source.guard),
        "isolated": None if row is None else _row(row),
        "calls": _calls(source.figures),
        "cool_down": None if cool_down is None else cool_down.retry_after,
        "cool_down_after": None if cool_down is None else COOL_DOWN_KINDS.get(cool_down.kind),
        **_limits(source.config, source.guard),
    }


def _other_guard(status: OtherGuard) -> dict[str, Any]:
    return {"guard": status.config.alias, **_state(status.guard), **_limits(status.config, status.guard)}


def _state(guard: GuardStatus) -> dict[str, Any]:
    refusal = guard.refusal
    return {
        "state": str(guard.state),
        "reason": guard.reason,
        "since": _iso(guard.since),
        "may_call": refusal is None,
        "refusal": None if refusal is None else refusal.reason,
        "retry_after": None if refusal is None else refusal.retry_after,
        "probe_in": guard.probe_in,
    }


def _limits(config: SourceConfig | GuardConfig, guard: GuardStatus) -> dict[str, Any]:
    limit = config.rate_limit
    rate = None if limit is None else {"calls": limit.calls, "per": limit.per, "left": guard.calls_left}
    return {
        "rate_limit": rate,
        "running_here": guard.in_use,
        "max_concurrent": config.max_concurrent,
        "late_results_here": guard.late_results,
    }


def _row(row: CatalogSource) -> dict[str, Any]:
    by = None if row.isolated_by is None else row.isolated_by.get_username()
    return {"reason": row.reason, "since": row.isolated_at.isoformat(), "by": by}


def _calls(figures: Figures) -> dict[str, Any]:
    last = figures.last_failure
    return {
        "window": WINDOW,
        **_counts(figures),
        **{f"p{each}": figures.percentile(each) for each in PERCENTILES},
        "last_failure": None if last is None else {"reason": last.reason, "at": _iso(last.at)},
        "history": [{**_counts(piece), "p95": piece.percentile(95)} for piece in figures.pieces],
    }


def _counts(calls: Calls) -> dict[str, int]:
    return {"made": calls.calls, "failed": calls.failures, "timed_out": calls.timeouts}


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
