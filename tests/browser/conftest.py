"""What do the tests in a browser share? One browser a process, the example behind a real server, and its people."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.contrib.auth.models import Permission, User
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.test import Client

from tests.browser.chromium import Chromium, running_chromium
from tests.example.conftest import catalogs, catalogs_url, site

__all__ = ["catalogs", "catalogs_url", "site"]

Cookies = list[dict[str, Any]]
SignIn = Callable[..., Cookies]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them take seconds."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    """The system's Chromium."""
    with running_chromium() as chromium:
        yield chromium


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def address(transactional_db: None, site: Client) -> Iterator[str]:
    """Where the example site is served, with its static files and strict policy, by several threads."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), _Quiet)
    server.set_app(StaticFilesHandler(get_wsgi_application()))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def sign_in(address: str) -> SignIn:
    """Return the cookies of somebody of the staff with these permissions (codenames); "everything" is a superuser."""

    def make(*permissions: str, name: str = "") -> Cookies:
        is_superuser = permissions == ("everything",)
        name = name or f"user-{uuid.uuid4().hex[:8]}"
        user = User.objects.create_user(name, password="secret", is_staff=True, is_superuser=is_superuser)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client = Client()
        client.force_login(user)
        cookie = site_settings.SESSION_COOKIE_NAME
        return [{"name": cookie, "value": client.cookies[cookie].value, "url": address}]

    return make


@pytest.fixture
def staff(sign_in: SignIn) -> Cookies:
    """The cookies of somebody who may do everything."""
    return sign_in("everything")
