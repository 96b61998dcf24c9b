"""What does a simulated catalog send? One frozen value: status, headers, body, and how it goes over the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, and how it is sent: after ``delay`` seconds, in pieces of one byte every ``drip`` seconds, or not.

    ``cut_after`` is after how many bytes of its body it hangs up; None sends all of them.
    """

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drip: float = 0.0
    hangs_up: bool = False
    cut_after: int | None = None


def as_json(value: Any, status: int = 200) -> Answer:
    """An answer whose body is this value."""
    return Answer(status, json.dumps(value, ensure_ascii=False).encode())
