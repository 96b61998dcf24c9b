"""What do lookups, calls, guards and stops come to? Metrics for prometheus-client, whose labels are bounded.

Call :func:`connect` once, in the ``ready()`` of an AppConfig of your site. Counters and histograms follow the signals
of this process; the gauges are read when they are asked for, from what all processes share (:class:`SharedState`).

No label ever holds an ID, a language or free text: what is not one of a known set is ``other``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

from django.db import Error as DatabaseError
from django.db.models import Count, Q
from django.dispatch import Signal
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily

from catalog_fallback import classify, clock, conf, signals
from catalog_fallback.fallback import chain_of
from catalog_fallback.guards import Guards, guards_of
from catalog_fallback.models import StoppedItem, StopReason
from catalog_fallback.resilience.breaker_record import BreakerState
from catalog_fallback.resilience.guard import Guard, GuardStatus
from catalog_fallback.results import Attempt, Lookup
from catalog_fallback.stop_list import database

#: Upper bounds in seconds: from a hit in memory to a budget of 10 s; the defaults of TIMEOUT and BUDGET are among them.
LOOKUP_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
CALL_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)

#: What the label ``reason`` of lookups and calls may be; everything else is :data:`OTHER`.
REASONS = frozenset(
    {
        *classify.REASONS,
        *(f"http_{status.value}" for status in HTTPStatus),
        "all_not_found",
        "cooling_down",
        "incomplete_search",
        "stop_list_unavailable",
        "stopped",
    }
)
#: Reason of an invalidation → its label; a site may give any text as reason.
INVALIDATIONS = {
    **{str(reason): str(reason) for reason in StopReason},
    "": "none",
    "deleted": "deleted",
    "published again": "published_again",
    "released": "released",
    "updated": "updated",
}
OTHER = "other"

#: Seconds for which the figures of the stop list are kept: counting a long one takes a database a moment.
STOP_LIST_LIFE = 60.0

_Numbers = dict[str, tuple[int, int]]


class Metrics:
    """The counters and histograms of one registry, and what feeds them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"catalog_fallback_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"catalog_fallback_{name}", text, labels, registry=registry, buckets=buckets)

        self.lookups = counter("lookups", "Lookups that have their answer.", "catalog", "state", "reason", "cache")
        self.lookup_seconds = histogram(
            "lookup_seconds", "How long lookups took.", LOOKUP_BUCKETS, "catalog", "state", "cache"
        )
        self.degraded = counter("degraded_lookups", "Lookups answered with the site's own data.", "catalog")
        self.calls = counter("source_calls", "Calls of sources.", "catalog", "source", "outcome", "reason")
        self.call_seconds = histogram(
            "source_call_seconds", "How long calls of sources took.", CALL_BUCKETS, "catalog", "source", "outcome"
        )
        self.refusals = counter("source_refusals", "Calls that a guard refused.", "catalog", "source", "reason")
        self.breaker_changes = counter(
            "breaker_changes", "Changes of circuit breakers.", "catalog", "kind", "source", "old", "new"
        )
        self.invalidated = counter("invalidated_items", "Items whose invalidation is confirmed.", "catalog", "reason")
        self._listeners: dict[Signal, Callable[..., None]] = {
            signals.lookup_finished: self.count_lookup,
            signals.source_called: self.count_call,
            signals.breaker_changed: self.count_change,
            signals.items_invalidated: self.count_invalidation,
        }
        #: Labels of lookups → their counter and histogram: a hit finds both with one look into a dict.
        self._of_lookup: dict[tuple[str, ...], tuple[Counter, Histogram]] = {}

    def connect(self) -> None:
        """Listen to the signals."""
        for signal, listener in self._listeners.items():
            signal.connect(listener, weak=False)

    def disconnect(self) -> None:
        """Listen no more; what was counted stays."""
        for signal, listener in self._listeners.items():
            signal.disconnect(listener)

    def count_lookup(self, sender: object, *, lookup: Lookup, elapsed: float, **_: Any) -> None:
        """Count one lookup; the path of every hit."""
        labels = lookup.catalog, lookup.state, bounded(lookup.reason), lookup.cache
        known = self._of_lookup.get(labels)
        if known is None:
            catalog, state, _reason, cache = labels
            known = self.lookups.labels(*labels), self.lookup_seconds.labels(catalog, state, cache)
            self._of_lookup[labels] = known
        counter, histogram = known
        counter.inc()
        histogram.observe(elapsed)
        if lookup.degraded:
            self.degraded.labels(lookup.catalog).inc()

    def count_call(self, sender: object, *, catalog: str, attempt: Attempt, **_: Any) -> None:
        """Count one call that was made, or one that a guard refused."""
        reason = bounded(attempt.reason)
        if not attempt.called:
            self.refusals.labels(catalog, attempt.source, reason).inc()
            return
        self.calls.labels(catalog, attempt.source, attempt.outcome, reason).inc()
        self.call_seconds.labels(catalog, attempt.source, attempt.outcome).observe(attempt.elapsed_ms / 1000)

    def count_change(self, sender: object, *, catalog: str, source: str, old: str, new: str, **_: Any) -> None:
        """Count one change of a circuit breaker; a guard that is not in GUARDS may have any name."""
        is_guard = sender is Guards
        name = source if not is_guard or source in conf.catalog(catalog).guards else OTHER
        self.breaker_changes.labels(catalog, "guard" if is_guard else "source", name, old, new).inc()

    def count_invalidation(
        self, sender: object, *, catalog: str, item_ids: tuple[str, ...], reason: str, **_: Any
    ) -> None:
        """Count the items of one confirmed invalidation."""
        self.invalidated.labels(catalog, INVALIDATIONS.get(reason, OTHER)).inc(len(item_ids))


