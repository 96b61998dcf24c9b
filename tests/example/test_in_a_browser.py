"""Does the demo work in a real browser, with scripts and without, and does its strict policy refuse nothing?

Needs Playwright and a Chromium: ``CHROMIUM``, or one on the path. Skipped where one of them is missing.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.test import Client

from catalogs.server import CatalogServer

sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
#: Milliseconds until something has to be there.
PATIENCE = 15_000
Page = Any

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium"),
]


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def address(site: Client) -> Iterator[str]:
    """Where the example site is served, with its static files, by several threads."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), _Quiet)
    server.set_app(StaticFilesHandler(get_wsgi_application()))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


Visit = Callable[[Page], object]


def visit(visitor: Visit, **context: Any) -> list[str]:
    """Let a visitor use a fresh browser; what its console said. In a thread, as Playwright runs an event loop."""

    def use() -> list[str]:
        said: list[str] = []
        with sync_api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            page = browser.new_context(**context).new_page()
            page.set_default_timeout(PATIENCE)
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            visitor(page)
            browser.close()
        return said

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(use).result()


def _play(page: Page, address: str) -> list[str]:
    """Take the way of a visitor through all kinds of buttons; the headlines that were seen."""
    seen = []

    def headline(words: str) -> None:
        page.locator("h2[data-announce]", has_text=words).first.wait_for()
        seen.append(words)

    page.goto(f"{address}/")
    page.click("#scene-unsure")
    headline("Could not find out")
    page.fill("#id_id", "P001")
    page.click("#ask")
    headline("Found")
    page.click("#do-hammer")
    headline("50 callers at once")
    page.click("#do-stop")
    headline("Withdrawn")
    page.click("#do-stop")
    headline("Found: ")
    page.select_option("#id_secondary_fault", "503")
    page.click("#switch-secondary")
    page.locator("[data-live='secondary.fault']", has_text="answers 503").wait_for()
    page.click("#do-reset")
    page.locator("[data-live='secondary.fault']", has_text="healthy").wait_for()
    page.goto(f"{address}/notices/")
    page.goto(f"{address}/admin/login/")
    return seen


@pytest.mark.parametrize("has_scripts", [True, False], ids=["scripts", "no-scripts"])
def test_all_buttons_work(address: str, has_scripts: bool) -> None:
    """With scripts and without the same is seen, and the console stays empty."""
    seen: list[str] = []
    said = visit(lambda page: seen.extend(_play(page, address)), java_script_enabled=has_scripts)
    assert seen == ["Could not find out", "Found", "50 callers at once", "Withdrawn", "Found: "]
    assert said == []


def test_scripts_keep_the_page(address: str) -> None:
    """A button neither reloads the page nor moves the focus; the news are told to those who cannot see them."""

    def visitor(page: Page) -> None:
        page.goto(f"{address}/?catalog=default&id=P001")
        page.evaluate("document.documentElement.dataset.kept = 'yes'")
        page.focus("#do-stop")
        page.keyboard.press("Enter")
        page.locator(".answer.stopped").wait_for()
        assert page.evaluate("document.documentElement.dataset.kept") == "yes"
        assert page.evaluate("document.activeElement.id") == "do-stop"
        assert "Withdrawn" in page.inner_text("#announcement")
        assert page.title().startswith("Withdrawn: P001")
        page.get_by_role("link", name="P002").click()
        page.locator(".answer.found").wait_for()
        page.go_back()
        page.locator(".answer.stopped").wait_for()

    assert visit(visitor) == []


def test_figures_change_by_themselves(address: str, catalogs: CatalogServer) -> None:
    """What happens elsewhere is seen without a click, until the visitor pauses it."""

    def visitor(page: Page) -> None:
        page.goto(f"{address}/?catalog=default&id=P001")
        catalogs.switchboard.switch("primary", "drip")
        page.locator("[data-live='primary.fault']", has_text="drips").wait_for()
        page.click("#pause")
        assert page.get_attribute("#pause", "aria-pressed") == "true"
        assert "Paused" in page.inner_text("#live")

    assert visit(visitor) == []


def test_an_error_is_shown_by_the_browser(address: str) -> None:
    """Where the site refuses, here for want of a cookie, the script does not hide it behind an old page."""

    def visitor(page: Page) -> None:
        page.goto(f"{address}/?catalog=default&id=P001")
        page.evaluate("document.documentElement.dataset.kept = 'yes'")
        page.context.clear_cookies()
        page.click("#do-stop")
        page.locator("html:not([data-kept])").wait_for(state="attached")
        page.locator(".answer.found").wait_for()

    visit(visitor)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out(address: str, width: int, scheme: str) -> None:
    """No page is wider than the window, at the width of a telephone and of a desk."""

    def visitor(page: Page) -> None:
        for path in ("/", "/?catalog=default&id=P002", "/notices/"):
            page.goto(f"{address}{path}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width

    assert visit(visitor, viewport={"width": width, "height": 844}, color_scheme=scheme) == []


#: Contrast of every text with the colour behind it, by the formula of WCAG 2; the darkest pair first.
CONTRAST = """
() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const pairs = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("select, datalist")) continue;
    const [a, b] = [parse(getComputedStyle(element).color), behind(element)].map(light);
    pairs.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.outerHTML.slice(0, 120)]);
  }
  return pairs.sort((a, b) => a[0] - b[0]).slice(0, 3);
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(address: str, scheme: str) -> None:
    """Every text stands out from what is behind it by 4.5 to 1 at least, in all states."""

    def visitor(page: Page) -> None:
        for scene in ("healthy", "gone", "unsure", "garbage", "own", "withdrawn"):
            page.goto(f"{address}/")
            page.click(f"#scene-{scene}")
            page.locator("#answer").wait_for()
            for ratio, element in page.evaluate(CONTRAST):
                assert ratio >= 4.5, element

    assert visit(visitor, color_scheme=scheme) == []
