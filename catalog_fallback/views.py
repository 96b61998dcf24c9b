"""What can be asked over HTTP? One item as JSON (sync and async), and a place where deletion notices are posted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from catalog_fallback import aio, conf, notices, services, stop_list
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.notices import MAX_BYTES, Refused
from catalog_fallback.problems import problem
from catalog_fallback.representation import of_lookup

View = TypeVar("View", bound=Callable[..., Any])

_MOST_DIGITS = len(str(MAX_BYTES))


class _EveryDatabase(set[str]):
    """The databases whose ATOMIC_REQUESTS does not count: all that there are, and ever will be."""

    def __contains__(self, alias: object) -> bool:
        return True


def _outside_transactions(view: View) -> View:
    """Run the view outside ATOMIC_REQUESTS: no transaction is held while a source is asked.

    And what the view answers is true when it is sent, not after a commit that may fail.
    """
    view._non_atomic_requests = _EveryDatabase()  # type: ignore[attr-defined]  # as non_atomic_requests() does
    return view


@_outside_transactions
def item(request: HttpRequest, catalog: str, item_id: str) -> HttpResponse:
    """Show one item. There are no query parameters: each would be another variant in the cache."""
    if (refusal := _refused_question(request, catalog)) is not None:
        return refusal
    try:
        lookup = services.find_item(item_id, catalog=catalog)
    except InvalidItemID:
        return _impossible_id()
    reason = stop_list.reason_of(catalog, lookup.item_id) if lookup.is_stopped else ""
    return of_lookup(request, lookup, reason)


@_outside_transactions
async def aitem(request: HttpRequest, catalog: str, item_id: str) -> HttpResponse:
    """:func:`item` for ASGI: never blocks the event loop."""
    if (refusal := _refused_question(request, catalog)) is not None:
        return refusal
    try:
        lookup = await services.afind_item(item_id, catalog=catalog)
    except InvalidItemID:
        return _impossible_id()
    asks = partial(stop_list.reason_of, catalog, lookup.item_id)
    reason = await aio.in_thread(asks) if lookup.is_stopped else ""
    return of_lookup(request, lookup, reason or "")


@csrf_exempt
@login_not_required
@_outside_transactions
def notice(request: HttpRequest, catalog: str) -> HttpResponse:
    """Take a deletion notice: 200 when it is done, 503 when it has to be sent again."""
    if (refusal := _wrong_method(request, "POST")) is not None:
        return refusal
    config = conf.catalogs().get(catalog)
    if config is None:
        return problem("unknown_catalog")
    if not _is_json(request.content_type or ""):
        return problem("unsupported_media_type", _("Send it as application/json."))
    body = _body(request)
    if isinstance(body, HttpResponse):
        return body
    taken = notices.take(config, request.headers, body)
    if isinstance(taken, Refused):
        return problem(taken.problem, taken.detail, **taken.members)
    status = "ignored" if taken.is_ignored else "applied"
    return JsonResponse({"status": status, "items": taken.items}, headers={"Cache-Control": "no-store"})


def _wrong_method(request: HttpRequest, *allowed: str) -> HttpResponse | None:
    if request.method in allowed:
        return None
    response = problem("method_not_allowed", _("Possible: {methods}.").format(methods=", ".join(allowed)))
    response["Allow"] = ", ".join(allowed)
    return response


def _refused_question(request: HttpRequest, catalog: str) -> HttpResponse | None:
    """Return why nothing can be asked here, whatever the ID; None when it can."""
    if (refusal := _wrong_method(request, "GET", "HEAD")) is not None:
        return refusal
    config = conf.catalogs().get(catalog)
    if config is None:
        return problem("unknown_catalog")
    if config.required_vary:
        text = _("The items of this catalog have variants, which cannot be asked for here.")
        return problem("unknown_catalog", text)
    return None


def _impossible_id() -> HttpResponse:
    """The exception's own text names settings, which are nobody's business."""
    return problem("invalid_item_id", _("No item of this catalog can have this ID."))


def _is_json(content_type: str) -> bool:
    is_kind_of_json = content_type.startswith("application/") and content_type.endswith("+json")
    return content_type == "application/json" or is_kind_of_json


def _body(request: HttpRequest) -> bytes | HttpResponse:
    """Return the raw body; refuse a long one before it is read, whatever the request says of its length."""
    length = request.headers.get("Content-Length", "").lstrip("0")
    too_large = problem("too_large", _("At most {limit} bytes are taken.").format(limit=MAX_BYTES))
    if length.isascii() and length.isdigit() and (len(length) > _MOST_DIGITS or int(length) > MAX_BYTES):
        return too_large
    try:
        body = request.read(MAX_BYTES + 1)
    except UnreadablePostError:
        return problem("malformed_notice", _("The body ended before it was complete."))
    if len(body) > MAX_BYTES:
        return too_large
    return body or problem("malformed_notice", _("There is no body, or its length is not given."))
