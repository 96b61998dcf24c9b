"""What do responses say of our exceptions and of our lookups?

``MIDDLEWARE = [..., "catalog_fallback.middleware.CatalogErrorMiddleware"]``: a page or problem details (RFC 9457) for
what ``raise_for_state()`` and ``guarded()`` raise. Everything else passes.

``MIDDLEWARE = ["catalog_fallback.middleware.ServerTimingMiddleware", ...]``: under DEBUG, a Server-Timing header with
the lookups of the request, which the browser's developer tools draw.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from catalog_fallback import stop_list
from catalog_fallback.exceptions import CallRejected, ItemNotFound, ItemStopped, ItemUnavailable
from catalog_fallback.problems import PROBLEMS, problem, stopped_status, unavailable_status
from catalog_fallback.recording import Considered, Finished, Recording, seconds_of
from catalog_fallback.results import State

TEMPLATE = "catalog_fallback/problem.html"
_HTML = "text/html"


@dataclass(frozen=True, slots=True)
class _Told:
    """Which problem an exception is, and with which status."""

    name: str
    status: int
    retry_after: float | None = None
    members: Mapping[str, str] = field(default_factory=dict)


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
        response = problem(told.name, status=told.status, retry_after=told.retry_after, **told.members)
        if _wants_page(request):
            page = render(request, TEMPLATE, {"name": told.name, "title": PROBLEMS[told.name].title})
            response.content = page.content
            response["Content-Type"] = page["Content-Type"]
        patch_vary_headers(response, ("Accept",))
        return response


def _told(exception: Exception) -> _Told | None:
    match exception:
        case ItemNotFound():
            return _Told("not_found", 404, members=_members(exception, State.NOT_FOUND, exception.reason))
        case ItemStopped():
            reason = exception.reason or stop_list.reason_of(exception.catalog, exception.item_id)
            members = _members(exception, State.STOPPED, "stopped")
            return _Told(
                "stopped", stopped_status(reason), members={**members, "stop_reason": reason} if reason else members
            )
        case ItemUnavailable():
            members = _members(exception, State.UNAVAILABLE, exception.reason)
            return _Told("unavailable", unavailable_status(exception.catalog), exception.retry_after, members)
        case CallRejected():
            return _Told("call_rejected", unavailable_status(exception.catalog), exception.retry_after)
        case _:
            return None


def _members(exception: ItemNotFound | ItemStopped | ItemUnavailable, state: State, reason: str) -> dict[str, str]:
    """Say of which item it is, as the item view does, where the exception knows."""
    if not exception.item_id:
        return {}
    return {"item_id": exception.item_id, "catalog": exception.catalog, "state": str(state), "reason": reason}


def _wants_page(request: HttpRequest) -> bool:
    """Whether the client would rather see a page than JSON."""
    preferred = request.get_preferred_type([_HTML, "application/problem+json", "application/json"])
    return preferred in {_HTML, None}


class ServerTimingMiddleware:
    """Server-Timing (W3C) with the lookups and the calls of a request; only under DEBUG; runs under WSGI and ASGI.

    Lookups are told together for each catalog and cache status, calls for each source: never an ID.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        if not settings.DEBUG:
            raise MiddlewareNotUsed("Times are for developers, not for visitors.")
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        """Pass the request on and time its lookups; under ASGI this is a coroutine."""
        if self.is_async:
            return self._acall(request)
        with Recording() as recording:
            response = self.get_response(request)
        return _timed(response, recording)

    async def _acall(self, request: HttpRequest) -> Any:
        with Recording() as recording:
            response = await self.get_response(request)
        return _timed(response, recording)


def _timed(response: HttpResponse, recording: Recording) -> HttpResponse:
    """Add our entries to those that are there already."""
    if entries := [*_entries(recording)]:
        response["Server-Timing"] = ", ".join([*filter(None, [response.get("Server-Timing")]), *entries])
    return response


def _entries(recording: Recording) -> Iterator[str]:
    """Yield the entries of the header, in the order in which their like was first seen."""
    lookups: dict[str, list[Finished]] = defaultdict(list)
    for each in recording.lookups:
        lookups[f"catalog.{each.lookup.catalog}.{each.lookup.cache}"].append(each)
    for name, finished in lookups.items():
        yield _entry(name, seconds_of(finished), Counter(each.lookup.state for each in finished))
    calls: dict[str, list[Considered]] = defaultdict(list)
    for call in recording.calls:
        calls[f"source.{call.catalog}.{call.attempt.source}"].append(call)
    for name, considered in calls.items():
        yield _entry(name, seconds_of(considered), Counter(each.attempt.reason for each in considered))


def _entry(name: str, seconds: float, counts: Counter[Any]) -> str:
    """Write one entry; aliases, states and reasons are of ``[A-Za-z0-9_-]``, so a name is a token."""
    told = " ".join(f"{count}x {word}" for word, count in counts.items())
    return f'{name};dur={seconds * 1000:.3f};desc="{told}"'
