"""What would a lookup of this ID meet, and what does one bring? Form, explanation, and the trace as a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog_fallback import clock, conf, services
from catalog_fallback.admin.drawing import Bar, Timeline, timeline
from catalog_fallback.admin.measures import duration
from catalog_fallback.results import Attempt, CacheStatus, Explanation, Lookup, State
from catalog_fallback.told_errors import told

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

#: Characters of one value of an item that are shown, and how many of its fields.
_WIDEST, _MOST_FIELDS = 500, 100

_STATES = {
    State.FOUND: ("icon-yes.svg", gettext_lazy("found")),
    State.NOT_FOUND: ("icon-no.svg", gettext_lazy("not found: every source says that it has no such item")),
    State.UNAVAILABLE: ("icon-alert.svg", gettext_lazy("unavailable: it could not be found out")),
    State.STOPPED: ("icon-hidelink.svg", gettext_lazy("stopped: it is on the stop list and is not shown")),
}
_CACHE = {
    CacheStatus.HIT: gettext_lazy("hit: kept from an earlier answer, nobody was asked"),
    CacheStatus.MISS: gettext_lazy("miss: the cache had no answer"),
    CacheStatus.STALE: gettext_lazy("stale: expired, shown because nobody could answer"),
}
_OUTCOMES = {
    "found": gettext_lazy("found"),
    "not_found": gettext_lazy("no such item"),
    "temporary": gettext_lazy("could not find out now: the next source is asked"),
    "stop": gettext_lazy("wrong in a way that no other source may cover up: the lookup ends"),
}


def _catalogs() -> list[tuple[str, str]]:
    try:
        return [(alias, alias) for alias in conf.catalogs()]
    except ImproperlyConfigured:  # the page of all sources says so
        return []


class LookUpForm(forms.Form):
    """What to look up."""

    catalog = forms.ChoiceField(label=gettext_lazy("Catalog"), choices=_catalogs)
    item_id = forms.CharField(
        label=gettext_lazy("Item ID"), max_length=1000, widget=forms.TextInput(attrs={"class": "vTextField"})
    )
    language = forms.CharField(
        label=gettext_lazy("Language"),
        required=False,
        max_length=64,
        help_text=gettext_lazy("Left empty, the LANGUAGE of the catalog."),
    )
    vary = forms.CharField(
        label=gettext_lazy("Variant"),
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 2, "cols": 40}),
        help_text=gettext_lazy("Where the URLs of the catalog have names of their own: one name=value a line."),
    )

    def clean_vary(self) -> dict[str, str]:
        """Return names and values."""
        lines = [line.strip() for line in self.cleaned_data["vary"].splitlines() if line.strip()]
        pairs = [line.partition("=") for line in lines]
        if not all(between for _name, between, _value in pairs):
            raise forms.ValidationError(_("Each line has to be name=value."))
        return {name.strip(): value.strip() for name, _between, value in pairs}

    def clean(self) -> dict[str, Any]:
        """Check what the catalog says of ID, language and variant, by explaining the lookup; nobody is called."""
        values = super().clean() or {}
        if not self.errors:
            try:
                self.explanation = services.explain_item(**self.question())
            except ValueError as error:  # InvalidItemID is one
                raise forms.ValidationError(told(error)) from error
        return values

    def question(self) -> dict[str, Any]:
        """Return the arguments of the lookup."""
        values = self.cleaned_data
        return {
            "item_id": values["item_id"],
            "catalog": values["catalog"],
            "language": values["language"] or None,
            "vary": values["vary"] or None,
        }

    #: What a lookup would meet; there once the form is valid.
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class Line:
    """One attempt: what came of it, and its bar (None where a guard refused and nobody was called)."""

    number: int
    attempt: Attempt
    outcome: _StrPromise | str
    time: str
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class Found:
    """One lookup that was made. ``item`` are the fields to show; a stopped item has none."""

    lookup: Lookup
    icon: str
    state: _StrPromise | str
    cache: str
    elapsed: str
    rest: str
    budget: str
    retry_after: str
    lines: tuple[Line, ...]
    timeline: Timeline
    item: tuple[tuple[str, str], ...]


def look_up(question: Mapping[str, Any], *, refresh: bool) -> Found:
    """Make a real lookup, inside the catalog's budget; raises ValueError as find_item does."""
    started_at = clock.monotonic()
    lookup = services.find_item(**question, refresh=refresh)
    return found(lookup, clock.monotonic() - started_at, conf.catalog(lookup.catalog).budget)


def found(lookup: Lookup, elapsed: float, budget: float) -> Found:
    """Return what is shown of a lookup that took ``elapsed`` seconds."""
    called = [attempt for attempt in lookup.trace if attempt.called]
    drawn = timeline([attempt.elapsed_ms / 1000 for attempt in called], budget)
    bars = iter(drawn.bars)
    lines = tuple(
        Line(
            number,
            attempt,
            _OUTCOMES[attempt.outcome],
            duration(attempt.elapsed_ms / 1000) if attempt.called else _("not called"),
            next(bars) if attempt.called else None,
        )
        for number, attempt in enumerate(lookup.trace, 1)
    )
    icon, state = _STATES[lookup.state]
    calls = sum(attempt.elapsed_ms for attempt in called) / 1000
    return Found(
        lookup=lookup,
        icon=icon,
        state=state,
        cache=_cache(lookup),
        elapsed=duration(elapsed),
        rest=duration(max(0.0, elapsed - calls)),
        budget=duration(budget),
        retry_after="" if lookup.retry_after is None else duration(lookup.retry_after),
        lines=lines,
        timeline=drawn,
        item=_fields(lookup),
    )


def _cache(lookup: Lookup) -> str:
    if lookup.is_stopped and lookup.cache is CacheStatus.MISS:
        return _("not used: the stop list in the database says so, and nobody was asked")
    return str(_CACHE[lookup.cache])


def _fields(lookup: Lookup) -> tuple[tuple[str, str], ...]:
    if lookup.item is None or lookup.is_stopped:
        return ()
    return tuple((str(name), _short(value)) for name, value in list(lookup.item.items())[:_MOST_FIELDS])


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
