"""Which pages are looked at, and how does a visitor come there? Every page of the admin's and of the example's own.

A way there begins at an address and may press buttons; it ends when the page is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from catalog_fallback.models import StoppedItem, UnansweredItem
from catalog_fallback.operating import isolate_source
from catalog_fallback.services import find_item, stop_item, stop_items
from catalogs.server import CatalogServer
from tests.browser.chromium import Page

STOPPED = "/admin/catalog_fallback/stoppeditem/"
SOURCES = "/admin/catalog_fallback/catalogsource/"
UNANSWERED = "/admin/catalog_fallback/unanswereditem/"

#: A list with everything in it: stopped already, to be changed, new, repeated, invalid.
PASTED = "\n".join(["P001", "P002", "P777", "not an ID!", "P777", *(f"P2{number:03}" for number in range(30))])

Way = Callable[[Page, str], object]


def set_the_scene(catalogs: CatalogServer) -> None:
    """Fill the site: items stopped and released, answers kept, a source isolated, a breaker open, a question left."""
    stop_items(["P002", "P003"], reason="quality", note="recall 7")
    stop_item("P001", reason="legal", note="letter of 3 May")
    StoppedItem.objects.filter(item_id="P003").update(is_active=False)
    UnansweredItem.objects.create(catalog="default", item_id="P009", reason="incomplete_search")
    find_item("P004")
    find_item("P004")
    isolate_source("shop", "primary", "the contract has ended")
    catalogs.switchboard.switch("secondary", "503")
    for number in range(5):
        find_item(f"P40{number}")


def _at(path: str) -> Way:
    return lambda page, address: page.goto(f"{address}{path}")


def _row(page: Page, address: str) -> None:
    page.goto(f"{address}{STOPPED}?q=P001")
    page.click("#result_list tbody th a")
    page.wait_for_selector("#stoppeditem_form")


def _of_row(name: str) -> Way:
    def way(page: Page, address: str) -> None:
        _row(page, address)
        page.goto(page.url.split("?")[0].replace("/change/", f"/{name}/"))

    return way


def preview(
    page: Page, address: str, pasted: str = PASTED, note: str = "letter of 3 May", reason: str = "legal"
) -> None:
    """Paste a list, and see what would happen."""
    page.goto(f"{address}{STOPPED}bulk/")
    page.select_option("#id_reason", reason)
    page.fill("#id_note", note)
    page.fill("#id_pasted", pasted)
    page.click("input.default")
    page.wait_for_selector(".bulk-facts")


def choose(page: Page, address: str, item_id: str, action: str) -> None:
    """Tick one row of the list, and choose an action for it."""
    page.goto(f"{address}{STOPPED}?q={item_id}")
    page.check(f"tr:has(a:text-is('{item_id}')) input.action-select")
    page.select_option("select[name=action]", action)
    page.click("button[name=index]")


def _confirmation(page: Page, address: str) -> None:
    choose(page, address, "P001", "release")
    page.wait_for_selector(".stop-items")


def look_up(page: Page, address: str, item_id: str = "P404", catalog: str = "default") -> None:
    """Look an ID up on the operator's page."""
    page.goto(f"{address}{SOURCES}lookup/?catalog={catalog}&item_id={item_id}")
    page.click("input.default")
    page.wait_for_selector("#found")


#: name → the way there.
PAGES: Mapping[str, Way] = {
    "stop-list": _at(STOPPED),
    "add": _at(f"{STOPPED}add/"),
    "change": _row,
    "history": _of_row("history"),
    "delete": _of_row("delete"),
    "bulk-form": _at(f"{STOPPED}bulk/"),
    "bulk-preview": preview,
    "confirm": _confirmation,
    "operations": _at(SOURCES),
    "isolate": _at(f"{SOURCES}default/primary/isolate/"),
    "explain": _at(f"{SOURCES}lookup/?catalog=default&item_id=P004"),
    "look-up": look_up,
    "unanswered": _at(UNANSWERED),
    "demo": _at("/"),
    "demo-found": _at("/?catalog=default&id=P004"),
    "demo-unavailable": _at("/?catalog=default&id=P404"),
    "demo-stopped": _at("/?catalog=default&id=P001"),
    "demo-own-data": _at("/?catalog=shop&id=P002"),
    "notices": _at("/notices/"),
}
