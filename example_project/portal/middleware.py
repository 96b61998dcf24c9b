"""What may a page of the example load? Its own style sheet, script and pictures; nothing that stands in the page."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

_BASE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; "
)
PAGES = f"{_BASE}img-src 'self'"
ADMIN = f"{_BASE}img-src 'self' data:; font-src 'self'"


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Send the policy with every response that has none."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        policy = ADMIN if request.path.startswith("/admin/") else PAGES
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return middleware
