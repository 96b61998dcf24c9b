"""Do the developer tools of a browser get the times of a request's lookups, and only they?"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import AsyncClient, Client
from django.urls import path

from catalog_fallback import services, signals
from tests.sites import LOCMEM, SIMULATED

Get = Callable[..., Any]
#: One entry as the specification writes it: a token, a duration, a quoted string.
ENTRY = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+);dur=([0-9]+\.[0-9]{3});desc=\"([^\"\\]*)\"")


class Shown:
    """What the views of the tests do."""

    view: Callable[[], Any] = staticmethod(lambda: None)


def answer(returned: Any) -> Any:
    """The response that a view's function returned, or any other."""
    return returned if isinstance(returned, HttpResponseBase) else HttpResponse("fine")


def page(request: HttpRequest) -> HttpResponse:
    """Do it."""
    return answer(Shown.view())


async def apage(request: HttpRequest) -> HttpResponse:
    """Do it under ASGI."""
    return answer(await sync_to_async(Shown.view)())


async def native(request: HttpRequest) -> HttpResponse:
    """Look up under ASGI, with the verbs for it."""
    await services.afind_item("P001")
    await services.afind_items(["P001", "P002"])
    return HttpResponse("fine")


urlpatterns = [path("page/", page), path("apage/", apage), path("native/", native)]


@pytest.fixture
def shop(settings: Any, transactional_db: None) -> Any:
    """Two catalogs; the aliases of one have all that an alias may have."""
    settings.DEBUG = True
    settings.CACHES = {"default": {"BACKEND": LOCMEM, "LOCATION": uuid.uuid4().hex}}
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = ["catalog_fallback.middleware.ServerTimingMiddleware"]
    found = {"BACKEND": SIMULATED, "OPTIONS": {"items": {"P001": "Tea", "P002": "Mug"}}}
    down = {"BACKEND": SIMULATED, "OPTIONS": {"failure": 503}, "BREAKER": None}
    settings.CATALOG_FALLBACK = {
        "default": {"SOURCES": {"first": down, "second": found}},
        "Books-2_new": {"SOURCES": {"-B_2": found}},
    }
    return settings


@pytest.fixture(params=["sync", "async"])
def get(request: pytest.FixtureRequest, shop: Any) -> Get:
    """Ask for a page whose view runs a function."""

    def call(view: Callable[[], Any]) -> Any:
        Shown.view = staticmethod(view)
        if request.param == "sync":
            return Client().get("/page/")
        return asyncio.run(AsyncClient().get("/apage/"))

    return call


def entries(response: Any) -> dict[str, str]:
    """Name → description of the entries of the header, which has to be well-formed."""
    value = response.headers["Server-Timing"]
    found = ENTRY.findall(value)
    assert ", ".join(f'{name};dur={seconds};desc="{text}"' for name, seconds, text in found) == value
    return {name: text for name, _, text in found}


def test_a_miss_and_a_hit(get: Get) -> None:
    """Lookups for each catalog and cache status, calls for each source."""

    def view() -> None:
        services.find_item("P001")
        services.find_item("P001")
        services.find_item("P009")

    assert entries(get(view)) == {
        "catalog.default.miss": "1x found 1x unavailable",
        "catalog.default.hit": "1x found",
        "source.default.first": "2x http_503",
        "source.default.second": "1x ok 1x empty_result",
    }


def test_no_id_and_only_tokens(get: Get) -> None:
    """Whatever the aliases."""
    response = get(lambda: services.find_item("P001", catalog="Books-2_new"))
    assert entries(response) == {"catalog.Books-2_new.miss": "1x found", "source.Books-2_new.-B_2": "1x ok"}
    assert "P001" not in response.headers["Server-Timing"]


def test_a_batch_is_one_entry(get: Get) -> None:
    """However many items it has."""
    assert entries(get(lambda: services.find_items(["P001", "P002"])))["catalog.default.miss"] == "2x found"


def test_a_page_without_a_lookup_has_no_header(get: Get) -> None:
    """Nothing to say."""
    assert "Server-Timing" not in get(lambda: None).headers


def test_what_is_there_stays(get: Get) -> None:
    """Another instrument's entries."""

    def view() -> HttpResponse:
        services.find_item("P001")
        return HttpResponse("fine", headers={"Server-Timing": "db;dur=53.2"})

    assert get(view).headers["Server-Timing"].startswith("db;dur=53.2, catalog.default.miss;dur=")


def test_a_stream_is_timed_up_to_its_first_byte(get: Get) -> None:
    """What a view looks up before it returns; the header is sent then."""

    def view() -> StreamingHttpResponse:
        services.find_item("P001")
        return StreamingHttpResponse([b"fine"])

    assert "catalog.default.miss" in entries(get(view))


def test_the_verbs_of_asyncio(shop: Any) -> None:
    """Their threads and tasks belong to the request."""
    response = asyncio.run(AsyncClient().get("/native/"))
    assert entries(response) == {
        "catalog.default.miss": "2x found",
        "catalog.default.hit": "1x found",
        "source.default.first": "2x http_503",
        "source.default.second": "2x ok",
    }


def test_visitors_get_no_times(get: Get, shop: Any) -> None:
    """Without DEBUG the middleware is not even there."""
    shop.DEBUG = False
    heard: list[bool] = []
    response = get(lambda: (services.find_item("P001"), heard.append(bool(signals.lookup_finished.receivers)))[1])
    assert "Server-Timing" not in response.headers
    assert heard == [False]


def test_nobody_listens_afterwards(get: Get) -> None:
    """Of a view that broke, too."""
    with pytest.raises(ZeroDivisionError):
        get(lambda: 1 / 0)
    assert not signals.lookup_finished.receivers
