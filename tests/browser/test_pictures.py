"""How are the pictures of the documentation made? From the running site, by this test:

    UPDATE_PICTURES=1 python -m pytest tests/browser/test_pictures.py

writes ``docs/images``. Without the variable they are made for nobody, so that making them keeps working.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from catalog_fallback.models import StoppedItem
from catalog_fallback.operating import isolate_source
from catalog_fallback.services import find_item, release_item, stop_item, stop_items
from catalogs.server import CatalogServer
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import SignIn
from tests.browser.looking import IS_STILL
from tests.browser.pages import SOURCES, STOPPED, look_up, preview
from tests.docs.pages import DOCS

IMAGES = DOCS / "images"
WIDTH = 1280
#: Bytes of one picture.
MOST = 200_000
SCHEMES = ("light", "dark")


def _compact(png: bytes) -> bytes:
    """The same picture with at most 256 colours."""
    image = pytest.importorskip("PIL.Image", reason="no service: Pillow (pip install --group browser)")
    small = io.BytesIO()
    with image.open(io.BytesIO(png)) as picture:
        picture.convert("RGB").quantize(256, dither=image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()


def _demo(page: Page, address: str) -> None:
    page.goto(f"{address}/")
    page.click("#scene-unsure")
    page.locator("#scene-unsure[aria-current]").wait_for()


def _stop_list(page: Page, address: str) -> None:
    page.goto(f"{address}{STOPPED}")


def _bulk_preview(page: Page, address: str) -> None:
    lines = ["P001", "P009", "P010", "not an ID!", "P010", *(f"P2{number:03}" for number in range(995))]
    preview(page, address, "\n".join(lines), "recall 12", "quality")


def _operations(page: Page, address: str) -> None:
    page.goto(f"{address}{SOURCES}")


def _look_up(page: Page, address: str) -> None:
    look_up(page, address, "P001")


#: Name of the picture → its height, and the way to its page. The demo's buttons set all faults anew: it is the last.
PICTURES: Mapping[str, tuple[int, Callable[[Page, str], None]]] = {
    "stop-list": (860, _stop_list),
    "bulk-preview": (860, _bulk_preview),
    "look-up": (1200, _look_up),
    "operations": (1060, _operations),
    "demo": (1130, _demo),
}


def _set_the_scene(catalogs: CatalogServer) -> None:
    """A day with a recall, a contract that has ended, and a catalog that drips."""
    stop_items([f"P00{number}" for number in range(4, 9)], reason="withdrawn")
    stop_item("P009", reason="legal", note="letter of 3 May")
    stop_item("P010", reason="quality", note="recall 12")
    release_item("P005")
    StoppedItem.objects.filter(item_id="P009").update(published_at=None)
    isolate_source("shop", "primary", "the contract has ended")
    for _ in range(3):
        find_item("P002")
    find_item("P003")
    for number in range(3):
        find_item(f"P01{number}", catalog="shop")
    catalogs.switchboard.switch("primary", "drip")


def _taken(page: Page, address: str) -> dict[str, bytes]:
    taken = {}
    for name, (height, way) in PICTURES.items():
        page.set_viewport_size({"width": WIDTH, "height": height})
        way(page, address)
        page.mouse.move(0, 0)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.evaluate(IS_STILL)
            page.evaluate("document.activeElement.blur()")
            taken[f"{name}-{scheme}.png"] = page.screenshot()
    return taken


def test_pictures(
    browser: Chromium, address: str, sign_in: SignIn, catalogs: CatalogServer, redis_url: str, tmp_path: Path
) -> None:
    """Each in light and dark, small, and of a page without complaints; as of a site whose processes share a cache."""
    cache = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": redis_url, "KEY_PREFIX": tmp_path.name}
    folder = IMAGES if os.environ.get("UPDATE_PICTURES") else tmp_path
    people = sign_in("everything", name="anna")
    with override_settings(CACHES={"default": cache}, ROOT_URLCONF=settings.ROOT_URLCONF):
        _set_the_scene(catalogs)
        taken, said = browser.visit(lambda page: _taken(page, address), cookies=people)
    assert said == []
    folder.mkdir(exist_ok=True)
    for name, png in taken.items():
        small = _compact(png)
        assert 10_000 < len(small) < MOST, name
        (folder / name).write_bytes(small)
