"""What do the buttons of the demo do? Each posts here, something happens, and the page is shown again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from django.contrib import messages
from django.core.cache import caches
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from catalog_fallback import conf
from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.services import invalidate_item, release_item, stop_item
from catalog_fallback.told_errors import told
from portal import notices, scenes, switchboard
from portal.demonstration import only_in_a_demonstration
from portal.fault_words import fault_words
from portal.forms import FaultForm, ItemForm
from portal.hammer import hammer
from portal.wording import undo_command

#: Where the report of a hammer waits for the page that shows it.
REPORT = "hammer"


class Place(NamedTuple):
    """Where the page is: a catalog, and an item where one was asked for. Both are the site's own or empty."""

    catalog: str
    item_id: str

    def url(self, anchor: str, **more: str) -> str:
        """The address of the page there."""
        asked = {"catalog": self.catalog, "id": self.item_id, **more}
        query = urlencode({name: value for name, value in asked.items() if value})
        return f"{reverse('look_up')}{'?' if query else ''}{query}#{anchor}"


@never_cache
@require_POST
@only_in_a_demonstration
def do(request: HttpRequest, action: str) -> HttpResponse:
    """Do one thing and show the page again; 404 for what there is no button for."""
    form = ItemForm(request.POST)
    is_item = form.is_valid()
    place = Place(form.cleaned_data.get("catalog", ""), form.cleaned_data.get("id", ""))
    try:
        if action in ON_ITEMS:
            if is_item:
                return ON_ITEMS[action](request, place)
            return _refused(request, place, _("There is no such item to do this with."))
        if action in ON_ALL:
            return ON_ALL[action](request, place)
    except InvalidationFailed as error:
        return _refused(request, place, told(error))
    raise Http404


def _refused(request: HttpRequest, place: Place, why: str) -> HttpResponse:
    """Say no: to a person on the page, to a program with a status."""
    if _is_program(request):
        return JsonResponse({"error": why}, status=400)
    messages.error(request, why)
    return HttpResponseRedirect(place.url("answer"))


def _done(request: HttpRequest, url: str, text: str) -> HttpResponse:
    messages.success(request, text)
    return HttpResponseRedirect(url)


def _is_program(request: HttpRequest) -> bool:
    return not request.accepts("text/html")


# ------------------------------------------------------------------------------------------------ one item


def _stop(request: HttpRequest, place: Place) -> HttpResponse:
    stop_item(place.item_id, catalog=place.catalog, note="demo")
    named = {"id": place.item_id, "command": undo_command(place.item_id, place.catalog)}
    text = _("%(id)s is withdrawn. “Release” takes it back; or in a terminal: %(command)s") % named
    return _done(request, place.url("answer"), text)


def _release(request: HttpRequest, place: Place) -> HttpResponse:
    release_item(place.item_id, catalog=place.catalog, note="demo")
    return _done(request, place.url("answer"), _("%(id)s may be shown again.") % {"id": place.item_id})


def _forget(request: HttpRequest, place: Place) -> HttpResponse:
    invalidate_item(place.item_id, catalog=place.catalog, reason="demo")
    text = _("The kept answer about %(id)s is forgotten: the one below was fetched anew.") % {"id": place.item_id}
    return _done(request, place.url("answer"), text)


def _notice(request: HttpRequest, place: Place) -> HttpResponse:
    if not conf.catalog(place.catalog).notice_secrets:
        return _refused(request, place, _("This catalog takes no notices."))
    notices.send(request, place.catalog, "item.stopped", place.item_id)
    return HttpResponseRedirect(place.url("answer"))


def _hammer(request: HttpRequest, place: Place) -> HttpResponse:
    report = hammer(place.item_id, place.catalog).as_dict()
    if _is_program(request):
        return JsonResponse(report)
    request.session[REPORT] = report
    return HttpResponseRedirect(place.url("hammer"))


# ------------------------------------------------------------------------------------------------ everything


def _fault(request: HttpRequest, place: Place) -> HttpResponse:
    form = FaultForm(request.POST)
    if not form.is_valid():
        return _refused(request, place, _("There is no such catalog or fault."))
    source, fault = form.cleaned_data["source"], form.cleaned_data["fault"]
    if not switchboard.switch(source, fault):
        return _nobody_there(request, place)
    named = {"source": source, "fault": fault_words(fault).label}
    return _done(request, place.url("catalogs"), _("%(source)s now: %(fault)s.") % named)


def _reset(request: HttpRequest, place: Place) -> HttpResponse:
    if not switchboard.reset():
        return _nobody_there(request, place)
    for catalog in conf.catalogs():
        scenes.close_breakers(catalog)
    return _done(request, place.url("catalogs"), _("All catalogs are healthy, and all breakers closed."))


def _flush(request: HttpRequest, place: Place) -> HttpResponse:
    for alias in {conf.catalog(catalog).cache for catalog in conf.catalogs()}:
        _empty(alias)
    text = _("The cache is empty. What was withdrawn stays withdrawn: the stop list is in the database.")
    return _done(request, place.url("answer"), text)


def _empty(alias: str) -> None:
    """Empty a cache; of a Redis that others use as well, only what has this site's prefix."""
    cache = caches[alias]
    delete_pattern = getattr(cache, "delete_pattern", None)
    if delete_pattern is None:
        cache.clear()
    else:
        delete_pattern("*")


def _scene(request: HttpRequest, place: Place) -> HttpResponse:
    name = request.POST.get("scene", "")
    scene = scenes.SCENES.get(name)
    if scene is None:
        return _refused(request, place, _("There is no such scene."))
    if not scenes.play(scene):
        return _nobody_there(request, place)
    return HttpResponseRedirect(Place(scene.catalog, scene.item_id).url("answer", scene=name))


def _nobody_there(request: HttpRequest, place: Place) -> HttpResponse:
    return _refused(request, place, _("The simulated catalogs do not run: manage.py run_catalogs starts them."))


Action = Callable[[HttpRequest, Place], HttpResponse]
ON_ITEMS: Mapping[str, Action] = {
    "stop": _stop,
    "release": _release,
    "forget": _forget,
    "notice": _notice,
    "hammer": _hammer,
}
ON_ALL: Mapping[str, Action] = {"fault": _fault, "reset": _reset, "flush": _flush, "scene": _scene}
