"""Which lines of the log say that something has changed, and with which fields can a program read them?

Every such line is written once, by the process that made the change, and has the fields as attributes of its record
(``extra``), beside a text for people. There are no secrets, headers or bodies among them, and no item IDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_CHANGE = ("old", "new", "reason")

#: Event → the fields of its line, beside ``event`` itself.
EVENTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "breaker_changed": ("catalog", "source", "kind", *_CHANGE),
        "breaker_lost": ("catalog", "source", "kind", *_CHANGE),
        "cool_down_started": ("catalog", "source", "kind", *_CHANGE, "seconds"),
        "source_isolated": ("catalog", "source", *_CHANGE),
        "source_restored": ("catalog", "source", *_CHANGE),
        "cache_paused": ("cache", *_CHANGE, "seconds"),
        "cache_resumed": ("cache", *_CHANGE),
        "invalidation_failed": ("catalog", "reason", "items"),
        "stop_list_unreadable": ("catalog", "reason"),
        "isolation_unreadable": ("catalog", "reason"),
        "notice_refused": ("catalog", "reason"),
        "notice_failed": ("catalog", "reason"),
        "source_raised": ("catalog", "source", "reason"),
        "call_overran": ("catalog", "source", "seconds"),
    }
)


def fields(event: str, **values: object) -> dict[str, object]:
    """Return the ``extra`` of a line; ``values`` are those that :data:`EVENTS` names, enums as their text."""
    return {"event": event, **{name: str(value) if isinstance(value, str) else value for name, value in values.items()}}
