"""Is it told truthfully how long a change that the cache has not confirmed may take?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from django.contrib.messages import get_messages
from django.contrib.messages.storage.cookie import CookieStorage
from django.test import RequestFactory

from catalog_fallback import services
from catalog_fallback.admin import telling
from catalog_fallback.exceptions import InvalidationFailed
from tests.admin.conftest import SIMULATED

if TYPE_CHECKING:
    from pytest_django import Settings


@pytest.fixture
def catalogs(settings: Settings) -> None:
    """Catalogs that keep what they found for different times."""
    source = {"only": {"BACKEND": SIMULATED, "OPTIONS": {"items": {}}}}
    special: dict[str, dict[str, Any]] = {
        "default": {},
        "short": {"TTL": 10, "BUDGET": 1.5},
        "stale": {"TTL": 60, "STALE_IF_ERROR": 3600},
        "nothing": {"TTL": 0, "BUDGET": 2},
        "negative": {"NEGATIVE_TTL": 900, "BUDGET": 2},
        "asking": {"STOP_CHECK": "database", "TTL": 86_400},
    }
    settings.CATALOG_FALLBACK = {
        alias: {"SOURCES": source, "STOP_CHECK": "cache", **keys} for alias, keys in special.items()
    }


@pytest.mark.usefixtures("catalogs")
@pytest.mark.parametrize(
    ("names", "gone", "back"),
    [
        pytest.param(["default"], 65, 305, id="ttl-and-budget"),
        pytest.param(["short"], 12, 302, id="rounded-up"),
        pytest.param(["stale"], 3665, 305, id="stale-if-error"),
        pytest.param(["nothing"], 2, 302, id="nothing-is-kept"),
        pytest.param(["negative"], 62, 902, id="negative-ttl"),
        pytest.param(["asking"], 0, 305, id="the-database-is-asked"),
        pytest.param(["short", "stale", "asking"], 3665, 305, id="the-longest-of-several"),
        pytest.param(["removed"], 0, 0, id="not-in-the-settings"),
        pytest.param([], 0, 0, id="none"),
    ],
)
def test_seconds_until_it_holds_everywhere(names: list[str], gone: int, back: int) -> None:
    """What is fetched as the stop is committed may be kept once more; a "stopped" answer has a life of its own."""
    assert telling.seconds_until_gone(names) == gone
    assert telling.seconds_until_back(names) == back


@pytest.mark.parametrize("why", ["the cache did not confirm it", "the stop list could not be read"])
def test_what_failed_is_named_and_nothing_else(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """A publish needs the database as well as the cache."""
    monkeypatch.setattr(services, "invalidate_items", Mock(side_effect=InvalidationFailed(why)))
    request = RequestFactory().post("/")
    request._messages = CookieStorage(request)  # type: ignore[attr-defined]
    assert telling.republish(request, "default", ["P001"]) == 0
    assert [str(message) for message in get_messages(request)] == [why]
