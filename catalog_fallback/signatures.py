"""Did somebody who knows a secret send these very bytes, and just now? Standard Webhooks, signed and verified.

The signature is an HMAC-SHA256 over ``id.timestamp.body``, so a body has to be verified as it came, before anything
decodes it. Several secrets (while one replaces the other) and several signatures may be there: one pair is enough.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping

#: Seconds by which the moment of sending may differ from now, either way.
TOLERANCE = 300
ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER = "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"

_SECRET_PREFIX = "whsec_"  # noqa: S105  # how a secret begins, not one
_VERSION = b"v1,"
_MOST_DIGITS = 15


def signed_headers(secret: str, message_id: str, body: bytes, now: float) -> dict[str, str]:
    """Return the headers with which a sender proves that it knows the secret."""
    timestamp = str(int(now))
    signature = _signature(secret, message_id.encode(), timestamp.encode(), body)
    return {ID_HEADER: message_id, TIMESTAMP_HEADER: timestamp, SIGNATURE_HEADER: signature.decode()}


def complaint(secrets: Iterable[str], headers: Mapping[str, str], body: bytes, now: float) -> str | None:
    """Return what is wrong with the signature, for the log; None when it is right and fresh.

    Header values are as WSGI and ASGI hand them over: bytes in the guise of Latin-1. The age counts only after the
    signature was found right: nobody else learns anything about our clock.
    """
    message_id, timestamp, signatures = (
        headers.get(name, "").encode("latin-1", "replace") for name in (ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
    )
    if not (message_id and timestamp and signatures):
        return "it is not signed"
    if not timestamp.isdigit() or len(timestamp) > _MOST_DIGITS:
        return "its timestamp is no whole number of seconds"
    if not _is_signed(secrets, message_id, timestamp, signatures, body):
        return "no signature is right"
    if abs(int(timestamp) - now) > TOLERANCE:
        return f"its timestamp is {int(timestamp) - now:+.0f} s from now"
    return None


def _is_signed(secrets: Iterable[str], message_id: bytes, timestamp: bytes, signatures: bytes, body: bytes) -> bool:
    """Compare every right signature with every one that was sent; how long that takes tells nothing about them."""
    sent = [each for each in signatures.split(b" ") if each.startswith(_VERSION)]
    right = [_signature(secret, message_id, timestamp, body) for secret in secrets]
    return any([hmac.compare_digest(ours, theirs) for ours in right for theirs in sent])  # noqa: C419  # all of them


def _signature(secret: str, message_id: bytes, timestamp: bytes, body: bytes) -> bytes:
    key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX))
    digest = hmac.new(key, b".".join((message_id, timestamp, body)), hashlib.sha256).digest()
    return _VERSION + base64.b64encode(digest)
