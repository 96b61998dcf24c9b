"""What does a catalog with the default envelope say?

Either ``{"item": {"id": "P001", "name": "…"}}`` or ``{"item": null}``.
"""

from __future__ import annotations

from typing import Any

from catalog_fallback import classify, clock
from catalog_fallback.results import Reply, Verdict
from catalog_fallback.sources import json_body, text
from catalog_fallback.sources.base import Source


class JSONItemSource(Source):
    """An API that speaks the default envelope. The item is kept as it comes: further fields are the site's business."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Return what the reply means: status, then JSON, then envelope, then item."""
        return classify.by_status(reply, clock.wall()) or judge_envelope(json_body.decode(reply.body), item_id)


def judge_envelope(envelope: Any, item_id: str) -> Verdict:
    """Return what a decoded body means for the item that was asked for."""
    if envelope is json_body.INVALID_JSON:
        return classify.verdict("invalid_json")
    if not isinstance(envelope, dict) or "item" not in envelope:
        return classify.verdict("invalid_schema")
    item = envelope["item"]
    if item is None:
        return classify.verdict("invalid_schema" if _reports_error(envelope) else "empty_result")
    if not isinstance(item, dict):
        return classify.verdict("invalid_schema")
    return classify.found(item) if _is_valid(item, item_id) else classify.verdict("invalid_item")


def _reports_error(envelope: dict[str, Any]) -> bool:
    """Whether an envelope without an item names an error: that is no answer to "is there such an item?"."""
    return bool(envelope.get("error") or envelope.get("errors"))


def _is_valid(item: dict[str, Any], item_id: str) -> bool:
    name = item.get("name")
    return item.get("id") == item_id and isinstance(name, str) and not text.is_blank(name)
