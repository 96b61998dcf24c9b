"""What does one source say? What is asked of it, what comes back, and what that means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Item = Mapping[str, Any]


class Outcome(StrEnum):
    """What one source's reply means."""

    FOUND = "found"
    NOT_FOUND = "not_found"
    TEMPORARY = "temporary"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Request:
    """One GET that a source wants to make. ``repr`` shows neither query, parameters nor headers."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete HTTP reply: status, headers (names in lower case), decoded body."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class NoReply:
    """A call that ended without a complete reply; ``reason`` is one of the classification table's."""

    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one reply means: outcome and reason, the item of a ``found``, seconds of a ``Retry-After``."""

    outcome: Outcome
    reason: str
    item: Item | None = field(default=None, repr=False)
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One line of a lookup's trace. ``called`` is False when a guard refused the call."""

    source: str
    outcome: Outcome
    reason: str
    elapsed_ms: float
    called: bool = True

    def as_dict(self) -> dict[str, Any]:
        """The attempt as JSON-ready values."""
        return {
            "source": self.source,
            "outcome": str(self.outcome),
            "reason": self.reason,
            "elapsed_ms": round(self.elapsed_ms, 3),
            "called": self.called,
        }
