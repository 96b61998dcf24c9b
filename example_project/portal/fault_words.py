"""How does the demo say what is wrong with a catalog? Groups of faults; what each does, and what is seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class FaultWords(NamedTuple):
    """What the catalog does, and what a visitor of the site sees of it."""

    label: str | Promise
    effect: str | Promise


_NEXT = _("Could not find out: the next catalog is asked, if there is one.")
_END = _("Something is wrong that another catalog must not paper over: the look-up ends as “could not find out”.")

GROUPS: tuple[tuple[str | Promise, Mapping[str, FaultWords]], ...] = (
    (
        _("Nothing wrong"),
        {
            "ok": FaultWords(_("healthy"), _("Answers at once.")),
            "no-store": FaultWords(_("healthy, but forbids keeping the answer"), _("Each look-up calls it again.")),
            "empty": FaultWords(
                _("says that it has no such item"), _("The next catalog is asked; “not found” only if all say so.")
            ),
        },
    ),
    (
        _("Slow"),
        {
            "lag": FaultWords(_("answers after 0.3 seconds"), _("Slow, but in time. Good for the 50 callers.")),
            "slow": FaultWords(
                _("answers after 10 seconds"), _("The call ends at its limit; then the next catalog is asked.")
            ),
            "drip": FaultWords(
                _("drips one byte every half second"),
                _("No single read is slow, and still the call ends at its limit."),
            ),
        },
    ),
    (
        _("Connection breaks"),
        {
            "down": FaultWords(_("hangs up without an answer"), _NEXT),
            "cut": FaultWords(_("cuts the body short"), _END),
        },
    ),
    (
        _("Says no"),
        {
            "503": FaultWords(_("answers 503, overloaded"), _NEXT),
            "503-wait": FaultWords(
                _("answers 503 with Retry-After: 5"),
                _("The next catalog is asked; for 5 seconds nobody calls this one."),
            ),
            "429": FaultWords(
                _("answers 429 with Retry-After: 5"),
                _("The look-up ends as “could not find out”; for 5 seconds nobody calls it."),
            ),
            "500": FaultWords(_("answers 500, broken"), _END),
            "401": FaultWords(_("answers 401, key refused"), _END),
            "404": FaultWords(_("answers 404 with a page: its address has changed"), _END),
            "redirect": FaultWords(_("redirects to another place"), _END),
        },
    ),
    (
        _("Says something odd"),
        {
            "login": FaultWords(_("answers 200 with a sign-in page"), _END),
            "garbage": FaultWords(_("sends garbage instead of JSON"), _END),
            "wrong-id": FaultWords(_("sends another item than the one asked for"), _END),
            "huge": FaultWords(_("sends two megabytes"), _END),
        },
    ),
)

FAULT_WORDS: Mapping[str, FaultWords] = {name: words for _group, faults in GROUPS for name, words in faults.items()}


def fault_words(name: str) -> FaultWords:
    """The words for a fault; an unknown one is shown by its name."""
    return FAULT_WORDS.get(name) or FaultWords(name, "")
