"""Does a person who stops items in the admin see what the site's visitors see?"""

from __future__ import annotations

from catalog_fallback.models import StoppedItem
from catalog_fallback.services import find_item
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Cookies, SignIn
from tests.browser.pages import STOPPED, choose, preview

ITEM = "/catalog/default/items/P001/"


def test_stop_and_release_one_item(browser: Chromium, address: str, staff: Cookies) -> None:
    """Stopped, released and stopped again by hand: the visitor's page and the one for programs follow at once."""

    def headline(page: Page) -> str:
        page.goto(f"{address}/?catalog=default&id=P001")
        return str(page.inner_text("#headline"))

    def status(page: Page) -> int:
        return int(page.request.get(f"{address}{ITEM}").status)

    def visitor(page: Page) -> list[tuple[str, int]]:
        seen = [(headline(page), status(page))]
        page.goto(f"{address}{STOPPED}add/")
        page.fill("#id_item_id", "P001")
        page.select_option("#id_reason", "legal")
        page.fill("#id_note", "letter of 3 May")
        page.click("input[name=_save]")
        page.locator(".messagelist .success").wait_for()
        seen.append((headline(page), status(page)))

        choose(page, address, "P001", "release")
        page.click("input.default")
        page.locator(".messagelist .success", has_text="1 item is released").wait_for()
        page.locator(".field-state", has_text="released").wait_for()
        seen.append((headline(page), status(page)))

        choose(page, address, "P001", "stop")
        page.select_option("#id_reason", "quality")
        page.click("input.default")
        page.locator(".field-state", has_text="stopped").wait_for()
        seen.append((headline(page), status(page)))
        return seen

    seen, said = browser.visit(visitor, cookies=staff)
    assert seen == [
        ("Found: Blue teapot", 200),
        ("Withdrawn", 451),
        ("Found: Blue teapot", 200),
        ("Withdrawn", 410),
    ]
    assert said == []


def _thousand_lines() -> list[str]:
    """1,000 lines: 986 new IDs, 2 of the list, and at known places 5 that are none, 5 repeated, 2 blank."""
    lines = [f"B{number:04}" for number in range(1000)]
    lines[0], lines[500] = "P001", "P002"
    for number in (10, 200, 400, 600, 999):
        lines[number] = f"bad {number}!"
    for number in (11, 201, 401, 601, 998):
        lines[number] = "B0001"
    lines[300] = lines[301] = ""
    return lines


def test_a_thousand_lines_with_mistakes(browser: Chromium, address: str, staff: Cookies) -> None:
    """The preview counts, and names the lines that are wrong; what is confirmed is what was shown."""
    StoppedItem.objects.create(catalog="default", item_id="P001", reason="legal", note="recall 12")
    StoppedItem.objects.create(catalog="default", item_id="P002", reason="other", note="older")

    def numbers(page: Page, section: str) -> list[str]:
        return list(page.locator(f"section[aria-labelledby={section}] tbody td:first-child").all_inner_texts())

    def visitor(page: Page) -> tuple[list[str], list[str], list[str], str]:
        preview(page, address, "\n".join(_thousand_lines()), "recall 12")
        counts = page.locator(".bulk-counts li").all_inner_texts()
        invalid, repeated = numbers(page, "bulk-invalid"), numbers(page, "bulk-repeated")
        page.get_by_text("The first 50 of them").click()
        page.locator("#bulk-group-1 ~ details th[scope=row]", has_text="B0001").wait_for()
        page.click("input.default")
        return counts, invalid, repeated, page.inner_text(".messagelist")

    (counts, invalid, repeated, told), said = browser.visit(visitor, cookies=staff)
    assert [text.strip() for text in counts] == [
        "Invalid: 5",
        "New: 986",
        "Would be changed: 1",
        "Already stopped: 1",
        "Repeated: 5",
    ]
    assert invalid == ["11", "201", "401", "601", "1000"]
    assert repeated == ["12", "202", "402", "602", "999"]
    assert "988 items are stopped" in told
    assert said == []
    assert StoppedItem.objects.filter(is_active=True, reason="legal", note="recall 12").count() == 988
    assert find_item("P002").is_stopped


def test_whoever_may_not_sees_nothing_to_press(browser: Chromium, address: str, sign_in: SignIn) -> None:
    """Of the staff, without a permission: 403 on every page, and no link to them; with "view" no button either."""
    row = StoppedItem.objects.create(catalog="default", item_id="P001", reason="legal")
    of_row = [f"{STOPPED}{row.pk}/{name}/" for name in ("change", "delete", "history")]
    sources = "/admin/catalog_fallback/catalogsource/"
    verbs = [f"{sources}default/primary/{verb}/" for verb in ("isolate", "restore", "reset")]
    pages = [STOPPED, f"{STOPPED}add/", f"{STOPPED}bulk/", *of_row, sources, f"{sources}lookup/", *verbs]
    pages += ["/admin/catalog_fallback/unanswereditem/", f"{sources}status.json"]

    def nobody(page: Page) -> tuple[dict[str, int], list[str]]:
        page.goto(f"{address}/admin/")
        links = page.locator("#content a, #nav-sidebar a").evaluate_all("all => all.map(each => each.href)")
        return {path: page.request.get(f"{address}{path}").status for path in pages}, links

    (statuses, links), said = browser.visit(nobody, cookies=sign_in())
    assert statuses == dict.fromkeys(pages, 403)
    assert [link for link in links if "catalog_fallback" in link] == []
    assert said == []

    def reader(page: Page) -> list[str]:
        found = []
        for path in (STOPPED, of_row[0], sources, f"{sources}lookup/?catalog=default&item_id=P001"):
            page.goto(f"{address}{path}")
            page.locator("#content-main").wait_for()
            buttons = page.locator("#content-main").locator(
                ".object-tools button, .object-tools a:has-text('many'), .object-tools .addlink, select[name=action],"
                " form[method=post] [type=submit], a.button, .deletelink"
            )
            found += [f"{path}: {html}" for html in buttons.evaluate_all("all => all.map(each => each.outerHTML)")]
        return found

    buttons, said = browser.visit(reader, cookies=sign_in("view_stoppeditem", "view_catalogsource"))
    assert buttons == []
    assert said == []
