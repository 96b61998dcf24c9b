"""Does the recipe of docs/how-to/opentelemetry.md make the spans that it promises? It runs with the real SDK."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from catalog_fallback import services, signals
from tests.sites import FOUND, TEMPORARY, Site

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "opentelemetry.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


class Traces:
    """A tracer, and the spans that were finished."""

    def __init__(self, tracer: Any, exporter: Any) -> None:
        self.tracer = tracer
        self._exporter = exporter

    @property
    def spans(self) -> list[Any]:
        """All of them, in the order of their ends."""
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[Any]:
        """Those of one name."""
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def traces(needs: Callable[[str, str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> Traces:
    """A provider of this test's own, which the page's ``get_tracer`` finds."""
    sdk = needs("opentelemetry.sdk.trace", "opentelemetry-sdk")
    from opentelemetry import trace  # noqa: PLC0415  # may be missing
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: PLC0415

    exporter = InMemorySpanExporter()
    provider = sdk.TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return Traces(provider.get_tracer("tests"), exporter)


def block(name: str) -> str:
    """The page's file of that name."""
    (code,) = [code for code in BLOCKS if code.startswith(f"# {name}\n")]
    return code


@pytest.fixture
def recipe(traces: Traces) -> Iterator[dict[str, Any]]:
    """The page's receivers, connected as the page says."""
    names: dict[str, Any] = {}
    exec(compile(block("your_site/tracing.py"), str(PAGE), "exec"), names)  # noqa: S102 - our own page
    names["connect"]()
    yield names
    signals.lookup_finished.disconnect(names["trace_lookup"])
    signals.source_called.disconnect(names["trace_call"])


@pytest.fixture
def traced_source(traces: Traces, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's adapter, where its settings look for it."""
    module = ModuleType("your_site.sources")
    monkeypatch.setitem(sys.modules, "your_site", ModuleType("your_site"))
    monkeypatch.setitem(sys.modules, "your_site.sources", module)
    exec(compile(block("your_site/sources.py"), str(PAGE), "exec"), vars(module))  # noqa: S102 - our own page


def test_spans_of_lookups_and_calls(site: Site, traces: Traces, recipe: dict[str, Any]) -> None:
    """Children of the request's span, with what is needed to read them."""
    site.say(TEMPORARY, FOUND)
    with traces.tracer.start_as_current_span("GET /items/") as request:
        site.find()
        site.find()
    first, second, lookup, hit, outer = traces.spans
    assert [span.name for span in (first, second, lookup, hit)] == [
        "source default/primary",
        "source default/secondary",
        "lookup default",
        "lookup default",
    ]
    assert {span.parent.span_id for span in (first, second, lookup, hit)} == {request.get_span_context().span_id}
    assert {span.context.trace_id for span in traces.spans} == {outer.context.trace_id}
    assert dict(first.attributes) == {
        "catalog.name": "default",
        "catalog.source": "primary",
        "catalog.outcome": "temporary",
        "catalog.reason": "http_503",
        "catalog.called": True,
    }
    assert dict(hit.attributes) == {
        "catalog.name": "default",
        "catalog.state": "found",
        "catalog.reason": "ok",
        "catalog.cache": "hit",
        "catalog.source": "secondary",
    }
    assert [span.status.is_ok for span in (first, second, lookup, hit)] == [False, True, True, True]


def test_times(site: Site, traces: Traces, recipe: dict[str, Any]) -> None:
    """A span is as long as what it stands for, and a call lies within its lookup."""
    site.say(FOUND)
    site.find()
    call, lookup = traces.spans
    assert lookup.start_time <= call.start_time <= call.end_time <= lookup.end_time
    assert call.end_time > call.start_time


def test_no_answer_is_an_error(site: Site, traces: Traces, recipe: dict[str, Any]) -> None:
    """Of the lookup, with the reason; a call that was refused was not made."""
    site.simulate(503)
    for n in range(6):
        site.find(f"P{n:03}")
    lookup = traces.named("lookup default")[-1]
    refused = traces.named("source default/primary")[-1]
    assert (lookup.status.is_ok, lookup.status.description) == (False, "incomplete_search")
    assert (refused.attributes["catalog.reason"], refused.attributes["catalog.called"]) == ("circuit_open", False)
    assert (refused.kind.name, refused.end_time - refused.start_time) == ("INTERNAL", 0)


def test_no_id_anywhere(site: Site, traces: Traces, recipe: dict[str, Any]) -> None:
    """Neither in names nor in attributes."""
    site.say(FOUND)
    site.find("P001")
    site.find("P002")
    assert len(traces.spans) >= 4
    assert not re.search(r"P00\d", "".join(span.to_json() for span in traces.spans))


def test_batches_and_asyncio(site: Site, traces: Traces, recipe: dict[str, Any]) -> None:
    """Threads and tasks have the context of their caller."""
    site.simulate(None)

    async def handle() -> None:
        with traces.tracer.start_as_current_span("async request"):
            await services.afind_item("P001")
            await services.afind_items(["P001", "P002"])

    with traces.tracer.start_as_current_span("batch request"):
        services.find_items(["P003", "P004"])
    asyncio.run(handle())
    (batch,), (task,) = traces.named("batch request"), traces.named("async request")
    parents = [span.parent.span_id for span in traces.named("lookup default")]
    assert parents == [batch.context.span_id] * 2 + [task.context.span_id] * 3
    calls = [span.parent.span_id for span in traces.named("source default/primary")]
    assert sorted(calls) == sorted([batch.context.span_id] * 2 + [task.context.span_id] * 2)


def test_the_http_call(site: Site, traces: Traces, traced_source: None) -> None:
    """A span of its own with the status, whose trace the other side is told."""
    settings: dict[str, Any] = {}
    exec(compile(block("settings.py"), str(PAGE), "exec"), settings)  # noqa: S102
    source = settings["CATALOG_FALLBACK"]["default"]["SOURCES"]["primary"]
    source["URL"] = site.primary.template
    site._settings.CATALOG_FALLBACK = settings["CATALOG_FALLBACK"]
    site.say(FOUND)
    with traces.tracer.start_as_current_span("GET /items/") as request:
        assert site.find().is_found
    (http,) = traces.named("GET")
    assert dict(http.attributes) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "catalog.source": "primary",
    }
    assert http.context.trace_id == request.get_span_context().trace_id
    sent = dict(site.primary.requests[-1].headers)["traceparent"]
    assert sent.startswith(f"00-{http.context.trace_id:032x}-{http.context.span_id:016x}-")


def test_an_http_call_without_a_reply(site: Site, traces: Traces, traced_source: None) -> None:
    """Its reason is the error's type."""
    dead = {"BACKEND": "your_site.sources.TracedSource", "URL": "http://127.0.0.1:1/{id}"}
    site._settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"primary": dead}}}
    site.find()
    (http,) = traces.named("GET")
    assert http.attributes["error.type"] == "connect_failed"
    assert not http.status.is_ok
