"""What do the pages do? They ask ``find_item`` and show what it said, and how the catalogs stand."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from catalog_fallback import conf
from catalog_fallback.results import Lookup
from catalog_fallback.services import find_item
from portal import live, switchboard
from portal.actions import REPORT
from portal.forms import ItemForm, LookUpForm, catalog_names
from portal.scenes import SCENES
from portal.suggestions import suggestions
from portal.timeline import timeline
from portal.wording import STATES, manage_command, moment_words, reason_words, seconds_words


class Asked(NamedTuple):
    """An answer, and how long it took, in seconds."""

    lookup: Lookup
    elapsed: float


@never_cache
@require_safe
def look_up(request: HttpRequest) -> HttpResponse:
    """The page: a form, the answer in plain words, the catalogs."""
    form = LookUpForm(request.GET if "id" in request.GET else None, label_suffix="")
    asked = _ask(form)
    catalog = asked.lookup.catalog if asked else _catalog(request)
    if not form.is_bound:
        form.initial["catalog"] = catalog
    place = {"catalog": catalog, "id": asked.lookup.item_id} if asked else {"catalog": catalog}
    context = {
        "form": form,
        "place": place,
        "catalog_name": dict(catalog_names())[catalog],
        "suggestions": suggestions(catalog),
        "scenes": SCENES,
        "scene": SCENES.get(request.GET.get("scene", "")) if asked else None,
        "cards": live.cards(catalog),
        "rules": live.rules(catalog),
        "live_url": f"{reverse('state_json')}?{urlencode(place)}",
        "is_demonstration": settings.DEBUG,
        "is_running": switchboard.state() is not None,
        "report": _report(request),
        **(_shown(asked) if asked else {"lookup": None}),
    }
    return render(request, "portal/look_up.html", context)


@never_cache
@require_safe
def look_up_json(request: HttpRequest) -> HttpResponse:
    """The same answer for a program, with its trace."""
    form = LookUpForm(request.GET)
    asked = _ask(form)
    if asked is None:
        return JsonResponse({"errors": form.errors}, status=400)
    return JsonResponse(asked.lookup.as_dict(), json_dumps_params={"ensure_ascii": False})


@never_cache
@require_safe
def state_json(request: HttpRequest) -> HttpResponse:
    """What has changed on the page since it was shown; looks nothing up and calls no catalog."""
    form = ItemForm(request.GET)
    is_item = form.is_valid()
    catalog = form.cleaned_data.get("catalog")
    if catalog is None or (not is_item and request.GET.get("id")):
        return JsonResponse({"errors": form.errors}, status=400)
    facts = [fact for card in live.cards(catalog) for fact in card.all_facts]
    if is_item:
        facts += live.kept(form.cleaned_data["id"], catalog)
    return JsonResponse({"facts": live.as_json(facts)}, json_dumps_params={"ensure_ascii": False})


def _ask(form: LookUpForm) -> Asked | None:
    """Look up what the form asks for; None where it asks for nothing that exists."""
    if not form.is_bound or not form.is_valid():
        return None
    question = form.cleaned_data
    started_at = time.perf_counter()
    lookup = find_item(question["id"], catalog=question["catalog"], refresh=question["refresh"])
    return Asked(lookup, time.perf_counter() - started_at)


def _catalog(request: HttpRequest) -> str:
    """The catalog that the page is about; the first one where none is named that exists."""
    aliases = [alias for alias, _name in catalog_names()]
    wanted = request.GET.get("catalog", "")
    return wanted if wanted in aliases else aliases[0]


def _shown(asked: Asked) -> dict[str, Any]:
    """What the template needs to know about an answer."""
    lookup = asked.lookup
    extras = {name: value for name, value in (lookup.item or {}).items() if name not in {"id", "name"} and value}
    place = lookup.item_id, lookup.catalog
    return {
        "lookup": lookup,
        "words": STATES[lookup.state],
        "reason": reason_words(lookup.reason),
        "extras": {name: _as_text(value) for name, value in extras.items()},
        "fetched": moment_words(lookup.fetched_at) if lookup.fetched_at else None,
        "expires": moment_words(lookup.expires_at) if lookup.expires_at else None,
        "retry_after": seconds_words(lookup.retry_after) if lookup.retry_after else None,
        "timeline": timeline(lookup, asked.elapsed),
        "kept": live.kept(*place),
        "takes_notices": bool(conf.catalog(lookup.catalog).notice_secrets),
        "lookup_command": f"{manage_command('lookup_item', *place)} --explain",
        "forget_command": manage_command("invalidate_item", *place),
    }


def _as_text(value: Any) -> str:
    """A value of an item as people read it."""
    if isinstance(value, list | tuple):
        return ", ".join(str(part) for part in value)
    return gettext("yes") if value is True else str(value)


def _report(request: HttpRequest) -> dict[str, Any] | None:
    """What the hammer brought, once: it is gone when it was shown."""
    if REPORT not in request.session:
        return None
    report: dict[str, Any] = request.session.pop(REPORT)
    states = [(STATES[state].badge, report["states"][state]) for state in STATES if state in report["states"]]
    return {**report, "took": seconds_words(report["seconds"]), "answers": states}
