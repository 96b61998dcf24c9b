"""Does docs/reference/signals.md name every signal with its arguments? Each is made to be sent."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.dispatch import Signal

from catalog_fallback import receivers, services, signals
from catalog_fallback.testing import fake_source, override_catalog
from tests.docs.pages import DOCS
from tests.docs.scene import scene

TEXT = (DOCS / "reference" / "signals.md").read_text(encoding="utf-8")
SENT, TAKEN = TEXT.split("## Sent by your site")
#: Public signals; the last one is the app's own business.
PUBLIC = {name for name, value in vars(signals).items() if isinstance(value, Signal)} - {"stop_list_changed"}


def rows(part: str) -> dict[str, list[str]]:
    """Signal → arguments of its row."""
    found = re.findall(r"^\| `(\w+)` \| (.+?) \|", part, re.MULTILINE)
    return {name: re.findall(r"`(\w+)`", cell) for name, cell in found}


@pytest.fixture
def heard(transactional_db: None) -> Iterator[dict[str, dict[str, Any]]]:
    """What each outbound signal was last sent with, after lookups, a failure and an invalidation."""
    found: dict[str, dict[str, Any]] = {}

    def listener(signal: Signal, sender: object, **kwargs: Any) -> None:
        (name,) = [name for name in PUBLIC if getattr(signals, name) is signal]
        found[name] = kwargs

    outbound = [getattr(signals, name) for name in rows(SENT)]
    for signal in outbound:
        signal.connect(listener)
    broken = fake_source(failure=503, BREAKER={"CONSECUTIVE_FAILURES": 1})
    try:
        with scene("signals"), override_catalog(SOURCES={"primary": broken}):
            services.find_item("P001")
            services.invalidate_items([f"P{number}" for number in range(700)])
        yield found
    finally:
        for signal in outbound:
            signal.disconnect(listener)


def test_every_signal_has_its_row() -> None:
    """And no row is made up."""
    assert {**rows(SENT), **rows(TAKEN)}.keys() == PUBLIC


def test_they_are_sent_with_these_arguments(heard: dict[str, dict[str, Any]]) -> None:
    """No more, no less."""
    assert {name: sorted(kwargs) for name, kwargs in heard.items()} == {
        name: sorted(arguments) for name, arguments in rows(SENT).items()
    }


def test_all_ids_of_a_call_come_together(heard: dict[str, dict[str, Any]]) -> None:
    """As a tuple."""
    assert len(heard["items_invalidated"]["item_ids"]) == 700


def test_what_a_site_sends_has_these_arguments() -> None:
    """Those that our receiver takes."""
    parameters = inspect.signature(receivers.take_notice).parameters.values()
    taken = [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    assert rows(TAKEN)["deletion_notice"] == taken
