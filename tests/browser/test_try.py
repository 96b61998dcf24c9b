import pytest
from catalog_fallback.services import stop_item, stop_items, find_item
from catalog_fallback.operating import isolate_source
from catalog_fallback.models import StoppedItem

A = "/admin/catalog_fallback/stoppeditem/"
S = "/admin/catalog_fallback/catalogsource/"

def test_try(browser, address, staff, catalogs):
    stop_items([f"P{n:03}" for n in range(1, 9)], reason="legal", note="letter of 3 May")
    for i in ("P101", "P102", "P103"): find_item(i)
    find_item("P404")
    catalogs.switchboard.switch("secondary", "503")
    for n in range(6): find_item(f"P4{n:02}")
    isolate_source("shop", "primary", "contract ended")
    pk = StoppedItem.objects.first().pk
    def visitor(page):
        def shot(name):
            page.emulate_media(color_scheme="light"); page.wait_for_timeout(150)
            page.screenshot(path=f"/tmp/F/{name}-light.png", full_page=True)
            page.emulate_media(color_scheme="dark"); page.wait_for_timeout(150)
            page.screenshot(path=f"/tmp/F/{name}-dark.png", full_page=True)
            page.set_viewport_size({"width": 390, "height": 844})
            page.emulate_media(color_scheme="light"); page.wait_for_timeout(150)
            page.screenshot(path=f"/tmp/F/{name}-390.png", full_page=True)
            page.set_viewport_size({"width": 1280, "height": 800})
        for name, path in dict(index="/admin/", list=A, add=A+"add/", change=f"{A}{pk}/change/", history=f"{A}{pk}/history/", delete=f"{A}{pk}/delete/", bulk=A+"bulk/", sources=S, isolate=S+"default/primary/isolate/", lookup=S+"lookup/?catalog=default&item_id=P101", demo="/", demo_found="/?catalog=default&id=P101", demo_stopped="/?catalog=default&id=P001", notices="/notices/", unanswered="/admin/catalog_fallback/unanswereditem/").items():
            page.goto(address + path)
            shot(name)
        page.goto(address + A + "bulk/")
        page.fill("#id_note", "recall 12")
        page.fill("#id_pasted", "\n".join(["P001", "P777", "bad id!", "P777", "<script>alert(1)</script>"] + [f"P2{n:03}" for n in range(100)]))
        page.click("input[type=submit]")
        shot("preview")
        page.click("input.default")
        shot("list_after")
        page.goto(address + S + "lookup/?catalog=default&item_id=P002X")
        page.click("input.default")
        shot("lookup_found")
        page.goto(address + A)
        page.check("#action-toggle")
        page.select_option("select[name=action]", "release")
        page.click("button[name=index]")
        shot("confirm")
    _, said = browser.visit(visitor, cookies=staff, viewport={"width": 1280, "height": 800})
    print("SAID", said)
