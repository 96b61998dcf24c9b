"""Does the stop list work on a site that keeps local times (USE_TZ = False)?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog_fallback.models import StoppedItem
from catalog_fallback.services import release_item, stop_item

NOON = datetime(2026, 5, 3, 12, tzinfo=UTC)


@pytest.mark.django_db(transaction=True)
def test_events_are_ordered_without_time_zones(settings: Any) -> None:
    """An aware event time is stored as the columns take it, and orders events as it does elsewhere."""
    settings.USE_TZ = False
    assert stop_item("P001", event_at=NOON) == 1
    assert release_item("P001", event_at=NOON - timedelta(hours=1)) == 0
    assert StoppedItem.objects.get().is_active
    assert release_item("P001", event_at=NOON.astimezone()) == 1
    assert not StoppedItem.objects.get().is_active
    assert stop_item("P001") == 1