class SharedState:
    """A collector: how guards and stop list stand now, for all processes that share cache and database.

    Asking it calls no source and takes no permit; it costs one read of the cache for each catalog and each guard.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop_list: _Numbers = {}
        self._read_at = float("-inf")

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield what there is, without asking anybody."""
        return iter(_families().values())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield what is so now; what cannot be read is left out."""
        families = _families()
        for alias in conf.catalogs():
            for kind, name, status in _statuses(alias):
                for state in BreakerState:
                    families["breaker_state"].add_metric([alias, kind, name, state], float(status.state is state))
                families["may_be_called"].add_metric([alias, kind, name], float(status.refusal is None))
        for alias, (stopped, unconfirmed) in self._stops().items():
            families["stopped_items"].add_metric([alias], stopped)
            families["unconfirmed_stops"].add_metric([alias], unconfirmed)
        return iter(families.values())

    def _stops(self) -> _Numbers:
        with self._lock:
            now = clock.monotonic()
            if now - self._read_at < STOP_LIST_LIFE:
                return self._stop_list
            self._read_at = now
        numbers = _count_stops()
        with self._lock:
            self._stop_list = numbers
        return numbers


def connect(registry: CollectorRegistry = REGISTRY) -> Metrics:
    """Register the metrics and listen to the signals; a second call for the same registry changes nothing.

    To listen no more, call ``disconnect()`` of what it returns.
    """
    with _lock:
        if registry not in _connected:
            metrics = Metrics(registry)
            registry.register(SharedState())
            _connected[registry] = metrics
        _connected[registry].connect()
        return _connected[registry]


_lock = threading.Lock()
_connected: dict[CollectorRegistry, Metrics] = {}


def bounded(reason: str) -> str:
    """Return the reason if it is one of the known set, else ``other``: adapters may have any of their own."""
    return reason if reason in REASONS else OTHER


def _families() -> dict[str, GaugeMetricFamily]:
    described = {
        "breaker_state": ("1 for the state that a circuit breaker is in.", ["catalog", "kind", "source", "state"]),
        "may_be_called": ("0 while a guard would refuse every call.", ["catalog", "kind", "source"]),
        "stopped_items": ("Items that are stopped.", ["catalog"]),
        "unconfirmed_stops": ("Rows of the stop list that the cache has not confirmed.", ["catalog"]),
    }
    return {
        name: GaugeMetricFamily(f"catalog_fallback_{name}", text, labels=labels)
        for name, (text, labels) in described.items()
    }


def _statuses(alias: str) -> Iterator[tuple[str, str, GuardStatus]]:
    """Yield kind, name and status of the guards of a catalog: those of its sources, and those of GUARDS."""
    chain = chain_of[alias]
    outlook = chain.look()
    for caller in chain.callers:
        name = caller.config.alias
        yield "source", name, caller.guard.status(outlook.view, is_isolated=name in outlook.isolated)
    for name in conf.catalog(alias).guards:
        guard: Guard = guards_of[alias].get(name)[1]
        yield "guard", name, guard.status(guard.stores.read((guard,)))


def _count_stops() -> _Numbers:
    """Return for each catalog how many items are stopped, and how many rows are not confirmed."""
    stopped, unconfirmed = Count("pk", filter=Q(is_active=True)), Count("pk", filter=Q(published_at=None))
    try:
        rows = StoppedItem.objects.using(database()).order_by().values("catalog")
        counted = list(rows.annotate(stopped=stopped, unconfirmed=unconfirmed))
    except DatabaseError:
        return {}
    found = {row["catalog"]: (row["stopped"], row["unconfirmed"]) for row in counted}
    return {alias: found.get(alias, (0, 0)) for alias in conf.catalogs()}
