"""Can what strangers write run in the browser of a person of the staff or of a visitor? It is shown as text."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.test import override_settings

from catalog_fallback.models import StoppedItem
from catalog_fallback.operating import isolate_source
from catalogs import replies
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Cookies
from tests.browser.pages import SOURCES, STOPPED, look_up, preview

SCRIPT = "<script>window.hacked = 1; alert(1)</script>"
PICTURE = '"><img src=x onerror="window.hacked = 2">'
HOSTILE = SCRIPT + PICTURE
ID_OF_ALL_KINDS = r"[^\r\n]{1,200}"


def _harmless(page: Page, *texts: str) -> None:
    """Nothing ran and no picture was made of it, and the page has the texts as they were written."""
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[onerror]").count() == 0
    shown = page.inner_text("body")
    for text in texts:
        assert text in shown


def test_a_name_that_a_catalog_sent(
    browser: Chromium, address: str, staff: Cookies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the visitor's page, with scripts that replace parts of it, and on the operator's."""
    monkeypatch.setitem(replies.IN_PRIMARY, "P666", HOSTILE)

    def visitor(page: Page) -> None:
        page.goto(f"{address}/?catalog=default&id=P666")
        page.locator(".answer.found").wait_for()
        _harmless(page, f"Found: {HOSTILE}")
        page.click("#do-forget")
        page.locator(".message").wait_for()
        _harmless(page)
        look_up(page, address, "P666")
        _harmless(page, HOSTILE)

    _, said = browser.visit(visitor, cookies=staff)
    assert said == []


def test_what_the_staff_and_notices_wrote(browser: Chromium, address: str, staff: Cookies) -> None:
    """Notes, reasons and whole IDs: in lists, previews, confirmations, histories and messages."""
    isolate_source("default", "primary", HOSTILE)
    catalogs = {"default": {**settings.CATALOG_FALLBACK["default"], "ID_PATTERN": ID_OF_ALL_KINDS}}
    with override_settings(CATALOG_FALLBACK=catalogs):
        row = StoppedItem.objects.create(catalog="default", item_id=HOSTILE, reason="legal", note=HOSTILE)

        def visitor(page: Page) -> None:
            page.goto(f"{address}{STOPPED}")
            _harmless(page, HOSTILE)
            page.check("input.action-select")
            page.select_option("select[name=action]", "release")
            page.click("button[name=index]")
            page.locator(".stop-items").wait_for()
            _harmless(page, HOSTILE)
            page.fill("#id_note", HOSTILE)
            page.click("input.default")
            page.locator(".messagelist").wait_for()
            _harmless(page, HOSTILE)
            for name in ("change", "history", "delete"):
                page.goto(f"{address}{STOPPED}{row.pk}/{name}/")
                _harmless(page, HOSTILE)
            page.goto(f"{address}{SOURCES}")
            _harmless(page, HOSTILE)
            page.goto(f"{address}{SOURCES}lookup/?{urlencode({'catalog': 'default', 'item_id': HOSTILE})}")
            page.locator("#explanation").wait_for()
            _harmless(page, HOSTILE)
            page.goto(f"{address}/?{urlencode({'catalog': 'default', 'id': HOSTILE})}")
            page.locator("#answer").wait_for()
            _harmless(page, HOSTILE)

        _, said = browser.visit(visitor, cookies=staff)
    assert said == []


def test_lines_of_a_list(browser: Chromium, address: str, staff: Cookies) -> None:
    """A preview shows what is no ID as it was pasted."""

    def visitor(page: Page) -> None:
        preview(page, address, f"P001\n{SCRIPT}\n{PICTURE}", HOSTILE)
        _harmless(page, SCRIPT, PICTURE, HOSTILE)
        page.click("input.default")
        page.locator(".messagelist").wait_for()
        _harmless(page)

    _, said = browser.visit(visitor, cookies=staff)
    assert said == []
