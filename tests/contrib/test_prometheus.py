"""Do the metrics count what happens, in one process and in several, and do their labels stay few?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.apps import AppConfig
from django.db import OperationalError

from catalog_fallback import classify, operating, services, signals
from catalog_fallback.guards import guards_of
from catalog_fallback.models import StoppedItem
from catalog_fallback.results import NoReply, Reply
from catalog_fallback.sources.json_item import JSONItemSource
from tests.sites import FOUND, LOCMEM, NOT_FOUND, SIMULATED, TEMPORARY, MovableClock, Site

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "metrics.md"
HOW_TO = ROOT / "docs" / "how-to" / "logs-and-metrics.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Gauges:
    """A registry, and what it says."""

    def __init__(self, module: Any) -> None:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415  # an extra

        self.module = module
        self.registry = CollectorRegistry()
        self.metrics = module.connect(self.registry)

    def __call__(self, name: str, **labels: str) -> float | None:
        """The value of one series of the catalog "default" (or another one); None if there is none."""
        value = self.registry.get_sample_value(f"catalog_fallback_{name}", {"catalog": "default", **labels})
        return None if value is None else float(value)

    def series(self) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        """All series by their name and labels."""
        return {
            (sample.name, tuple(sorted(sample.labels.items())))
            for family in self.registry.collect()
            for sample in family.samples
        }

    def labels(self, name: str) -> list[dict[str, str]]:
        """The labels of all series of one name."""
        return [dict(labels) for found, labels in self.series() if found == f"catalog_fallback_{name}"]


@pytest.fixture
def prometheus(needs: Callable[[str, str], Any]) -> Any:
    """The module."""
    needs("prometheus_client", "prometheus-client")
    from catalog_fallback.contrib import prometheus  # noqa: PLC0415  # an extra

    return prometheus


@pytest.fixture
def gauges(prometheus: Any) -> Iterator[Gauges]:
    """Metrics in a registry of their own."""
    made = Gauges(prometheus)
    yield made
    made.metrics.disconnect()


# --- counters and histograms ----------------------------------------------------------------------------------------


def test_lookups(site: Site, gauges: Gauges) -> None:
    """By catalog, state, reason and cache; hits too."""
    site.say(FOUND)
    site.find()
    site.find()
    site.find()
    services.stop_item("P002")
    site.find("P002")
    site.say(TEMPORARY)
    site.find("P003")
    assert gauges("lookups_total", state="found", reason="ok", cache="miss") == 1
    assert gauges("lookups_total", state="found", reason="ok", cache="hit") == 2
    assert gauges("lookups_total", state="stopped", reason="stopped", cache="miss") == 1
    assert gauges("lookups_total", state="unavailable", reason="incomplete_search", cache="miss") == 1
    assert gauges("lookup_seconds_count", state="found", cache="hit") == 2
    assert len(gauges.labels("lookups_total")) == 4


def test_lookups_of_a_batch(site: Site, gauges: Gauges) -> None:
    """Each of its items is a lookup."""
    site.simulate(None)
    services.find_items(["P001", "P002", "P003"])
    assert gauges("lookups_total", state="found", reason="ok", cache="miss") == 1
    assert gauges("lookups_total", state="not_found", reason="all_not_found", cache="miss") == 2


def test_how_long_they_took(site: Site, gauges: Gauges, moving: MovableClock) -> None:
    """In the bucket where it belongs, lookup and call."""
    source = {"BACKEND": SIMULATED, "OPTIONS": {"delay": 1.2, "items": {"P001": "Tea"}}}
    site._settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"only": source}}}
    site.find()
    for name, labels in {
        "lookup_seconds": {"state": "found", "cache": "miss"},
        "source_call_seconds": {"source": "only", "outcome": "found"},
    }.items():
        assert gauges(f"{name}_bucket", le="1.0", **labels) == 0
        assert gauges(f"{name}_bucket", le="2.0", **labels) == 1
        assert 1.2 <= (gauges(f"{name}_sum", **labels) or 0) < 2


def test_calls_and_refusals(site: Site, gauges: Gauges) -> None:
    """A call that a guard refused is no call."""
    site.simulate(503, None)
    for n in range(7):
        site.find(f"P{n:03}")
    assert gauges("source_calls_total", source="primary", outcome="temporary", reason="http_503") == 5
    assert gauges("source_call_seconds_count", source="primary", outcome="temporary") == 5
    assert gauges("source_refusals_total", source="primary", reason="circuit_open") == 2
    assert gauges("source_calls_total", source="secondary", outcome="found", reason="ok") == 1
    assert gauges("source_calls_total", source="secondary", outcome="not_found", reason="empty_result") == 6


def test_own_data(site: Site, gauges: Gauges) -> None:
    """What was shown instead of an answer."""
    site.simulate(503, FALLBACK={"name": "?"})
    site.find()
    assert gauges("degraded_lookups_total") == 1
    assert gauges("lookups_total", state="unavailable", reason="incomplete_search", cache="miss") == 1


def test_changes_of_breakers(site: Site, gauges: Gauges, moving: MovableClock) -> None:
    """Each once: it opens, probes, closes."""
    site.simulate(503)
    for n in range(6):
        site.find(f"P{n:03}")
    assert gauges("breaker_changes_total", kind="source", source="primary", old="closed", new="open") == 1
    operating.reset_source("default", "primary")
    assert gauges("breaker_changes_total", kind="source", source="primary", old="open", new="closed") == 1


@pytest.mark.parametrize(("alias", "told"), [("pay", "pay"), ("user-4711", "other")])
def test_guards_have_breakers_too(site: Site, gauges: Gauges, alias: str, told: str) -> None:
    """Those of GUARDS under their name; a name that the code made up could be anything."""
    site.simulate(None, GUARDS={"pay": {}})
    guard = guards_of["default"].get(alias)[1]
    for _ in range(5):
        guard.take().fail()
    assert gauges("breaker_changes_total", kind="guard", source=told, old="closed", new="open") == 1


def test_invalidations(site: Site, gauges: Gauges) -> None:
    """Counted in items; the reason of a site may be any text."""
    services.invalidate_items(["P001", "P002"])
    services.invalidate_item("P001", reason="mail of Kim, 3 May")
    services.stop_item("P003", reason="legal")
    services.release_item("P003")
    assert gauges("invalidated_items_total", reason="none") == 2
    assert gauges("invalidated_items_total", reason="other") == 1
    assert gauges("invalidated_items_total", reason="legal") == 1
    assert gauges("invalidated_items_total", reason="released") == 1


# --- what all processes share ---------------------------------------------------------------------------------------


def test_breakers_and_isolation_now(site: Site, gauges: Gauges) -> None:
    """One of the states is 1; nobody is called for it."""
    site.simulate(503, None, GUARDS={"pay": {}})

    def states(source: str, kind: str = "source") -> dict[str, float | None]:
        names = ("closed", "open", "half_open", "isolated")
        return {each: gauges("breaker_state", kind=kind, source=source, state=each) for each in names}

    closed = {"closed": 1, "open": 0, "half_open": 0, "isolated": 0}
    assert states("primary") == states("secondary") == states("pay", "guard") == closed
    for n in range(6):
        site.find(f"P{n:03}")
    operating.isolate_source("default", "secondary")
    assert states("primary") == {**closed, "closed": 0, "open": 1}
    assert states("secondary") == {**closed, "closed": 0, "isolated": 1}
    assert gauges("may_be_called", kind="source", source="primary") == 0
    assert gauges("may_be_called", kind="guard", source="pay") == 1


def test_reading_calls_nobody(site: Site, gauges: Gauges) -> None:
    """A scrape is no lookup."""
    gauges.series()
    assert site.calls == (0, 0)
    assert gauges.labels("lookups_total") == []


def test_the_stop_list(site: Site, gauges: Gauges, moving: MovableClock) -> None:
    """How many are stopped and how many rows are not confirmed, asked at most once a minute."""
    assert (gauges("stopped_items"), gauges("unconfirmed_stops")) == (0, 0)
    services.stop_items(["P001", "P002", "P003"])
    services.release_item("P003")
    StoppedItem.objects.filter(item_id="P001").update(published_at=None)
    assert (gauges("stopped_items"), gauges("unconfirmed_stops")) == (0, 0)
    moving.move(gauges.module.STOP_LIST_LIFE)
    assert (gauges("stopped_items"), gauges("unconfirmed_stops")) == (2, 1)


def test_a_database_that_is_down(site: Site, gauges: Gauges) -> None:
    """The rest of the metrics is still there."""
    with mock.patch.object(gauges.module, "database", side_effect=OperationalError("down")):
        assert gauges("stopped_items") is None
        assert gauges("breaker_state", kind="source", source="primary", state="closed") == 1


def test_a_cache_that_is_down(site: Site, gauges: Gauges) -> None:
    """What this process knows by itself."""
    site.cache_in("tests.stores.RaisingCache")
    assert gauges("breaker_state", kind="source", source="primary", state="closed") == 1


# --- labels ---------------------------------------------------------------------------------------------------------


class Odd(JSONItemSource):
    """A source with a reason, and a status, of its own for every item."""

    needs_url = False

    def fetch(self, item_id: str, language: str, vary: Any, *, timeout: float) -> Reply | NoReply:
        number = int(item_id[1:])
        return NoReply(f"odd_{number}") if number % 2 else Reply(200 + number % 800)


def test_ten_thousand_items_are_no_new_series(settings: Any, transactional_db: None, gauges: Gauges) -> None:
    """Whatever IDs, languages, reasons and statuses there are: as many series after the first hundred as at the end."""
    odd = {"BACKEND": f"{__name__}.Odd", "BREAKER": None, "NEXT_ON": ["not_found", "temporary", "stop"]}
    last = {"BACKEND": SIMULATED, "OPTIONS": {"items": {f"P{n}": "Tea" for n in range(0, 10_000, 3)}}}
    settings.CACHES = {
        "default": {"BACKEND": LOCMEM, "LOCATION": uuid.uuid4().hex, "OPTIONS": {"MAX_ENTRIES": 1_000_000}}
    }
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"odd": odd, "last": last}, "BUDGET": 60}}
    for first in range(0, 10_000, 1000):
        ids = [f"P{n}" for n in range(first, first + 1000)]
        assert len(services.find_items(ids, language=f"l{first}")) == 1000
    series = gauges.series()
    text = repr(series)
    assert (gauges("lookups_total", state="found", reason="ok", cache="miss") or 0) > 3000
    assert gauges("source_calls_total", source="odd", outcome="stop", reason="other")
    assert "odd_" not in text
    assert not re.search(r"P\d|'l\d", text)
    reasons = {each["reason"] for each in gauges.labels("source_calls_total")}
    assert reasons <= gauges.module.REASONS | {"other"}
    # Statuses with a name, the reasons of two sources, two histograms: nothing grows with the items.
    assert len(series) < 300


def test_reasons_that_are_known(prometheus: Any) -> None:
    """All of the classification; of statuses those that have a name."""
    assert all(prometheus.bounded(reason) == reason for reason in classify.REASONS)
    for reason in ("http_404", "http_418", "http_503", "cooling_down", "stop_list_unavailable"):
        assert prometheus.bounded(reason) == reason
    for reason in ("http_599", "http_999", "odd", "", "P001"):
        assert prometheus.bounded(reason) == "other"


# --- connecting -----------------------------------------------------------------------------------------------------


def test_connecting_twice_counts_once(site: Site, gauges: Gauges) -> None:
    """An AppConfig may be ready twice."""
    assert gauges.module.connect(gauges.registry) is gauges.metrics
    site.find()
    assert gauges("lookups_total", state="not_found", reason="all_not_found", cache="miss") is None
    assert sum(len(gauges.labels(name)) for name in ("lookups_total",)) == 1
    assert gauges("lookup_seconds_count", state="unavailable", cache="miss") == 1


def test_disconnected_it_listens_no_more(site: Site, gauges: Gauges) -> None:
    """And may be connected again."""
    site.say(NOT_FOUND)
    gauges.metrics.disconnect()
    site.find()
    assert not any(each.receivers for each in (signals.lookup_finished, signals.source_called, signals.breaker_changed))
    gauges.module.connect(gauges.registry)
    site.find()
    assert gauges("lookups_total", state="not_found", reason="all_not_found", cache="miss") == 1


# --- the pages ------------------------------------------------------------------------------------------------------


def in_code(gauges: Gauges) -> dict[str, tuple[str, list[str]]]:
    """Name → type and labels of all metrics."""
    found: dict[str, tuple[str, list[str]]] = {}
    for each in vars(gauges.metrics).values():
        if hasattr(each, "_labelnames"):
            name = f"{each._name}_total" if each._type == "counter" else each._name
            found[name] = each._type, list(each._labelnames)
    for family in gauges.module.SharedState().describe():
        found[family.name] = family.type, list(family._labelnames)
    return found


def test_the_page_names_all_metrics(gauges: Gauges) -> None:
    """With their types and labels."""
    rows = re.findall(r"^\| `(catalog_fallback_\w+)` \| (\w+) \| (.*?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {name: (kind, re.findall(r"`(\w+)`", labels)) for name, kind, labels in rows} == in_code(gauges)
    assert len(rows) == len(in_code(gauges))


def test_the_page_names_all_buckets(gauges: Gauges) -> None:
    """As numbers in their order."""
    text = " ".join(PAGE.read_text("utf-8").split())
    for buckets in (gauges.module.LOOKUP_BUCKETS, gauges.module.CALL_BUCKETS):
        assert f": {', '.join(f'{each:g}' for each in buckets)}." in text


def test_the_page_names_the_reasons_of_invalidations(prometheus: Any) -> None:
    """All that a label may hold."""
    (row,) = re.findall(r"^\| `reason` of invalidations \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", row)) == {*prometheus.INVALIDATIONS.values(), "other"}


def test_questions_and_alerts_use_what_there_is(gauges: Gauges) -> None:
    """Every name is a metric, every label one of its labels."""
    known = in_code(gauges)
    text = PAGE.read_text("utf-8")
    queries = "\n".join(re.findall(r"^```(?:promql|yaml)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    used = re.findall(r"(catalog_fallback_\w+)(?:\{(.*?)\})?", queries)
    assert len(used) > 15
    for name, selectors in used:
        kind, labels = known[re.sub(r"_bucket$", "", name)]
        assert (kind == "histogram") is name.endswith("_bucket"), name
        assert set(re.findall(r"(\w+)(?:=|!=|=~)\"", selectors)) <= {*labels}, name
    grouped = re.findall(r"by \((.*?)\) \(\s*(?:\w+\()?(catalog_fallback_\w+)", queries)
    assert len(grouped) > 10
    for by, name in grouped:
        labels = known[re.sub(r"_bucket$", "", name)][1]
        assert set(by.split(", ")) <= {*labels, "le"}, name


def blocks(*words: str) -> str:
    """The one block of the how-to that has all of these words."""
    (found,) = [code for code in BLOCK.findall(HOW_TO.read_text("utf-8")) if all(word in code for word in words)]
    return found


def test_the_examples_run(site: Site, prometheus: Any, needs: Callable[[str, str], Any]) -> None:
    """The site's AppConfig and its view, in one process."""
    names: dict[str, Any] = {}
    exec(compile(blocks("AppConfig"), str(HOW_TO), "exec"), names)  # noqa: S102 - our own page
    exec(compile(blocks("def metrics"), str(HOW_TO), "exec"), names)  # noqa: S102
    config: AppConfig = names["YourSiteConfig"]("tests", sys.modules["tests"])
    config.ready()
    try:
        site.find()
        page = names["metrics"](None)
    finally:
        prometheus.connect().disconnect()
    assert page.headers["Content-Type"].startswith("text/plain")
    for text in ('catalog_fallback_lookups_total{cache="miss"', "catalog_fallback_breaker_state{"):
        assert text in page.content.decode()


