"""How does the site say it? Plain words for the four states, for the reasons of the trace, for seconds and moments."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from catalog_fallback.results import Outcome, State

Text = str | Promise


class Words(NamedTuple):
    """One or two words, a headline, and what it means for the visitor."""

    badge: Text
    headline: Text
    meaning: Text


STATES: Mapping[State, Words] = {
    State.FOUND: Words(_("found"), _("Found"), _("A catalog has this item.")),
    State.NOT_FOUND: Words(
        _("not found"), _("No such item"), _("Every catalog was asked, and every one said that it has no such item.")
    ),
    State.UNAVAILABLE: Words(
        _("unavailable"),
        _("Could not find out"),
        _("This does not mean that the item is missing. Please try again later."),
    ),
    State.STOPPED: Words(
        _("stopped"),
        _("Withdrawn"),
        _("This item was taken out. It is not shown, and nobody is asked for it, whatever a catalog still has."),
    ),
}

OUTCOMES: Mapping[Outcome, Text] = {
    Outcome.FOUND: _("found"),
    Outcome.NOT_FOUND: _("not found"),
    Outcome.TEMPORARY: _("no answer"),
    Outcome.STOP: _("ends the search"),
}

REASONS: Mapping[str, Text] = {
    "ok": _("answered"),
    "all_not_found": _("no catalog has it"),
    "incomplete_search": _("some catalog could not be asked, and no other one has it"),
    "deadline": _("the time for the whole search was used up"),
    "stop_list_unavailable": _("it could not be checked whether the item is withdrawn"),
    "stopped": _("on the stop list"),
    "timeout": _("no complete answer in time"),
    "connect_failed": _("nobody listens there"),
    "dns_failed": _("the host's name was not found"),
    "connection_lost": _("hung up before answering"),
    "circuit_open": _("not called: it failed too often, and is left alone for a while"),
    "rate_limited": _("not called: our own limit of calls is reached"),
    "bulkhead_full": _("not called: too many calls are running"),
    "cooling_down": _("not called: it asked to be left alone"),
    "isolated": _("not called: an operator has isolated it"),
    "tls_failed": _("no secure connection"),
    "invalid_http": _("did not answer in proper HTTP"),
    "incomplete_body": _("the answer was cut short"),
    "too_large": _("the answer is too large"),
    "invalid_json": _("the answer is not JSON"),
    "invalid_schema": _("the answer is not of the agreed form"),
    "invalid_item": _("sent another item than the one asked for, or one without a name"),
    "empty_result": _("has no such item"),
    "other_type": _("has it, but as something of another kind"),
    "no_name": _("has it, but without a name"),
    "unverifiable": _("sent an item that cannot be compared with the one asked for"),
    "invalid_request": _("calls the ID impossible"),
    "not_found": _("has no such item"),
    "source_error": _("an error in our own adapter"),
}


def reason_words(reason: str) -> str:
    """A reason in plain words; an HTTP status and an unknown word as they are."""
    if reason.startswith("http_"):
        return gettext("answered with status %(status)s") % {"status": reason.removeprefix("http_")}
    return str(REASONS.get(reason, reason.replace("_", " ")))


def seconds_words(seconds: float) -> str:
    """A time span as people say it, in the unit that suits it."""
    if seconds < 0.1:
        return gettext("%(number)s ms") % {"number": number_format(seconds * 1000, decimal_pos=1)}
    if seconds < 1:
        return gettext("%(number)s ms") % {"number": number_format(seconds * 1000, decimal_pos=0)}
    if seconds < 120:
        places = 1 if seconds < 10 and round(seconds, 1) != round(seconds) else 0
        return gettext("%(number)s s") % {"number": number_format(seconds, decimal_pos=places)}
    if seconds < 7200:
        return gettext("%(number)s min") % {"number": number_format(seconds / 60, decimal_pos=0)}
    return gettext("%(number)s h") % {"number": number_format(seconds / 3600, decimal_pos=0)}


def moment_words(moment: datetime) -> str:
    """A moment of about now."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def undo_command(item_id: str, catalog: str) -> str:
    """What takes a stop back, in a terminal."""
    return f"{manage_command('invalidate_item', item_id, catalog)} --release"


def manage_command(command: str, item_id: str, catalog: str) -> str:
    """A command about an item, as it is typed in the project's directory."""
    option = "" if catalog == "default" else f" --catalog {catalog}"
    return f".venv/bin/python example_project/manage.py {command} {shlex.quote(item_id)}{option}"
