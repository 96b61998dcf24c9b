"""What if a provider says that an item is gone? A page that sends such a notice, signed, and shows the item."""

from __future__ import annotations

import json
import secrets
import time
from datetime import UTC, datetime
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from catalog_fallback import conf, signatures
from catalog_fallback.services import find_item
from portal.demonstration import only_in_a_demonstration
from portal.wording import STATES, reason_words

TIMEOUT = 10.0
CATALOG = "default"
EVENTS: dict[str, str | Promise] = {
    "item.stopped": gettext_lazy("The item was withdrawn"),
    "item.released": gettext_lazy("The item is back"),
    "item.updated": gettext_lazy("The item was changed"),
}


class NoticeForm(forms.Form):
    """What a provider would say."""

    id = forms.RegexField(r"\A[A-Z0-9-]{1,32}\Z", label=gettext_lazy("Item ID"), initial="P001")
    type = forms.ChoiceField(choices=EVENTS.items(), label=gettext_lazy("What happened"))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@only_in_a_demonstration
def notices(request: HttpRequest) -> HttpResponse:
    """The page: a button that sends a signed notice, and the item as a visitor sees it now."""
    form = NoticeForm(request.POST or None, label_suffix="")
    if form.is_valid():
        send(request, CATALOG, form.cleaned_data["type"], form.cleaned_data["id"])
        return HttpResponseRedirect(f"{reverse('notices')}?{urlencode({'id': form.cleaned_data['id']})}")
    wanted = NoticeForm({"id": request.GET.get("id", "P001"), "type": "item.stopped"}, label_suffix="")
    item_id = wanted.cleaned_data["id"] if wanted.is_valid() else "P001"
    lookup = find_item(item_id, catalog=CATALOG)
    if request.method != "POST":
        form = NoticeForm(initial={"id": item_id}, label_suffix="")
    shown = {"lookup": lookup, "words": STATES[lookup.state], "reason": reason_words(lookup.reason)}
    return render(request, "portal/notices.html", {"form": form, "is_demonstration": True, **shown})


def send(request: HttpRequest, catalog: str, type_: str, item_id: str) -> None:
    """Post the notice to this site as a provider would: over HTTP, from outside, with nothing but the secret.

    What came of it is told in a message.
    """
    url = request.build_absolute_uri(reverse("catalog_fallback:notice", args=(catalog,)))
    moment = datetime.now(UTC).isoformat()
    body = json.dumps({"type": type_, "timestamp": moment, "data": {"id": item_id}}).encode()
    secret = conf.catalog(catalog).notice_secrets[0]
    signed = signatures.signed_headers(secret, f"msg_{secrets.token_hex(8)}", body, time.time())
    notice = Request(url, data=body, headers={"Content-Type": "application/json", **signed})
    try:
        with urlopen(notice, timeout=TIMEOUT) as reply:
            said = {"event": EVENTS[type_], "id": item_id, "status": reply.status}
        messages.success(request, _("%(event)s: the signed notice about %(id)s was taken (%(status)s).") % said)
    except HTTPError as error:
        messages.error(request, _("The notice was not taken (%(status)s).") % {"status": error.code})
        error.close()
    except (URLError, OSError):
        messages.error(request, _("Nobody answered at this site's own address."))
