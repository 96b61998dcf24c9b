"""Under which paths is it all? ``path("catalog/", include("catalog_fallback.urls"))``.

A site under ASGI takes the asynchronous twins: ``include((async_urlpatterns, "catalog_fallback"))``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.urls import URLPattern, path

from catalog_fallback import views

app_name = "catalog_fallback"


def _patterns(item: Callable[..., Any]) -> list[URLPattern]:
    return [
        path("<slug:catalog>/items/<path:item_id>/", item, name="item"),
        # Without the slash too: a redirect would lose the notice.
        path("<slug:catalog>/notices", views.notice),
        path("<slug:catalog>/notices/", views.notice, name="notice"),
    ]


urlpatterns = _patterns(views.item)
async_urlpatterns = _patterns(views.aitem)
