"""What does a benchmark need around it? Addresses, and IDs that nobody has asked for yet."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.catalog_server import FIELDS


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The servers of this run. ``is_large``: also measure what takes minutes."""

    redis: str
    catalog: str
    is_large: bool = False
    _numbers: Iterator[int] = field(default_factory=itertools.count, repr=False)

    def fresh_id(self) -> str:
        """An ID that has not been asked for in this run."""
        return f"N{next(self._numbers):08d}"

    def an_item(self, item_id: str) -> dict[str, Any]:
        """What the catalog would answer, without asking it."""
        return {"id": item_id, **FIELDS}

    def item_url(self, item_id: str) -> str:
        """Where the catalog has an item."""
        return f"{self.catalog}/items/{item_id}"
