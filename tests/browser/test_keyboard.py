"""Can a person who has no mouse do the two things that cannot wait: stop a list, and take a source out?"""

from __future__ import annotations

from collections.abc import Callable

from catalog_fallback.models import CatalogSource, StoppedItem
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Cookies
from tests.browser.pages import SOURCES, STOPPED

#: Presses of the tabulator within which everything of a page can be reached.
_FAR = 80
_ACTIVE = "() => (document.activeElement.value || document.activeElement.textContent).trim().replace(/\\s+/g, ' ')"


def tab_to(page: Page, is_there: str | Callable[[Page], bool]) -> None:
    """Press the tabulator until the focus, which has to be visible, is on what has this text, or matches."""
    for _ in range(_FAR):
        page.keyboard.press("Tab")
        here = page.evaluate(_ACTIVE)
        if is_there(page) if callable(is_there) else is_there == here:
            assert _has_ring(page), f"nobody sees that {here!r} has the focus"
            return
    raise AssertionError(f"{is_there!r} cannot be reached")


def _has_ring(page: Page) -> bool:
    """Does what has the focus look otherwise than without it?"""
    return bool(
        page.evaluate(
            """() => {
              const names = ["outlineStyle", "outlineWidth", "boxShadow", "borderColor", "backgroundColor", "color"];
              const look = (each) => { const style = getComputedStyle(each);
                return names.map((name) => style[name]).join(); };
              const active = document.activeElement, focused = look(active);
              active.blur();
              const blurred = look(active);
              active.focus({focusVisible: true});
              return focused !== blurred;
            }"""
        )
    )


def _on(selector: str) -> Callable[[Page], bool]:
    return lambda page: bool(page.evaluate("selector => document.activeElement.matches(selector)", selector))


def test_a_list_is_stopped(browser: Chromium, address: str, staff: Cookies) -> None:
    """From the list of stopped items to the form, the preview, the confirmation."""

    def visitor(page: Page) -> str:
        page.goto(f"{address}{STOPPED}")
        tab_to(page, "Stop or release many")
        page.keyboard.press("Enter")
        page.wait_for_selector("#id_pasted")
        tab_to(page, _on("#id_reason"))
        page.keyboard.type("legal")
        tab_to(page, _on("#id_note"))
        page.keyboard.type("letter of 3 May")
        tab_to(page, _on("#id_pasted"))
        page.keyboard.type("P001")
        page.keyboard.press("Enter")
        page.keyboard.type("P002")
        tab_to(page, "Show what would happen")
        page.keyboard.press("Enter")
        page.wait_for_selector(".bulk-facts")
        tab_to(page, "Stop 2 items")
        page.keyboard.press("Enter")
        page.wait_for_selector(".messagelist")
        return str(page.inner_text(".messagelist"))

    told, said = browser.visit(visitor, cookies=staff)
    assert "2 items are stopped" in told
    assert said == []
    assert set(StoppedItem.objects.values_list("item_id", "reason", "note")) == {
        ("P001", "legal", "letter of 3 May"),
        ("P002", "legal", "letter of 3 May"),
    }


def test_a_source_is_isolated(browser: Chromium, address: str, staff: Cookies) -> None:
    """From the page of all sources to the question, the reason, the answer."""

    def visitor(page: Page) -> None:
        page.goto(f"{address}{SOURCES}")
        tab_to(page, "Isolate default / primary")
        page.keyboard.press("Enter")
        page.wait_for_selector("#id_reason")
        tab_to(page, _on("#id_reason"))
        page.keyboard.type("slow since noon")
        tab_to(page, "Isolate")
        page.keyboard.press("Enter")
        page.wait_for_selector(".messagelist")

    _, said = browser.visit(visitor, cookies=staff)
    assert said == []
    assert CatalogSource.objects.get().reason == "slow since noon"
