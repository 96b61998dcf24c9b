"""What would a lookup meet now?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from catalog_fallback.results.lookup import Lookup


class SourceExplanation(NamedTuple):
    """Whether a source could be called now, and if not, why and until when (seconds)."""

    source: str
    may_call: bool
    reason: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a lookup would find now: stop list, cached entry, sources. Nobody was called."""

    item_id: str
    catalog: str
    is_stopped: bool | None
    entry: Lookup | None
    sources: tuple[SourceExplanation, ...]
