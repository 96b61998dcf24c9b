"""Does the simulated source behave like a real one?"""

from __future__ import annotations

from typing import Any

import pytest

from catalog_fallback import clock
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Reply
from catalog_fallback.sources.simulated import SimulatedSource
from tests.sources.contract import ParseContract, json_reply


class TestSimulated(ParseContract):
    """The contract: a test double is held to what the real thing promises."""

    source_class = SimulatedSource
    item_id, other_id = "P001", "P002"
    not_found = (json_reply({"item": None}),)
    no_name = "invalid_item"
    cleans_names = False

    def document(self, item_id: str, name: str) -> Any:
        return {"item": {"id": item_id, "name": name}}


def simulated(**options: Any) -> SimulatedSource:
    """Return a source with this scenario."""
    return SimulatedSource(SourceConfig("simulated"), **options)


def reason(source: SimulatedSource, item_id: str) -> str:
    """Return the reason with which a call for the item ends."""
    reply = source.fetch(item_id, "", {}, timeout=1)
    return reply.reason if isinstance(reply, NoReply) else source.parse(reply, item_id).reason


def test_items_by_name_or_by_mapping() -> None:
    """An item is its name, or a mapping of further fields; every other ID is not found."""
    source = simulated(items={"P001": "Tea", "P002": {"name": "Cake", "price": 3}})
    for item_id, item in (
        ("P001", {"id": "P001", "name": "Tea"}),
        ("P002", {"id": "P002", "name": "Cake", "price": 3}),
    ):
        reply = source.fetch(item_id, "", {}, timeout=1)
        assert isinstance(reply, Reply)
        assert source.parse(reply, item_id).item == item
    assert reason(source, "P003") == "empty_result"


def test_items_may_be_wrong_on_purpose() -> None:
    """A mapping may hold another ID: that is a scenario too."""
    assert reason(simulated(items={"P001": {"id": "P009", "name": "Tea"}}), "P001") == "invalid_item"


@pytest.mark.parametrize(
    ("failure", "expected"), [("connect_failed", "connect_failed"), (503, "http_503"), (404, "http_404"), (None, "ok")]
)
def test_failures(failure: int | str | None, expected: str) -> None:
    """Every call, or the calls for single IDs, end as the scenario says."""
    assert reason(simulated(items={"P001": "Tea"}, failure=failure), "P001") == expected


def test_failing_ids() -> None:
    """Single IDs fail in their own way, the others as all do."""
    source = simulated(items={"P001": "Tea"}, failing={"P002": 429, "P003": "dns_failed"})
    assert [reason(source, item_id) for item_id in ("P001", "P002", "P003")] == ["ok", "http_429", "dns_failed"]


@pytest.mark.parametrize(("delay", "waited", "expected"), [(0.4, 0.4, "ok"), (1.0, 1.0, "ok"), (9.0, 1.0, "timeout")])
def test_delay(monkeypatch: pytest.MonkeyPatch, delay: float, waited: float, expected: str) -> None:
    """A call takes its delay, and never longer than its limit."""
    slept: list[float] = []
    monkeypatch.setattr(clock, "sleep", slept.append)
    assert reason(simulated(items={"P001": "Tea"}, delay=delay), "P001") == expected
    assert slept == [waited]


def test_needs_no_url_and_says_what_it_is() -> None:
    """It can be configured without a URL, and a deploy check can name it."""
    source = simulated()
    assert (source.needs_url, source.is_simulated) == (False, True)
    assert list(source.check()) == []
    source.close()
