"""What can an operator do with a source on the operations page, what is logged of it, and what is told afterwards?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import Error as DatabaseError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog_fallback import operating, stop_list
from catalog_fallback.isolation import COPY_LIFE
from catalog_fallback.models import CatalogSource
from catalog_fallback.operating import Reach

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.functional import _StrPromise

_LONGEST_REPR = 200


class IsolateForm(forms.Form):
    """Why a source is taken out."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        help_text=gettext_lazy("For whoever reads it later, on this page and in the log."),
    )


@dataclass(frozen=True, slots=True)
class Verb:
    """Something that can be done, with its confirmation page.

    ``carry_out`` changes, and returns a line for the log; "" when there was nothing to change, which it has told.
    """

    name: str
    title: _StrPromise
    button: _StrPromise
    explanation: _StrPromise
    form: type[forms.Form]
    carry_out: Callable[[HttpRequest, str, str, str], str]


def run(verb: Verb, request: HttpRequest, catalog: str, source: str, reason: str) -> None:
    """Do it, log it, and say what has come of it. Nothing is changed that is not logged."""
    try:
        with transaction.atomic(using=stop_list.database()):
            line = verb.carry_out(request, catalog, source, reason)
            if line:
                _log(request, catalog, source, line)
    except DatabaseError as error:
        text = _("The database raised {error}: see what the state is below.")
        messages.error(request, text.format(error=type(error).__name__))


def _isolate(request: HttpRequest, catalog: str, source: str, reason: str) -> str:
    operating.isolate_source(catalog, source, reason, request.user.pk)
    _tell_reach(request, catalog, _("Source “{source}” is isolated.").format(source=source))
    return _("Isolated. Reason: {reason}").format(reason=reason)


def _restore(request: HttpRequest, catalog: str, source: str, reason: str) -> str:
    if not operating.restore_source(catalog, source):
        messages.warning(request, _("Source “{source}” was not isolated.").format(source=source))
        return ""
    _tell_reach(request, catalog, _("Source “{source}” is restored.").format(source=source))
    return _("Restored.")


def _reset(request: HttpRequest, catalog: str, source: str, reason: str) -> str:
    if not operating.has_breaker(catalog, source):
        messages.warning(request, _("Source “{source}” has no circuit breaker.").format(source=source))
        return ""
    if not operating.reset_source(catalog, source):
        text = _("The breaker of source “{source}” is not reset: the cache did not take it. Try again in a moment.")
        messages.error(request, text.format(source=source))
        return _("Tried to reset the breaker; the cache did not take it.")
    text = _("The breaker of source “{source}” is closed and counts anew.").format(source=source)
    if operating.is_per_process(catalog):
        text = f"{text} {_('The cache is not shared: this holds for the process that did it, and for no other.')}"
    messages.success(request, text)
    return _("Breaker reset.")


def _tell_reach(request: HttpRequest, catalog: str, done: str) -> None:
    """After the commit, say who knows."""

    def tell() -> None:
        reach = operating.reach_of(catalog) if operating.is_known(catalog) else Reach.EVERYBODY
        if reach is Reach.EVERYBODY:
            messages.success(request, done)
            return
        if reach is Reach.THIS_PROCESS:
            why = _("The cache is not shared: other processes learn of it from the database within {seconds} seconds.")
        else:
            why = _(
                "The cache did not confirm it: the database has it, and other processes learn of it within {seconds} "
                "seconds."
            )
        messages.warning(request, f"{done} {why.format(seconds=round(COPY_LIFE))}")

    transaction.on_commit(tell, using=stop_list.database(), robust=True)


def _log(request: HttpRequest, catalog: str, source: str, line: str) -> None:
    """One line in the admin's log; what it is about is named, since there is a row only for an isolated source."""
    assert request.user.pk is not None  # the admin has no anonymous users
    name = str(CatalogSource(catalog=catalog, source=source))
    LogEntry.objects.create(
        user_id=request.user.pk,
        content_type=ContentType.objects.get_for_model(CatalogSource, for_concrete_model=False),
        object_id=name,
        object_repr=name[:_LONGEST_REPR],
        action_flag=CHANGE,
        change_message=line,
    )


VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            "isolate",
            gettext_lazy("Isolate a source"),
            gettext_lazy("Isolate"),
            gettext_lazy(
                "Nobody calls it any more, through restarts and deployments, until somebody restores it. Lookups go on "
                "to the next source, or show what the cache has; they never say “not found” because of it."
            ),
            IsolateForm,
            _isolate,
        ),
        Verb(
            "restore",
            gettext_lazy("Restore a source"),
            gettext_lazy("Restore"),
            gettext_lazy("It is asked again. Its circuit breaker, its cool-down and its rate limit are as they are."),
            forms.Form,
            _restore,
        ),
        Verb(
            "reset",
            gettext_lazy("Reset a circuit breaker"),
            gettext_lazy("Reset"),
            gettext_lazy(
                "The breaker is closed and counts anew. A cool-down that the source asked for, its rate limit and an "
                "isolation stay."
            ),
            forms.Form,
            _reset,
        ),
    )
}
