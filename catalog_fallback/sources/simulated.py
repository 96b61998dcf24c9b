"""How does a catalog behave that does not exist? A source without HTTP, for development, demonstrations and tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from catalog_fallback import clock
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Reply
from catalog_fallback.sources.json_item import JSONItemSource


class SimulatedSource(JSONItemSource):
    """Answers from OPTIONS, through the same parsing as the real thing.

    ``items``
        ID → name, or ID → mapping of further fields. Every other ID is not found.
    ``delay``
        Seconds that each call takes; more than TIMEOUT is a time-out.
    ``failure``
        What every call ends with: an HTTP status, or a reason of a call without a reply (``"timeout"``,
        ``"connect_failed"``, ``"dns_failed"``, …). None: nothing fails.
    ``failing``
        ID → the same, for single IDs.
    """

    needs_url: ClassVar[bool] = False
    is_simulated: ClassVar[bool] = True

    def __init__(
        self,
        config: SourceConfig,
        *,
        items: Mapping[str, str | Mapping[str, Any]] | None = None,
        delay: float = 0.0,
        failure: int | str | None = None,
        failing: Mapping[str, int | str] | None = None,
    ) -> None:
        """Take the scenario from OPTIONS; no connection is ever made."""
        super().__init__(config)
        self.items = dict(items or {})
        self.delay = delay
        self.failure = failure
        self.failing = dict(failing or {})

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """Answer as the scenario says, after its delay."""
        clock.sleep(max(0.0, min(self.delay, timeout)))
        if self.delay > timeout:
            return NoReply("timeout")
        failure = self.failing.get(item_id, self.failure)
        if isinstance(failure, str):
            return NoReply(failure)
        if failure is not None:
            return Reply(failure)
        return Reply(200, {"content-type": "application/json"}, json.dumps({"item": self._item(item_id)}).encode())

    def _item(self, item_id: str) -> dict[str, Any] | None:
        item = self.items.get(item_id)
        if item is None:
            return None
        return {"id": item_id, "name": item} if isinstance(item, str) else {"id": item_id, **item}
