"""How is a failure told over HTTP? As problem details (RFC 9457), each kind with its own type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext_lazy as _

from catalog_fallback import conf
from catalog_fallback.models import StopReason

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

TYPE_PREFIX = "urn:problem-type:catalog-fallback:"
CONTENT_TYPE = "application/problem+json"
#: Seconds after which a client may try again where nobody knows better.
RETRY_AFTER = 5
#: Longest time that a client is asked to wait, in seconds.
LONGEST_RETRY_AFTER = 3600


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of failure: its status, and its title, which is the same each time but for the language."""

    status: int
    title: _StrPromise


#: Name → problem; ``docs/reference/statuses.md`` says when each is told.
PROBLEMS: Mapping[str, Problem] = MappingProxyType(
    {
        "not_found": Problem(404, _("No catalog has this item")),
        "stopped": Problem(410, _("This item was withdrawn")),
        "unavailable": Problem(503, _("It could not be found out whether this item exists")),
        "call_rejected": Problem(503, _("This cannot be done now")),
        "invalid_item_id": Problem(400, _("This cannot be an item ID")),
        "unknown_catalog": Problem(404, _("There is no such catalog")),
        "method_not_allowed": Problem(405, _("This method is not possible here")),
        "malformed_notice": Problem(400, _("The notice cannot be understood")),
        "bad_signature": Problem(403, _("The notice is not signed as it should be")),
        "too_large": Problem(413, _("The notice is too large")),
        "unsupported_media_type": Problem(415, _("The notice has to be JSON")),
        "not_applied": Problem(503, _("The notice could not be applied")),
    }
)
#: Status of a stopped item by the reason of its stop; every other one is 410.
_LEGAL = MappingProxyType({str(StopReason.LEGAL): 451})


class ProblemEncoder(DjangoJSONEncoder):
    """Shows whatever a site's own fallback data holds."""

    def default(self, o: Any) -> Any:
        """Return a text for what JSON has no word for."""
        try:
            return super().default(o)
        except TypeError:
            return str(o)


def problem(
    name: str,
    detail: str | _StrPromise = "",
    *,
    status: int | None = None,
    retry_after: float | None = None,
    **members: Any,
) -> HttpResponse:
    """Return the response that tells a problem of the table; ``members`` are its further fields.

    None of them is kept by a cache. A 503 or 504 says when to try again.
    """
    kind = PROBLEMS[name]
    code = status or kind.status
    told: dict[str, Any] = {"type": f"{TYPE_PREFIX}{name}", "title": str(kind.title), "status": code}
    if detail:
        told["detail"] = str(detail)
    response = JsonResponse({**told, **members}, encoder=ProblemEncoder, status=code, content_type=CONTENT_TYPE)
    response["Cache-Control"] = "no-store"
    if code in {503, 504}:
        response["Retry-After"] = str(retry_seconds(retry_after))
    return response


def stopped_status(reason: str) -> int:
    """Return the status of an item that was stopped for this reason."""
    return _LEGAL.get(reason, PROBLEMS["stopped"].status)


def unavailable_status(catalog: str) -> int:
    """Return the catalog's UNAVAILABLE_STATUS; 503 where the catalog is not known."""
    config = conf.catalogs().get(catalog)
    return config.unavailable_status if config is not None else PROBLEMS["unavailable"].status


def retry_seconds(retry_after: float | None) -> int:
    """Return whole seconds, 1 to an hour, after which a client may try again."""
    if retry_after is None:
        return RETRY_AFTER
    return min(max(math.ceil(retry_after), 1), LONGEST_RETRY_AFTER)
