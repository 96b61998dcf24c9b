"""What may a page of the example load? Its own style sheet and pictures; the admin also its own scripts."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

_BASE = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
PAGES = f"{_BASE}frame-ancestors 'none'"
ADMIN = f"{_BASE}frame-ancestors 'none'; script-src 'self'; connect-src 'self'; font-src 'self'"


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
