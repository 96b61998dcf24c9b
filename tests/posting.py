"""How does somebody send deletion notices? Signed or not, through Django's test client."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from django.test import Client

from catalog_fallback import clock, signatures

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(b"o" * 32).decode()
URL = "/catalog/default/notices/"


def payload(
    type_: str = "item.deleted", ids: str | list[str] = "P001", *, at: datetime | str | None = None, **data: Any
) -> bytes:
    """The body of a notice; what happened, happened now."""
    named = {"id": ids} if isinstance(ids, str) else {"ids": ids}
    moment = datetime.fromtimestamp(clock.wall(), UTC) if at is None else at
    shown = moment if isinstance(moment, str) else moment.isoformat()
    return json.dumps({"type": type_, "timestamp": shown, "data": {**named, **data}}).encode()


def signed(body: bytes, secret: str = SECRET, *, sent_ago: float = 0.0) -> dict[str, str]:
    """The headers of a body that was sent so many seconds ago."""
    return signatures.signed_headers(secret, "msg_1", body, clock.wall() - sent_ago)


def post(
    body: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    url: str = URL,
    content_type: str = "application/json",
    client: Client | None = None,
) -> HttpResponse:
    """Post a body, signed as it should be unless headers are given; an exception in a view is a 500."""
    client = client or Client(enforce_csrf_checks=True, raise_request_exception=False)
    headers = signed(body) if headers is None else headers
    return client.post(url, body, content_type=content_type, headers=dict(headers))  # type: ignore[return-value]
