"""What does a visitor get when a site's own view raises one of our exceptions? A page, or problem details (RFC 9457).

``MIDDLEWARE = [..., "catalog_fallback.middleware.CatalogErrorMiddleware"]``: for what ``raise_for_state()`` and
``guarded()`` raise. Everything else passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from catalog_fallback import stop_list
from catalog_fallback.exceptions import CallRejected, ItemNotFound, ItemStopped, ItemUnavailable
from catalog_fallback.problems import PROBLEMS, problem, stopped_status, unavailable_status

TEMPLATE = "catalog_fallback/problem.html"
_HTML = "text/html"


@dataclass(frozen=True, slots=True)
class _Told:
    """Which problem an exception is, and with which status."""

    name: str
    status: int
    retry_after: float | None = None


class CatalogErrorMiddleware:
    """404, 410, 451, 503 or 504 instead of 500; runs under WSGI and ASGI."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        """Pass the request on; under ASGI this is a coroutine."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return what to show for an exception of ours, None for every other."""
        told = _told(exception)
        if told is None:
            return None
        response = problem(told.name, status=told.status, retry_after=told.retry_after)
        if _wants_page(request):
            page = render(request, TEMPLATE, {"name": told.name, "title": PROBLEMS[told.name].title})
            response.content = page.content
            response["Content-Type"] = page["Content-Type"]
        patch_vary_headers(response, ("Accept",))
        return response


def _told(exception: Exception) -> _Told | None:
    match exception:
        case ItemNotFound():
            return _Told("not_found", 404)
        case ItemStopped():
            reason = exception.reason or stop_list.reason_of(exception.catalog, exception.item_id)
            return _Told("stopped", stopped_status(reason))
        case ItemUnavailable():
            return _Told("unavailable", unavailable_status(exception.catalog), exception.retry_after)
        case CallRejected():
            return _Told("call_rejected", unavailable_status(exception.catalog), exception.retry_after)
        case _:
            return None


def _wants_page(request: HttpRequest) -> bool:
    """Whether the client would rather see a page than JSON."""
    preferred = request.get_preferred_type([_HTML, "application/problem+json", "application/json"])
    return preferred in {_HTML, None}
