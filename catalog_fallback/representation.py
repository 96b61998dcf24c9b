"""How is a lookup shown over HTTP? Status, headers and body, for programs, browsers and CDNs."""

from __future__ import annotations

import hashlib
import json
from typing import Any, assert_never

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext_lazy as _

from catalog_fallback import cdn, clock, conf
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.problems import ProblemEncoder, problem, stopped_status
from catalog_fallback.results import CacheStatus, Lookup, State

#: Name of our cache in the header Cache-Status (RFC 9211).
CACHE_NAME = "catalog_fallback"
#: May be kept, must be asked about each time: a withdrawn item goes from every browser at once.
_ASK_EACH_TIME = "no-cache"
_KEEP_NOTHING = "no-store"

_NOT_FOUND = _("Every source of this catalog says that it has no such item.")
_UNAVAILABLE = _("This does not mean that there is no such item. Try again later.")
_STOPPED = _("It is not shown, whatever a source of this catalog still has.")


def of_lookup(request: HttpRequest, lookup: Lookup, stop_reason: str = "") -> HttpResponse:
    """Return the response that shows a lookup; ``stop_reason`` is the reason of a stopped one's stop."""
    config = conf.catalog(lookup.catalog)
    match lookup.state:
        case State.FOUND:
            return _found(request, lookup, config)
        case State.NOT_FOUND:
            response = problem("not_found", _NOT_FOUND, **_members(lookup))
            response["Cache-Control"] = _cache_control(lookup, config)
        case State.STOPPED:
            members = {**_members(lookup), "stop_reason": stop_reason} if stop_reason else _members(lookup)
            response = problem("stopped", _STOPPED, status=stopped_status(stop_reason), **members)
        case State.UNAVAILABLE:
            response = _unavailable(lookup, config)
        case _:
            assert_never(lookup.state)
    return _with_provenance(response, lookup, config)


def _found(request: HttpRequest, lookup: Lookup, config: CatalogConfig) -> HttpResponse:
    shown = lookup.as_dict()
    del shown["trace"]
    response: HttpResponse = JsonResponse(shown, encoder=ProblemEncoder)
    response["ETag"] = etag = _etag(shown)
    response["Cache-Control"] = _cache_control(lookup, config)
    conditional = get_conditional_response(request, etag=etag, response=response)
    return _with_provenance(response if conditional is None else conditional, lookup, config)


def _unavailable(lookup: Lookup, config: CatalogConfig) -> HttpResponse:
    members = _members(lookup)
    if lookup.degraded:
        members |= {"item": None if lookup.item is None else dict(lookup.item), "degraded": True}
    status, after = config.unavailable_status, lookup.retry_after
    return problem("unavailable", _UNAVAILABLE, status=status, retry_after=after, **members)


def _members(lookup: Lookup) -> dict[str, Any]:
    return {
        "item_id": lookup.item_id,
        "catalog": lookup.catalog,
        "state": str(lookup.state),
        "reason": lookup.reason,
    }


def _etag(shown: dict[str, Any]) -> str:
    """Over item and provenance, and weak: whether it came from the cache may differ under the same tag."""
    parts = [shown[name] for name in ("item_id", "catalog", "item", "source", "fetched_at", "expires_at")]
    text = json.dumps(parts, cls=ProblemEncoder, sort_keys=True)
    return f'W/"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def _cache_control(lookup: Lookup, config: CatalogConfig) -> str:
    """Browsers ask each time; only a CDN that can be told to forget (CDN_TAG_HEADER) may answer by itself."""
    if lookup.fetched_at is None or lookup.expires_at is None:
        return _KEEP_NOTHING
    seconds = int((lookup.expires_at - lookup.fetched_at).total_seconds())
    if config.cdn_tag_header is None or lookup.is_stale or seconds < 1:
        return _ASK_EACH_TIME
    return f"public, max-age=0, must-revalidate, s-maxage={seconds}"


def _with_provenance(response: HttpResponse, lookup: Lookup, config: CatalogConfig) -> HttpResponse:
    """Add what tells where the answer comes from, and by which tags it can be purged."""
    if lookup.fetched_at is not None:
        response["Age"] = str(max(0, int(clock.wall() - lookup.fetched_at.timestamp())))
    response["Cache-Status"] = _cache_status(lookup)
    if config.cdn_tag_header is not None:
        response[config.cdn_tag_header] = cdn.header_value(config, lookup.item_id)
    return response


def _cache_status(lookup: Lookup) -> str:
    words = {CacheStatus.HIT: "hit", CacheStatus.MISS: "fwd=miss", CacheStatus.STALE: "fwd=stale"}
    parts = [CACHE_NAME, words[lookup.cache]]
    if lookup.expires_at is not None:
        parts += ["stored"] if lookup.cache is CacheStatus.MISS else []
        parts.append(f"ttl={int(lookup.expires_at.timestamp() - clock.wall())}")
    if lookup.is_unavailable:
        parts.append(f"detail={lookup.reason}")
    return "; ".join(parts)
