"""What do the pages do? They ask ``find_item`` and show what it said; another one switches faults."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.results import Lookup
from catalog_fallback.services import find_item
from catalogs.books import IN_OPEN_LIBRARY, IN_OPENBD
from catalogs.faults import FAULTS
from catalogs.papers import IN_DATACITE
from portal import switchboard
from portal.forms import FaultForm, LookUpForm
from portal.wording import OUTCOMES, STATES, reason_words

#: What the page offers to try: (catalog, ID, what is to be seen).
EXAMPLES = (
    ("default", "P001", "the first source has it"),
    ("default", "P002", "only the second source has it"),
    ("default", "P404", "nobody has it"),
    ("books", next(iter(IN_OPENBD)), "a Japanese book, from openBD"),
    ("books", next(iter(IN_OPEN_LIBRARY)), "a French one, from Open Library"),
    ("products", "3017624010701", "something to eat, from Open Food Facts"),
    ("products", "5054070608074", "a product that nobody has named yet"),
    ("papers", "10.1111/(ISSN)1442-9993", "a journal, from Crossref"),
    ("papers", next(iter(IN_DATACITE)), "a data set, from DataCite"),
)


@never_cache
@require_safe
def look_up(request: HttpRequest) -> HttpResponse:
    """The page: a form, and the answer in plain words."""
    form = LookUpForm(request.GET if "id" in request.GET else None, label_suffix="")
    return render(request, "portal/look_up.html", {"form": form, "examples": EXAMPLES, **_shown(_ask(form))})


@never_cache
@require_safe
def look_up_json(request: HttpRequest) -> HttpResponse:
    """The same answer for a program, with its trace."""
    form = LookUpForm(request.GET)
    lookup = _ask(form)
    if lookup is None:
        return JsonResponse({"errors": form.errors}, status=400)
    return JsonResponse(lookup.as_dict(), json_dumps_params={"ensure_ascii": False})


def _ask(form: LookUpForm) -> Lookup | None:
    """Look up what the form asks for; None where it asks for nothing that exists."""
    if not form.is_bound or not form.is_valid():
        return None
    asked = form.cleaned_data
    try:
        return find_item(asked["id"], catalog=asked["catalog"], refresh=asked["refresh"])
    except InvalidItemID:
        form.add_error("id", "This cannot be an ID of that catalog.")
        return None


def _shown(lookup: Lookup | None) -> dict[str, Any]:
    """What the template needs to know about an answer."""
    if lookup is None:
        return {"lookup": None}
    extras = {name: value for name, value in (lookup.item or {}).items() if name not in {"id", "name"} and value}
    return {
        "lookup": lookup,
        "words": STATES[lookup.state],
        "reason": reason_words(lookup.reason),
        "extras": {name: _as_text(value) for name, value in extras.items()},
        "trace": [(attempt, OUTCOMES[attempt.outcome], reason_words(attempt.reason)) for attempt in lookup.trace],
        "option": "" if lookup.catalog == "default" else f" --catalog {lookup.catalog}",
    }


def _as_text(value: Any) -> str:
    """A value of an item as people read it."""
    if isinstance(value, list | tuple):
        return ", ".join(str(part) for part in value)
    return "yes" if value is True else str(value)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def faults(request: HttpRequest) -> HttpResponse:
    """The page that breaks and mends the simulated catalogs."""
    if request.method == "POST":
        _switch(request)
        return redirect("faults")
    state = switchboard.state()
    rows = [
        {"name": name, "form": FaultForm(initial={"catalog": name, **row}, auto_id=f"id_{name}_%s"), **row}
        for name, row in (state or {}).items()
    ]
    return render(request, "portal/faults.html", {"rows": rows, "is_running": state is not None})


def _switch(request: HttpRequest) -> None:
    if "reset" in request.POST:
        done, text = switchboard.reset(), "All catalogs are healthy."
    else:
        form = FaultForm(request.POST)
        if not form.is_valid():
            messages.error(request, "There is no such catalog or fault.")
            return
        catalog, fault = form.cleaned_data["catalog"], form.cleaned_data["fault"]
        done, text = switchboard.switch(catalog, fault), f"{catalog} now: {FAULTS[fault].label}."
    if done:
        messages.success(request, text)
    else:
        messages.error(request, "The simulated catalogs do not run: manage.py run_catalogs starts them.")
