"""How does the site say it? Plain words for the four states and for the reasons of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from catalog_fallback.results import Outcome, State


class Words(NamedTuple):
    """One or two words, a headline, and what it means for the visitor."""

    badge: str
    headline: str
    meaning: str


STATES: Mapping[State, Words] = {
    State.FOUND: Words("found", "Found", "A catalog has this item."),
    State.NOT_FOUND: Words(
        "not found", "No such item", "Every catalog was asked, and every one said that it has no such item."
    ),
    State.UNAVAILABLE: Words(
        "unavailable",
        "Could not find out",
        "This does not mean that the item is missing. Please try again later.",
    ),
    State.STOPPED: Words(
        "stopped",
        "Withdrawn",
        "This item was taken out. It is not shown, and nobody is asked for it, whatever a catalog still has.",
    ),
}

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.FOUND: "found",
    Outcome.NOT_FOUND: "not found",
    Outcome.TEMPORARY: "no answer",
    Outcome.STOP: "wrong answer",
}

REASONS: Mapping[str, str] = {
    "ok": "answered",
    "all_not_found": "no catalog has it",
    "incomplete_search": "some catalog could not be asked, and no other one has it",
    "deadline": "the time for the whole search was used up",
    "stop_list_unavailable": "it could not be checked whether the item is withdrawn",
    "stopped": "on the stop list",
    "timeout": "no complete answer in time",
    "connect_failed": "nobody listens there",
    "dns_failed": "the host's name was not found",
    "connection_lost": "hung up before answering",
    "circuit_open": "not called: it failed too often, and is left alone for a while",
    "rate_limited": "not called: our own limit of calls is reached",
    "bulkhead_full": "not called: too many calls are running",
    "cooling_down": "not called: it asked to be left alone",
    "isolated": "not called: an operator has isolated it",
    "tls_failed": "no secure connection",
    "invalid_http": "did not answer in proper HTTP",
    "incomplete_body": "the answer was cut short",
    "too_large": "the answer is too large",
    "invalid_json": "the answer is not JSON",
    "invalid_schema": "the answer is not of the agreed form",
    "invalid_item": "sent another item than the one asked for, or one without a name",
    "empty_result": "has no such item",
    "other_type": "has it, but as something of another kind",
    "no_name": "has it, but without a name",
    "unverifiable": "sent an item that cannot be compared with the one asked for",
    "invalid_request": "calls the ID impossible",
    "not_found": "has no such item",
    "source_error": "an error in our own adapter",
}


def reason_words(reason: str) -> str:
    """A reason in plain words; an HTTP status and an unknown word as they are."""
    if reason.startswith("http_"):
        return f"answered with status {reason.removeprefix('http_')}"
    return REASONS.get(reason, reason.replace("_", " "))
