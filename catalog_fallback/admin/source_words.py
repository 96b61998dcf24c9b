"""What does the operations page say of a source? In words, with an icon and a picture beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from catalog_fallback.admin.drawing import Sparkline, sparkline
from catalog_fallback.admin.measures import age, duration, icon_url, moment
from catalog_fallback.configuration import GuardConfig, SourceConfig
from catalog_fallback.models import CatalogSource
from catalog_fallback.resilience.breaker_record import BreakerState
from catalog_fallback.resilience.guard import GuardStatus
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.results import Outcome
from catalog_fallback.statistics import Figures
from catalog_fallback.status import SourceStatus

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

_STATES = {
    BreakerState.CLOSED: ("icon-yes.svg", gettext_lazy("closed")),
    BreakerState.OPEN: ("icon-no.svg", gettext_lazy("open")),
    BreakerState.HALF_OPEN: ("icon-alert.svg", gettext_lazy("half-open")),
    BreakerState.ISOLATED: ("icon-hidelink.svg", gettext_lazy("isolated")),
}
_WHY = {
    "failure_rate": gettext_lazy("too many of its calls failed"),
    "probe_failed": gettext_lazy("still failing when it was tried again"),
    "probes_succeeded": gettext_lazy("answered when it was tried again"),
    "reset": gettext_lazy("reset by an operator"),
}
_WHY_NOT = {
    "bulkhead_full": gettext_lazy("no: MAX_CONCURRENT calls are running"),
    "circuit_open": gettext_lazy("no: its breaker is open"),
    "cooling_down": gettext_lazy("no: it asked to be left alone"),
    "isolated": gettext_lazy("no, until it is restored"),
    "rate_limited": gettext_lazy("no: RATE_LIMIT is used up"),
}
_COOL_DOWNS = {
    Outcome.STOP: gettext_lazy("after a 429: a lookup ends here"),
    Outcome.TEMPORARY: gettext_lazy("after a 503: the next source is asked"),
}


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One source, or one guard, as the page shows it. ``verbs`` are the names of what an operator may do with it."""

    alias: str
    icon: str
    state: _StrPromise | str
    why: str = ""
    since: datetime | None = None
    since_for: str = ""
    may_be_called: str = ""
    probe: str = ""
    cool_down: str = ""
    calls: str = ""
    last_failure: str = ""
    last_failure_for: str = ""
    latency: str = ""
    spark: Sparkline | None = None
    spark_text: str = ""
    rate: str = ""
    running: str = ""
    longest: str = ""
    verbs: tuple[str, ...] = ()


def source_row(source: SourceStatus, longest: float) -> SourceRow:
    """Return what is said of one source."""
    guard, figures, row = source.guard, source.figures, source.isolated
    shown = guard_row(source.config, guard)
    is_isolated = guard.state is BreakerState.ISOLATED
    verbs = ("restore" if is_isolated else "isolate", *(("reset",) if source.config.breaker else ()))
    last = figures.last_failure
    history = [piece.percentile(95) for piece in figures.pieces]
    since = (row.isolated_at if row else None) if is_isolated else shown.since
    return replace(
        shown,
        why=_isolation(row) if is_isolated else shown.why,
        since=since,
        since_for=_age(since),
        cool_down=_cool_down(guard.cool_down),
        calls=_calls(figures),
        last_failure="" if last is None else last.reason,
        last_failure_for="" if last is None else age(last.at),
        latency=_latency(figures),
        spark=sparkline(history) if any(history) else None,
        spark_text=_history_text(history),
        longest=duration(longest),
        verbs=verbs,
    )


def guard_row(config: SourceConfig | GuardConfig, guard: GuardStatus) -> SourceRow:
    """Return what is said of a guard, whatever it stands around."""
    icon, state = _STATES[guard.state]
    since, limit = moment(guard.since), config.max_concurrent
    return SourceRow(
        alias=config.alias,
        icon=icon_url(icon),
        state=state,
        why=_why(config, guard),
        since=since,
        since_for=_age(since),
        may_be_called=_("yes") if guard.refusal is None else _may_not(guard.refusal),
        probe=_probe(guard.probe_in),
        rate=_rate(config, guard),
        running=_("{count} of {limit}").format(count=guard.in_use, limit=limit),
    )


def _age(since: datetime | None) -> str:
    return "" if since is None else age(since.timestamp())


def disabled_row(alias: str, row: CatalogSource | None) -> SourceRow:
    why = _("ENABLED is False in the settings: nobody asks it")
    if row is not None:
        why = _("{why}; isolated as well: {isolation}").format(why=why, isolation=_isolation(row))
    verbs = ("restore",) if row is not None else ()
    return SourceRow(alias, icon_url("icon-unknown.svg"), _("switched off"), why, verbs=verbs)


def _isolation(row: CatalogSource | None) -> str:
    if row is None:
        return _("by an operator")
    by = row.isolated_by.get_username() if row.isolated_by else ""
    who = _("by {user}").format(user=by) if by else _("by an operator")
    return f"{who}: {row.reason}" if row.reason else who


def _why(config: SourceConfig | GuardConfig, guard: GuardStatus) -> str:
    breaker = config.breaker
    if breaker is None:
        return _("has no breaker")
    if guard.reason == "consecutive_failures":
        count = breaker.consecutive_failures or 0
        return ngettext("%(count)d failure in a row", "%(count)d failures in a row", count) % {"count": count}
    return str(_WHY.get(guard.reason, guard.reason)) or _("works")


def _may_not(refusal: Refusal) -> str:
    return str(_WHY_NOT.get(refusal.reason, refusal.reason))


def _probe(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return _("next probe in {time}").format(time=duration(seconds)) if seconds >= 1 else _("the next call is a probe")


def _cool_down(refusal: Refusal | None) -> str:
    if refusal is None:
        return ""
    left = _("another {time}").format(time=duration(refusal.retry_after or 0.0))
    kind = _COOL_DOWNS.get(refusal.kind) if refusal.kind is not None else None
    return left if kind is None else f"{left}, {kind}"


def _calls(figures: Figures) -> str:
    if not figures.calls:
        return _("none")
    text = _("{calls}, {failures} failed, {timeouts} timed out")
    counts = {"calls": figures.calls, "failures": figures.failures, "timeouts": figures.timeouts}
    return text.format(**{name: number_format(count, force_grouping=True) for name, count in counts.items()})


def _latency(figures: Figures) -> str:
    parts = ((percent, figures.percentile(percent)) for percent in (50, 95))
    return ", ".join(f"P{percent}\u00a0{duration(seconds)}" for percent, seconds in parts if seconds is not None)


def _history_text(history: Sequence[float | None]) -> str:
    """The picture in words."""
    told = ", ".join(_("no calls") if value is None else duration(value) for value in history)
    return _("P95 in each half minute, the oldest first: {values}").format(values=told) if told else ""


def _rate(config: SourceConfig | GuardConfig, guard: GuardStatus) -> str:
    limit = config.rate_limit
    if limit is None:
        return _("no limit")
    text = _("{left} of {calls} left in {time}")
    return text.format(left=guard.calls_left, calls=limit.calls, time=duration(limit.per))
