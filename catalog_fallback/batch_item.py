"""What belongs to one item while a batch fetches it?"""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog_fallback.boarding import Boarding
from catalog_fallback.calling import Answer
from catalog_fallback.entry_form import Entry
from catalog_fallback.queries import Query


@dataclass(slots=True)
class BatchItem:
    """One item that this batch fetches: the right to, the expired entry in hand, and the sources' answers so far."""

    boarding: Boarding
    old: Entry | None
    answers: list[Answer] = field(default_factory=list)

    @property
    def query(self) -> Query:
        """What is asked."""
        return self.boarding.fill.query

    def extend_lease(self, seconds: float) -> None:
        """Make the lease outlive another call."""
        if self.boarding.lease is not None:
            self.boarding.lease.extend(seconds)
