"""Can everybody read and use every page, in light and dark, at the width of a telephone and of a desk?"""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string

from catalogs.server import CatalogServer
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Cookies
from tests.browser.looking import COLOURS, IS_STILL, axe_script, hindrances, sticking_out, too_pale
from tests.browser.pages import PAGES, set_the_scene

DESK = {"width": 1280, "height": 800}
TELEPHONE = {"width": 390, "height": 844}


def _faults(page: Page, axe: str) -> list[str]:
    """What is wrong with the page that the browser shows."""
    found = []
    for scheme, options in (("light", None), ("dark", COLOURS)):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(IS_STILL)
        found += [f"{scheme}: too pale: {each}" for each in too_pale(page)]
        found += [f"{scheme}: {each}" for each in hindrances(page, axe, options)]
    for size in (TELEPHONE, DESK):
        page.set_viewport_size(size)
        found += [f"{size['width']} px: sticks out: {each}" for each in sticking_out(page)]
    page.emulate_media(color_scheme="light")
    return found


# In three parts, so that they can be spread over processes.
@pytest.mark.parametrize("part", range(3))
def test_every_page(browser: Chromium, address: str, staff: Cookies, catalogs: CatalogServer, part: int) -> None:
    """No text too pale, nothing wider than the window, and nothing that axe finds, of whatever impact."""
    set_the_scene(catalogs)
    axe = axe_script()

    def visitor(page: Page) -> dict[str, list[str]]:
        found = {}
        for name in list(PAGES)[part::3]:
            PAGES[name](page, address)
            found[name] = _faults(page, axe)
        return {name: faults for name, faults in found.items() if faults}

    # The policy would refuse the tool its style sheets; that pages keep to it is what all other tests see.
    assert browser.visit(visitor, cookies=staff, viewport=DESK, bypass_csp=True) == ({}, [])


SICK = """
<title>x</title><html lang=en><body style="color: #999; background: #fff"><main><h1>x</h1>
<p>pale</p><img src="data:,"><div style="width: 3000px">wide</div><input></main>
"""


def test_what_is_wrong_is_found(browser: Chromium) -> None:
    """The eyes of these tests see: pale, wide, a picture without words, a field without a name."""
    axe = axe_script()

    def visitor(page: Page) -> str:
        page.set_content(SICK)
        return "\n".join(_faults(page, axe))

    found, _ = browser.visit(visitor, viewport=DESK)
    assert "light: too pale: 2.85 <p>" in found
    assert "390 px: sticks out: <div" in found
    assert "light: image-alt (critical): <img" in found
    assert "light: label (critical): <input" in found


@pytest.mark.parametrize("name", ["not_found", "stopped", "unavailable", "refused"])
def test_the_pages_for_a_sites_own_views(browser: Chromium, name: str) -> None:
    """What the middleware shows in the place of a view that could not answer."""
    html = render_to_string("catalog_fallback/problem.html", {"name": name})
    axe = axe_script()

    def visitor(page: Page) -> list[str]:
        page.set_content(html)
        return _faults(page, axe)

    assert browser.visit(visitor, viewport=DESK) == ([], [])
