"""Which people use the admin in the tests, and what is on the stop list?"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from catalog_fallback import clock
from tests.admin.site import SwitchedCache

if TYPE_CHECKING:
    from pytest_django import Settings

SIMULATED = "catalog_fallback.sources.simulated.SimulatedSource"


@pytest.fixture(autouse=True)
def _site(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two catalogs without HTTP; one of them writes its IDs in capitals. Waiting for the cache costs no time."""
    items = {"BACKEND": SIMULATED, "OPTIONS": {"items": {"P001": "Tea", "P002": "Coffee"}}}
    cache = {"BACKEND": "tests.admin.site.SwitchedCache", "OPTIONS": {"MAX_ENTRIES": 10_000}}
    settings.CACHES = {"default": {**cache, "LOCATION": uuid.uuid4().hex}}
    settings.CATALOG_FALLBACK = {
        "default": {"SOURCES": {"only": items}, "STOP_CHECK": "cache"},
        "capitals": {
            "SOURCES": {"only": items},
            "STOP_CHECK": "cache",
            "NORMALIZE_ID": "tests.admin.conftest.capitals",
        },
    }
    settings.ROOT_URLCONF = "tests.admin.site"
    monkeypatch.setattr(clock, "sleep", lambda seconds: None)
    yield
    SwitchedCache.is_on = True


def capitals(item_id: str) -> str:
    """Write an ID as the catalog of that name wants it."""
    return item_id.replace(" ", "").upper()


@pytest.fixture
def cache_off() -> None:
    """The cache cannot be reached."""
    SwitchedCache.is_on = False


Login = Callable[..., Client]


@pytest.fixture
def login(transactional_db: None) -> Login:
    """Return a browser of somebody with these permissions on the stop list."""

    def make(*permissions: str) -> Client:
        user = User.objects.create_user(f"user-{'-'.join(permissions)}", password="secret", is_staff=True)
        for name in permissions:
            user.user_permissions.add(Permission.objects.get(codename=f"{name}_stoppeditem"))
        browser = Client(enforce_csrf_checks=False)
        browser.force_login(user)
        return browser

    return make


@pytest.fixture
def browser(login: Login) -> Client:
    """The browser of somebody who may do everything with the stop list."""
    return login("view", "add", "change", "delete")
