"""Who may break things? Everybody, but only where DEBUG is on: a demonstration. Elsewhere such pages do not exist."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def only_in_a_demonstration(view: View[P]) -> View[P]:
    """Answer 404 unless DEBUG is on."""

    @wraps(view)
    def guarded_view(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not settings.DEBUG:
            raise Http404
        return view(request, *args, **kwargs)

    return guarded_view
