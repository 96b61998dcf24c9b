"""What does a catalog with the default envelope say? And one whose envelope can be described in OPTIONS?

The default is ``{"item": {"id": "P001", "name": "…"}}`` or ``{"item": null}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog_fallback import classify
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Reply, Verdict
from catalog_fallback.sources import json_body, json_reply
from catalog_fallback.sources.base import Source
from catalog_fallback.sources.json_envelope import envelope


class JSONItemSource(Source):
    """An API that speaks the default envelope, or one near it. Paths are written with dots, ``"data.0.attributes"``.

    ``item_path``
        Where the item is in the body; ``""``: the body is the item.
    ``id_field``, ``name_field``
        Where its ID and its name are in the item.
    ``fields``
        Our field → where it is in the item. Without it the item is kept as it comes.
    ``not_found_when``
        Path → value: a 200 or 404 whose body has all of them says "no such item", and nothing else does.
    """

    def __init__(
        self,
        config: SourceConfig,
        *,
        item_path: str = "item",
        id_field: str = "id",
        name_field: str = "name",
        fields: Mapping[str, str] | None = None,
        not_found_when: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the description of the envelope from OPTIONS."""
        super().__init__(config)
        self._envelope = envelope(item_path, id_field, name_field, fields, not_found_when or {})

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Return what the reply means: status, then JSON, then envelope, then item."""
        if reply.status == 404 and self._envelope.says_not_found(self._decoded(reply)):
            return classify.verdict("empty_result")
        document = json_reply.document(reply, self._envelope.unique)
        return document if isinstance(document, Verdict) else self._envelope.judge(document, item_id)

    def _decoded(self, reply: Reply) -> Any:
        return json_body.decode(reply.body, self._envelope.unique)
