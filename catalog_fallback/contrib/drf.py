"""How does Django REST framework tell our exceptions? With its own, whose ``wait`` becomes Retry-After.

``REST_FRAMEWORK = {"EXCEPTION_HANDLER": "catalog_fallback.contrib.drf.exception_handler"}``
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import status
from rest_framework.exceptions import APIException, NotFound, ParseError
from rest_framework.response import Response
from rest_framework.views import exception_handler as handle_api_exception

from catalog_fallback import stop_list
from catalog_fallback.exceptions import CallRejected, InvalidItemID, ItemNotFound, ItemStopped, ItemUnavailable
from catalog_fallback.problems import PROBLEMS, retry_seconds, stopped_status, unavailable_status

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class Stopped(APIException):
    """The item was withdrawn: 410, or 451 for the reason ``legal``."""

    status_code = status.HTTP_410_GONE
    default_detail = PROBLEMS["stopped"].title
    default_code = "stopped"

    def __init__(self, reason: str = "") -> None:
        super().__init__()
        self.status_code = stopped_status(reason)


class Unavailable(APIException):
    """It could not be found out, or not be done, now: 503 (or UNAVAILABLE_STATUS) with Retry-After."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_code = "unavailable"

    def __init__(self, detail: str | _StrPromise, catalog: str, retry_after: float | None) -> None:
        super().__init__(detail)
        self.status_code = unavailable_status(catalog)
        self.wait = retry_seconds(retry_after)


def api_exception(error: Exception) -> Any:
    """Return the framework's exception for one of ours; every other one as it is."""
    match error:
        case ItemNotFound():
            return NotFound(PROBLEMS["not_found"].title)
        case InvalidItemID():
            return ParseError(PROBLEMS["invalid_item_id"].title)
        case ItemStopped():
            return Stopped(error.reason or stop_list.reason_of(error.catalog, error.item_id))
        case ItemUnavailable():
            return Unavailable(PROBLEMS["unavailable"].title, error.catalog, error.retry_after)
        case CallRejected():
            return Unavailable(PROBLEMS["call_rejected"].title, error.catalog, error.retry_after)
        case _:
            return error


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """The framework's own handler, which now understands our exceptions too."""
    response: Response | None = handle_api_exception(api_exception(error), context)
    return response
