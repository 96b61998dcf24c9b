"""Does a visitor get a page, and a program problem details, when a site's own view raises our exceptions?"""

from __future__ import annotations

import asyncio
import pickle
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.urls import path

from catalog_fallback import exceptions, services
from catalog_fallback.exceptions import ItemNotFound, ItemStopped, ItemUnavailable
from catalog_fallback.results import Lookup, State
from tests.sites import SIMULATED

Get = Callable[..., Any]


class Shown:
    """What the views of the tests do."""

    view: Callable[[], Any] = staticmethod(lambda: None)


def page(request: HttpRequest) -> HttpResponse:
    """Do it."""
    Shown.view()
    return HttpResponse("fine")


async def apage(request: HttpRequest) -> HttpResponse:
    """Do it under ASGI."""
    await sync_to_async(Shown.view)()
    return HttpResponse("fine")


urlpatterns = [path("page/", page), path("apage/", apage)]


@pytest.fixture(params=["sync", "async"])
def get(request: pytest.FixtureRequest, settings: Any, transactional_db: None) -> Get:
    """Ask for a page whose view runs a function; two catalogs with different statuses."""
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": uuid.uuid4().hex}
    }
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = [
        "django.middleware.common.CommonMiddleware",
        "catalog_fallback.middleware.CatalogErrorMiddleware",
    ]
    source = {"BACKEND": SIMULATED, "OPTIONS": {"failing": {"BUSY": 503}}}
    settings.CATALOG_FALLBACK = {
        "default": {"SOURCES": {"only": source}},
        "slow": {"SOURCES": {"only": source}, "UNAVAILABLE_STATUS": 504},
    }

    def call(view: Callable[[], Any], **headers: str) -> Any:
        Shown.view = staticmethod(view)
        if request.param == "sync":
            return Client().get("/page/", headers=headers)
        return asyncio.run(AsyncClient().get("/apage/", headers=headers))

    return call


def raising(error: Exception) -> Callable[[], None]:
    """A view that raises."""

    def view() -> None:
        raise error

    return view


def looking_up(item_id: str, catalog: str = "default") -> Callable[[], Any]:
    """A view that looks up and takes for granted that there is an item."""
    return lambda: Lookup(item_id, catalog, State.STOPPED, "stopped").raise_for_state()


def test_what_is_fine_passes(get: Get) -> None:
    """Nothing is changed."""
    assert get(lambda: None).content == b"fine"


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        pytest.param(ItemNotFound("secret"), 404, b"No such item", id="not-found"),
        pytest.param(ItemStopped("secret"), 410, b"Withdrawn", id="stopped"),
        pytest.param(ItemStopped("secret", reason="legal"), 451, b"Withdrawn", id="legal"),
        pytest.param(ItemUnavailable("secret", retry_after=7.2), 503, b"Could not find out", id="unavailable"),
        pytest.param(ItemUnavailable("secret", catalog="slow"), 504, b"Could not find out", id="504"),
        pytest.param(exceptions.CircuitOpen("secret", catalog="slow"), 504, b"Not possible", id="circuit-open"),
        pytest.param(exceptions.RateLimited("secret", catalog="gone"), 503, b"Not possible", id="unknown-catalog"),
        pytest.param(exceptions.BudgetExhausted("secret"), 503, b"Not possible", id="no-budget"),
    ],
)
def test_a_page_for_people(get: Get, error: Exception, status: int, words: bytes) -> None:
    """In plain words; the exception's own text is for developers."""
    for headers in ({}, {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}):
        reply = get(raising(error), **headers)
        assert (reply.status_code, reply["Content-Type"]) == (status, "text/html; charset=utf-8")
        assert words in reply.content
        assert b"secret" not in reply.content
        assert (reply["Cache-Control"], reply["Vary"]) == ("no-store", "Accept")
        assert ("Retry-After" in reply.headers) is (status >= 500)


@pytest.mark.parametrize(
    "error", [ItemNotFound(""), ItemStopped(""), ItemUnavailable(""), exceptions.RateLimited("")], ids=repr
)
def test_the_title_of_the_page_is_its_heading(get: Get, error: Exception) -> None:
    """On one line, as a tab or a bookmark shows it."""
    page = get(raising(error)).content.decode()
    title, heading = (re.search(rf"<{tag}>(.*)</{tag}>", page) for tag in ("title", "h1"))
    assert title is not None
    assert heading is not None
    assert title[1] == heading[1] == title[1].strip() != ""


@pytest.mark.parametrize("accept", ["application/json", "application/problem+json, text/html;q=0.5"])
def test_problem_details_for_programs(get: Get, accept: str) -> None:
    """Whoever would rather have JSON gets it."""
    reply = get(raising(ItemUnavailable("secret", retry_after=7.2)), accept=accept)
    assert (reply.status_code, reply["Content-Type"]) == (503, "application/problem+json")
    assert (reply["Retry-After"], reply.json()["status"]) == ("8", 503)


@pytest.mark.parametrize(("reason", "status"), [("legal", 451), ("withdrawn", 410)])
def test_the_reason_of_a_stop_is_asked_for(get: Get, reason: str, status: int) -> None:
    """``raise_for_state()`` does not know it; the stop list does."""
    services.stop_item("P001", reason=reason)
    assert get(looking_up("P001")).status_code == status


def test_not_stopped_any_more(get: Get) -> None:
    """Without a reason it is 410."""
    assert get(looking_up("P002")).status_code == 410


LOOKUPS: dict[str, tuple[State, str, dict[str, str]]] = {
    "not found": (State.NOT_FOUND, "all_not_found", {}),
    "unavailable": (State.UNAVAILABLE, "incomplete_search", {}),
    "stopped": (State.STOPPED, "stopped", {"stop_reason": "legal"}),
}


@pytest.mark.parametrize("case", LOOKUPS)
def test_programs_learn_which_item_it_is(get: Get, case: str) -> None:
    """The members are those of the item view."""
    state, reason, more = LOOKUPS[case]
    if state is State.STOPPED:
        services.stop_item("P001", reason="legal")
    told = get(Lookup("P001", "default", state, reason).raise_for_state, accept="application/json").json()
    known = {name: value for name, value in told.items() if name not in {"type", "title", "status"}}
    assert known == {"item_id": "P001", "catalog": "default", "state": str(state), "reason": reason, **more}


def test_the_states_of_a_real_lookup(get: Get) -> None:
    """Not found, and unavailable with the status of its own catalog."""
    assert get(lambda: services.find_item("P404").raise_for_state()).status_code == 404
    assert get(lambda: services.find_item("BUSY", catalog="slow").raise_for_state()).status_code == 504


@pytest.mark.parametrize(
    "error", [exceptions.InvalidationFailed("x"), exceptions.InvalidItemID("x"), RuntimeError("x")], ids=str
)
def test_other_exceptions_pass(get: Get, error: Exception) -> None:
    """Misuse and failures of the site itself are still its errors."""
    with pytest.raises(type(error)):
        get(raising(error))


@pytest.mark.parametrize(
    "error",
    [ItemStopped("x", reason="legal", catalog="c", item_id="P"), ItemUnavailable("x", retry_after=1.0, catalog="c")],
    ids=["stopped", "unavailable"],
)
def test_exceptions_travel(error: Exception) -> None:
    """Between processes, with what they know."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.args, vars(copy)) == (type(error), error.args, vars(error))
