"""Does the button of the example send a signed notice over HTTP, and does the item vanish?"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from catalog_fallback.models import StoppedItem
from portal.environment import notice_secret
from tests.test_body_limit import under_wsgi

Page = Any


@pytest.fixture
def site(settings: Any, catalogs_url: str, transactional_db: None) -> Iterator[Client]:
    """A browser on the example site, which really runs: it posts to its own address."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "catalogs", "portal"]
    settings.ROOT_URLCONF = "portal.urls"
    settings.DEBUG = True
    settings.CATALOG_FALLBACK = {
        "default": {
            "SOURCES": {"primary": {"URL": f"{catalogs_url}/primary/items/{{id}}"}},
            "NOTICE_SECRETS": [notice_secret("test")],
            "KEY_PREFIX": "notices-page",
        }
    }
    with under_wsgi() as port:
        yield Client(HTTP_HOST=f"127.0.0.1:{port}")
    cache.clear()


def shown(page: Page) -> str:
    """What is on the page."""
    assert page.status_code == 200
    return str(page.content.decode())


def test_the_item_vanishes_and_comes_back(site: Client) -> None:
    """Press the button, see it go; press it again, see it come back."""
    assert "Found: Blue teapot" in shown(site.get("/notices/"))
    page = shown(site.post("/notices/", {"id": "P001", "type": "item.stopped"}, follow=True))
    assert "the signed notice about P001 was taken (200)" in page
    assert "Withdrawn" in page
    assert "Blue teapot" not in page
    assert StoppedItem.objects.get().origin == "notice"
    assert site.get("/catalog/default/items/P001/").status_code == 410
    page = shown(site.post("/notices/", {"id": "P001", "type": "item.released"}, follow=True))
    assert "Found: Blue teapot" in page


def test_without_the_right_secret_nothing_happens(site: Client, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says that the notice was not taken."""
    monkeypatch.setattr("portal.notices.signatures.signed_headers", lambda *args: {})
    page = shown(site.post("/notices/", {"id": "P001", "type": "item.stopped"}, follow=True))
    assert "The notice was not taken (403)" in page
    assert "Found: Blue teapot" in page


@pytest.mark.parametrize("is_listening", [True, False], ids=["silent", "refused"])
def test_nobody_answers(site: Client, monkeypatch: pytest.MonkeyPatch, *, is_listening: bool) -> None:
    """No traceback."""
    monkeypatch.setattr("portal.notices.TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        host = f"127.0.0.1:{nobody.getsockname()[1]}"
        if not is_listening:
            nobody.close()
        page = shown(site.post("/notices/", {"id": "P001", "type": "item.stopped"}, follow=True, HTTP_HOST=host))
    assert "Nobody answered" in page
    assert "Found: Blue teapot" in page


def test_only_a_demonstration_has_it(site: Client, settings: Any) -> None:
    """A site in production signs no notices for its visitors."""
    settings.DEBUG = False
    assert site.get("/notices/").status_code == 404
    assert site.post("/notices/", {"id": "P001", "type": "item.stopped"}).status_code == 404
    assert not StoppedItem.objects.exists()


@pytest.mark.parametrize("form", [{"id": "no good", "type": "item.stopped"}, {"id": "P001", "type": "x"}, {}])
def test_odd_forms(site: Client, form: dict[str, str]) -> None:
    """The page again."""
    assert site.post("/notices/", form).status_code == 200
    assert site.get("/notices/", {"id": "no good"}).status_code == 200
