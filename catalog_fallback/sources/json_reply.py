"""Is there a JSON answer in a reply at all? What an adapter of a JSON API asks first: status, then body."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from catalog_fallback import classify, clock
from catalog_fallback.results import Reply
from catalog_fallback.sources import json_body


def document(reply: Reply, unique: Collection[str] = json_body.UNIQUE_NAMES) -> Any:
    """Return what the body of a 200 says, else the Verdict that the status or an unreadable body is by itself.

    ``unique``: names that no object may hold twice, because they decide what the reply means.
    """
    refused = classify.by_status(reply, clock.wall())
    if refused is not None:
        return refused
    decoded = json_body.decode(reply.body, unique)
    return classify.verdict("invalid_json") if decoded is json_body.INVALID_JSON else decoded
