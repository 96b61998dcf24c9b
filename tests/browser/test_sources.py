"""Does an operator who takes a source out see the site go on without it?"""

from __future__ import annotations

from catalog_fallback.services import find_item
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Cookies
from tests.browser.pages import SOURCES


def _asks(page: Page, address: str) -> tuple[str, list[str]]:
    """What a visitor is told of P001, and who was asked for it; nothing is kept between two visits."""
    page.goto(f"{address}/?catalog=default&id=P001&refresh=on")
    return str(page.inner_text("#headline")), list(page.locator(".timeline .took").all_inner_texts())


def _row(page: Page, source: str) -> str:
    rows = page.locator("section[aria-labelledby=catalog-default] tbody tr")
    return str(rows.filter(has=page.locator(f"th:has-text('{source}')")).inner_text())


def test_isolate_fall_through_restore(browser: Chromium, address: str, staff: Cookies) -> None:
    """The second source answers while the first one is out, and the first one again when it is back."""

    def visitor(page: Page) -> None:
        headline, took = _asks(page, address)
        assert headline.startswith("Found: ")
        assert len(took) == 1, "the first source has it"

        page.goto(f"{address}{SOURCES}")
        page.get_by_role("link", name="Isolate default / primary").click()
        page.click("input.default")
        page.locator(".errorlist", has_text="required").wait_for()
        page.fill("#id_reason", "moves to another data centre")
        page.click("input.default")
        page.locator(".messagelist").get_by_text("Source “primary” is isolated.").wait_for()
        assert "moves to another data centre" in _row(page, "primary")
        assert "isolated" in _row(page, "primary")
        assert "moves to another data centre" in page.inner_text("section[aria-labelledby=latest-changes]")

        headline, took = _asks(page, address)
        assert headline.startswith("Found: ")
        assert took[0] == "not called"
        assert len(took) == 2
        assert "secondary" in page.inner_text("#answer dl:last-of-type")

        page.goto(f"{address}{SOURCES}")
        page.get_by_role("link", name="Restore default / primary").click()
        page.click("input.default")
        page.locator(".messagelist").get_by_text("Source “primary” is restored.").wait_for()
        assert "closed" in _row(page, "primary")
        assert len(_asks(page, address)[1]) == 1

    _, said = browser.visit(visitor, cookies=staff)
    assert said == []


def test_look_up_an_id(browser: Chromium, address: str, staff: Cookies) -> None:
    """Explained first, which calls nobody; then looked up, with one bar for each call; then kept."""

    def visitor(page: Page) -> None:
        page.goto(f"{address}{SOURCES}lookup/")
        page.fill("#id_item_id", "P002")
        page.get_by_role("button", name="Explain").click()
        page.locator("#explanation").wait_for()
        assert page.locator("#found").count() == 0
        page.get_by_role("button", name="Look it up now").click()
        page.locator("#found").wait_for()
        assert page.locator(".operations-trace rect").count() == 2
        assert page.locator(".operations-trace rect.operations-bar-found").count() == 1
        found = page.locator("section[aria-labelledby=found]")
        assert "found" in found.locator("dl").inner_text()
        assert [row.split()[1] for row in found.locator("tbody").first.locator("tr").all_inner_texts()] == [
            "primary",
            "secondary",
        ]
        assert "found, from secondary" in page.inner_text("section[aria-labelledby=explanation]")

    _, said = browser.visit(visitor, cookies=staff)
    assert said == []
    assert find_item("P002").cache == "hit"
