"""Does the panel show what a request looked up, later from the toolbar's history too, and nothing that is secret?"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.urls import include, path

from catalog_fallback import services, signals
from tests.sites import SIMULATED

PANEL = "catalog_fallback.contrib.debug_toolbar.CatalogPanel"


class Shown:
    """What the views of the tests do."""

    view: Callable[[], Any] = staticmethod(lambda: None)


def page(request: HttpRequest) -> HttpResponse:
    """Do it."""
    Shown.view()
    return HttpResponse("<html><body>fine</body></html>")


async def apage(request: HttpRequest) -> HttpResponse:
    """Do it under ASGI."""
    await sync_to_async(Shown.view)()
    return HttpResponse("<html><body>fine</body></html>")


async def native(request: HttpRequest) -> HttpResponse:
    """Look up with the verbs for ASGI."""
    await services.afind_item("P001")
    await services.afind_items(["P001", "P002"])
    return HttpResponse("<html><body>fine</body></html>")


class Toolbar:
    """A site with the toolbar, and a browser in front of it."""

    def __init__(self, module: Any, settings: Any) -> None:
        self._module = module
        self.settings = settings

    def get(self, view: Callable[[], Any] = lambda: None, *, url: str = "/page/") -> Any:
        """Ask for a page whose view runs a function."""
        Shown.view = staticmethod(view)
        if url == "/page/":
            return Client().get(url)
        return asyncio.run(AsyncClient().get(url))

    def stored(self, response: Any) -> dict[str, Any]:
        """What the history has of the request."""
        found = self._module.get_store().panel(response.headers["djdt-request-id"], "CatalogPanel")
        assert json.loads(json.dumps(found)) == found
        return dict(found)

    def shown(self, response: Any) -> str:
        """The HTML of the panel, as the browser fetches it when somebody clicks."""
        query = {"request_id": response.headers["djdt-request-id"], "panel_id": "CatalogPanel"}
        return str(Client().get("/__debug__/render_panel/", query).json()["content"])


@pytest.fixture
def toolbar(needs: Callable[[str, str], Any], settings: Any, transactional_db: None) -> Toolbar:
    """A site with the toolbar and two sources, the first of which is down."""
    needs("debug_toolbar", "django-debug-toolbar")
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "debug_toolbar"]
    from debug_toolbar import store  # noqa: PLC0415  # has a model
    from debug_toolbar.toolbar import DebugToolbar  # noqa: PLC0415

    settings.DEBUG = True
    settings.INTERNAL_IPS = ["127.0.0.1"]
    settings.MIDDLEWARE = ["debug_toolbar.middleware.DebugToolbarMiddleware"]
    settings.DEBUG_TOOLBAR_PANELS = ["debug_toolbar.panels.history.HistoryPanel", PANEL]
    DebugToolbar._panel_classes = DebugToolbar._urlpatterns = None
    urls = [
        path("page/", page),
        path("apage/", apage),
        path("native/", native),
        path("__debug__/", include("debug_toolbar.urls")),
    ]
    settings.ROOT_URLCONF = type("Urls", (), {"urlpatterns": urls})
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": uuid.uuid4().hex}
    }
    items = {"P001": {"name": "Tea", "price": "top secret"}, "P002": "Mug", "<B>": "Bold"}
    found = {"BACKEND": SIMULATED, "OPTIONS": {"items": items}, "HEADERS": {"Authorization": "Bearer s3cret"}}
    down = {"BACKEND": SIMULATED, "OPTIONS": {"failure": 503}, "BREAKER": None}
    settings.CATALOG_FALLBACK = {
        "default": {
            "SOURCES": {"first": down, "second": found},
            "ID_PATTERN": r"[A-Z0-9<>]{1,9}",
            "STOP_CHECK": "cache",
        }
    }
    return Toolbar(store, settings)


def look_up() -> None:
    """A miss, a hit, one that nobody has."""
    services.find_item("P001")
    services.find_item("P001")
    services.find_item("P009")


@pytest.mark.parametrize("url", ["/page/", "/apage/"])
def test_lookups_with_their_trace(toolbar: Toolbar, url: str) -> None:
    """State, reason, source, cache, time, and each source that was considered; under ASGI as well."""
    stats = toolbar.stored(toolbar.get(look_up, url=url))
    told = [
        (each["item_id"], each["state"], each["reason"], each["source"], each["cache"]) for each in stats["lookups"]
    ]
    assert told == [
        ("P001", "found", "ok", "second", "miss"),
        ("P001", "found", "ok", "second", "hit"),
        ("P009", "unavailable", "incomplete_search", None, "miss"),
    ]
    trace = [(each["source"], each["outcome"], each["reason"], each["called"]) for each in stats["lookups"][0]["trace"]]
    assert trace == [("first", "temporary", "http_503", True), ("second", "found", "ok", True)]
    assert all(each["elapsed_ms"] >= 0 for each in stats["lookups"])
    assert [(each["catalog"], each["source"], each["reason"]) for each in stats["calls"]] == [
        ("default", "first", "http_503"),
        ("default", "second", "ok"),
        ("default", "first", "http_503"),
        ("default", "second", "empty_result"),
    ]
    totals = stats["totals"]
    assert [totals[each] for each in ("lookups", "hits", "misses", "stale", "degraded", "calls", "refused")] == [
        3, 1, 2, 0, 0, 4, 0,
    ]  # fmt: skip
    assert totals["elapsed_ms"] >= totals["call_ms"] >= 0


def test_refused_calls(toolbar: Toolbar) -> None:
    """A guard said no: it is in the trace, and no call."""
    toolbar.settings.CATALOG_FALLBACK["default"]["SOURCES"]["first"]["RATE_LIMIT"] = {"CALLS": 1, "PER": 60}
    toolbar.settings.CATALOG_FALLBACK = dict(toolbar.settings.CATALOG_FALLBACK)

    def view() -> None:
        services.find_item("P001")
        services.find_item("P002")

    response = toolbar.get(view)
    stats = toolbar.stored(response)
    assert (stats["totals"]["calls"], stats["totals"]["refused"]) == (3, 1)
    assert stats["lookups"][1]["trace"][0]["called"] is False
    assert "rate_limited, not called" in toolbar.shown(response)


def test_stale_and_own_data_are_counted(toolbar: Toolbar) -> None:
    """What was shown instead of an answer."""
    toolbar.settings.CATALOG_FALLBACK = {
        "default": {
            "SOURCES": {"first": {"BACKEND": SIMULATED, "OPTIONS": {"failure": 503}}},
            "FALLBACK": {"name": "?"},
        }
    }
    response = toolbar.get(lambda: services.find_item("P001"))
    assert toolbar.stored(response)["totals"]["degraded"] == 1
    assert "unavailable (own data)" in toolbar.shown(response)


def test_the_verbs_of_asyncio(toolbar: Toolbar) -> None:
    """Their threads and tasks belong to the request."""
    stats = toolbar.stored(toolbar.get(url="/native/"))
    assert [(each["item_id"], each["cache"]) for each in stats["lookups"]] == [
        ("P001", "miss"),
        ("P001", "hit"),
        ("P002", "miss"),
    ]
    assert stats["totals"]["calls"] == 4


def test_the_panel_in_html(toolbar: Toolbar) -> None:
    """What a developer sees after a click, and in the side bar."""
    response = toolbar.get(look_up)
    html = toolbar.shown(response)
    for text in ("P001", "P009", "first: temporary/http_503", "second: found/ok", "incomplete_search"):
        assert text in html
    assert "Catalogs" in response.content.decode()
    assert "3 lookups in " in response.content.decode()


def test_html_is_escaped(toolbar: Toolbar) -> None:
    """IDs come from visitors."""
    html = toolbar.shown(toolbar.get(lambda: services.find_item("<B>")))
    assert "&lt;B&gt;" in html
    assert "<B>" not in html


def test_neither_bodies_nor_headers(toolbar: Toolbar) -> None:
    """Not in what is stored, not in what is shown."""
    response = toolbar.get(look_up)
    told = json.dumps(toolbar.stored(response)) + toolbar.shown(response) + response.content.decode()
    for secret in ("top secret", "s3cret", "Authorization", "Tea"):
        assert secret not in told


def test_a_page_without_a_lookup(toolbar: Toolbar) -> None:
    """The panel says so."""
    response = toolbar.get()
    assert toolbar.stored(response)["lookups"] == []
    assert "This request looked nothing up." in toolbar.shown(response)
    assert "Server-Timing" not in response.headers


def test_a_panel_that_has_recorded_nothing_yet(toolbar: Toolbar) -> None:
    """The toolbar may ask for its subtitle at any time."""
    from catalog_fallback.contrib.debug_toolbar import CatalogPanel  # noqa: PLC0415  # an extra

    assert CatalogPanel(SimpleNamespace(stats={}), None).nav_subtitle == ""


def test_the_toolbars_own_server_timing(toolbar: Toolbar) -> None:
    """One entry for all lookups."""
    assert toolbar.get(look_up).headers["Server-Timing"].startswith("CatalogPanel_lookups;dur=")


@pytest.mark.parametrize("how", ["by cookie", "by settings", "no debug"])
def test_without_the_panel_nobody_listens(toolbar: Toolbar, how: str) -> None:
    """A disabled panel connects nothing."""
    heard: list[bool] = []
    client = Client()
    if how == "by cookie":
        client.cookies["djdtCatalogPanel"] = "off"
    elif how == "by settings":
        toolbar.settings.DEBUG_TOOLBAR_CONFIG = {"DISABLE_PANELS": {PANEL}}
    else:
        toolbar.settings.DEBUG = False
    Shown.view = staticmethod(lambda: heard.append(bool(signals.lookup_finished.receivers)))
    client.get("/page/")
    toolbar.settings.DEBUG_TOOLBAR_CONFIG = {}
    toolbar.settings.DEBUG = True
    toolbar.get(Shown.view)
    assert heard == [False, True]
    assert not signals.lookup_finished.receivers


def test_a_view_that_breaks_leaves_nobody_listening(toolbar: Toolbar) -> None:
    """The toolbar disables its panels whatever happened."""
    with pytest.raises(ZeroDivisionError):
        toolbar.get(lambda: 1 / 0)
    assert not signals.lookup_finished.receivers
