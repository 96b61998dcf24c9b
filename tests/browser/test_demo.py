"""Does the demo work in a real browser, with scripts and without, and does its strict policy refuse nothing?"""

from __future__ import annotations

import pytest

from catalogs.server import CatalogServer
from tests.browser.chromium import Chromium, Page
from tests.browser.looking import too_pale


def _play(page: Page, address: str) -> list[str]:
    """Take the way of a visitor through all kinds of buttons; the headlines that were seen."""
    seen = []

    def headline(words: str) -> None:
        page.locator("h2[data-announce]", has_text=words).first.wait_for()
        seen.append(words)

    def switch(source: str, fault: str, words: str) -> None:
        page.select_option(f"#id_{source}_fault", fault)
        page.click(f"#switch-{source}")
        page.locator(f"[data-live='{source}.fault']", has_text=words).wait_for()

    page.goto(f"{address}/")
    page.click("#scene-unsure")
    headline("Could not find out")
    page.click("#do-reset")
    page.locator("[data-live='primary.fault']", has_text="healthy").wait_for()
    page.fill("#id_id", "P001")
    page.click("#ask")
    headline("Found: Blue teapot")
    switch("secondary", "503", "answers 503")
    page.click("#do-hammer")
    headline("50 callers at once, 1 call")
    switch("secondary", "ok", "healthy")
    page.click("#do-notice")
    headline("Withdrawn")
    page.click("#do-stop")
    headline("Found: ")
    page.click("#do-stop")
    headline("Withdrawn")
    page.click("#do-flush")
    page.locator(".message", has_text="The cache is empty").wait_for()
    headline("Withdrawn")
    page.goto(f"{address}/notices/")
    page.goto(f"{address}/admin/login/")
    return seen


@pytest.mark.parametrize("has_scripts", [True, False], ids=["scripts", "no-scripts"])
def test_all_buttons_work(browser: Chromium, address: str, has_scripts: bool) -> None:
    """With scripts and without the same is seen, one call is made for 50 callers, and the console stays empty."""
    assert browser.visit(lambda page: _play(page, address), java_script_enabled=has_scripts) == (
        [
            "Could not find out",
            "Found: Blue teapot",
            "50 callers at once, 1 call",
            "Withdrawn",
            "Found: ",
            "Withdrawn",
            "Withdrawn",
        ],
        [],
    )


def test_scripts_keep_the_page(browser: Chromium, address: str) -> None:
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

    assert browser.visit(visitor) == (None, [])


def test_figures_change_by_themselves(browser: Chromium, address: str, catalogs: CatalogServer) -> None:
    """What happens elsewhere is seen without a click, until the visitor pauses it."""

    def visitor(page: Page) -> None:
        page.goto(f"{address}/?catalog=default&id=P001")
        catalogs.switchboard.switch("primary", "drip")
        page.locator("[data-live='primary.fault']", has_text="drips").wait_for()
        page.click("#pause")
        assert page.get_attribute("#pause", "aria-pressed") == "true"
        assert "Paused" in page.inner_text("#live")

    assert browser.visit(visitor) == (None, [])


def test_an_error_is_shown_by_the_browser(browser: Chromium, address: str) -> None:
    """Where the site refuses, here for want of a cookie, the script does not hide it behind an old page."""

    def visitor(page: Page) -> None:
        page.goto(f"{address}/?catalog=default&id=P001")
        page.evaluate("document.documentElement.dataset.kept = 'yes'")
        page.context.clear_cookies()
        page.click("#do-stop")
        page.locator("html:not([data-kept])").wait_for(state="attached")
        page.locator(".answer.found").wait_for()

    browser.visit(visitor)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_every_scene(browser: Chromium, address: str, scheme: str) -> None:
    """Every text stands out from what is behind it, in all states that an answer can have."""

    def visitor(page: Page) -> None:
        for scene in ("healthy", "gone", "unsure", "garbage", "own", "withdrawn"):
            page.goto(f"{address}/")
            page.click(f"#scene-{scene}")
            page.locator(f"#scene-{scene}[aria-current]").wait_for()
            assert too_pale(page) == [], scene

    assert browser.visit(visitor, color_scheme=scheme) == (None, [])