PROCESS = """
import sys
import django
from django.conf import settings

SIMULATED = {simulated!r}
settings.configure(
    SECRET_KEY="x",
    USE_TZ=True,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "catalog_fallback"],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}},
    CATALOG_FALLBACK={{"default": {{"SOURCES": {{"only": {{"BACKEND": SIMULATED}}}}}}}},
)
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from catalog_fallback import services
from catalog_fallback.contrib.prometheus import connect
connect()
for n in range(int(sys.argv[1])):
    services.find_item(f"P{{n}}")
{view}
if sys.argv[1] == "0":
    print(metrics(None).content.decode())
"""


def test_several_processes(prometheus: Any, tmp_path: Path) -> None:
    """Counters of all processes are added up; what they share is there once."""
    script = textwrap.dedent(PROCESS).format(simulated=SIMULATED, view=blocks("def metrics"))
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    told = ""
    for count in ("3", "4", "0"):
        done = subprocess.run(
            [sys.executable, "-c", script, count],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        told = done.stdout
    labels = 'cache="miss",catalog="default",reason="all_not_found",state="not_found"'
    assert f"catalog_fallback_lookups_total{{{labels}}} 7.0" in told
    assert re.findall(r"^catalog_fallback_breaker_state\{.*state=\"closed\"\} (.*)$", told, re.MULTILINE) == ["1.0"]
    assert 'catalog_fallback_stopped_items{catalog="default"} 0.0' in told
