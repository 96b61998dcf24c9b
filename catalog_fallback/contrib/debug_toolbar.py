"""What did this request look up? A panel of django-debug-toolbar, for pages under asyncio too.

``DEBUG_TOOLBAR_PANELS = [..., "catalog_fallback.contrib.debug_toolbar.CatalogPanel"]``

It shows states, reasons, sources and times: never an item, a header, a body or a URL.
"""

from __future__ import annotations

from typing import Any

from debug_toolbar.panels import Panel
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from catalog_fallback.recording import Considered, Finished, Recording, seconds_of
from catalog_fallback.results import CacheStatus


class CatalogPanel(Panel):
    """The lookups of one request, and the calls that were made for them."""

    title = _("Catalog lookups")
    nav_title = _("Catalogs")
    template = "catalog_fallback/debug_toolbar/panel.html"
    is_async = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._recording = Recording()

    @property
    def nav_subtitle(self) -> str:
        """How many lookups, and how long they took together."""
        totals = self.get_stats().get("totals")
        if not totals:
            return ""
        text = ngettext("%(count)d lookup in %(ms).1f ms", "%(count)d lookups in %(ms).1f ms", totals["lookups"])
        return text % {"count": totals["lookups"], "ms": totals["elapsed_ms"]}

    def enable_instrumentation(self) -> None:
        """Begin to record."""
        self._recording.open()

    def disable_instrumentation(self) -> None:
        """Record no more; with the last panel the signals have no listener any more."""
        self._recording.close()

    def generate_stats(self, request: HttpRequest, response: HttpResponse) -> None:
        """Keep what was recorded as plain JSON types, which the history of the toolbar needs."""
        self.record_stats(stats_of(self._recording))

    def generate_server_timing(self, request: HttpRequest, response: HttpResponse) -> None:
        """Add the lookups to the toolbar's own Server-Timing header."""
        totals = self.get_stats()["totals"]
        if totals["lookups"]:
            self.record_server_timing("lookups", f"{totals['lookups']} lookups", totals["elapsed_ms"])


def stats_of(recording: Recording) -> dict[str, Any]:
    """Return what the panel shows, in plain JSON types; times are milliseconds.

    ``calls`` are those of this request: the trace of a lookup that joined somebody's flight tells of theirs.
    """
    lookups, calls = recording.lookups, recording.calls
    made = [each for each in calls if each.attempt.called]
    return {
        "lookups": [_lookup(each) for each in lookups],
        "calls": [_call(each) for each in calls],
        "totals": {
            "lookups": len(lookups),
            "elapsed_ms": _ms(seconds_of(lookups)),
            "hits": sum(each.lookup.cache is CacheStatus.HIT for each in lookups),
            "misses": sum(each.lookup.cache is CacheStatus.MISS for each in lookups),
            "stale": sum(each.lookup.cache is CacheStatus.STALE for each in lookups),
            "degraded": sum(each.lookup.degraded for each in lookups),
            "calls": len(made),
            "call_ms": _ms(seconds_of(made)),
            "refused": len(calls) - len(made),
        },
    }


def _lookup(finished: Finished) -> dict[str, Any]:
    lookup = finished.lookup
    return {
        "item_id": lookup.item_id,
        "catalog": lookup.catalog,
        "state": str(lookup.state),
        "reason": lookup.reason,
        "source": lookup.source,
        "cache": str(lookup.cache),
        "degraded": lookup.degraded,
        "elapsed_ms": _ms(finished.ended_at - finished.started_at),
        "trace": [attempt.as_dict() for attempt in lookup.trace],
    }


def _call(considered: Considered) -> dict[str, Any]:
    return {"catalog": considered.catalog, **considered.attempt.as_dict()}


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
