"""Does a lookup that starts after a stop see it, where the gate cannot tell? STOP_CHECK = "database"."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection

from catalog_fallback.models import StoppedItem
from catalog_fallback.results import Lookup
from catalog_fallback.services import find_item, find_items
from catalog_fallback.sources.simulated import SimulatedSource

_began, _go_on = threading.Event(), threading.Event()


class Waits(SimulatedSource):
    """Tells when it is called, and answers when the test says so."""

    def fetch(self, *args: Any, **kwargs: Any) -> Any:
        """Stop in the middle of the call."""
        _began.set()
        _go_on.wait(10)
        return super().fetch(*args, **kwargs)


def _stop_as_another_process_would() -> None:
    """Its row is committed, and its gate is in a cache that this process does not share."""
    StoppedItem.objects.bulk_create([StoppedItem(catalog="default", item_id="P001")])
    with connection.cursor() as cursor:
        cursor.execute("UPDATE catalog_fallback_stoppeditem SET is_active = %s", [True])


@pytest.mark.parametrize(
    "ask", [find_item, lambda item_id: find_items([item_id])[item_id]], ids=["find_item", "find_items"]
)
@pytest.mark.django_db(transaction=True)
def test_a_flight_that_began_before_the_stop_is_not_believed(
    settings: Any, monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], Lookup]
) -> None:
    """The one who fetches may have begun before the stop; whoever joins it afterwards asks the database."""
    settings.CATALOG_FALLBACK = {
        "default": {
            "STOP_CHECK": "database",
            "BUDGET": 20,
            "SOURCES": {
                "one": {"BACKEND": f"{__name__}.Waits", "TIMEOUT": 15, "OPTIONS": {"items": {"P001": "A mug"}}}
            },
        }
    }
    monkeypatch.setattr("catalog_fallback.publishing._publish_part", lambda *args, **kwargs: [])
    cache.clear()
    _began.clear()
    _go_on.clear()
    answers: dict[str, Lookup] = {}

    def ask_as(name: str, how: Callable[[str], Lookup]) -> None:
        try:
            answers[name] = how("P001")
        finally:
            connection.close()

    first = threading.Thread(target=ask_as, args=("before", find_item))
    first.start()
    assert _began.wait(10)
    _stop_as_another_process_would()
    second = threading.Thread(target=ask_as, args=("after", ask))
    second.start()
    threading.Timer(0.2, _go_on.set).start()  # whether it has joined by then or not, it must not see the item
    first.join(20)
    second.join(20)
    assert answers["before"].is_found
    assert answers["after"].is_stopped
    assert answers["after"].item is None
