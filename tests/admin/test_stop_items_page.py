"""Does docs/how-to/stop-items.md say what the pages do?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client

from catalog_fallback import services
from catalog_fallback.admin import actions, id_lists, searching
from catalog_fallback.models import StoppedItem
from tests.admin.test_bulk_pages import confirm, preview, text_of

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "stop-items.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_limits_are_those_of_the_code() -> None:
    """Numbers that people rely on."""
    assert f"at most {id_lists.MAX_LINES:,} lines and {id_lists.MAX_BYTES // 1024**2} MB" in PAGE
    assert f"the first {searching.LIMIT:,} rows" in PAGE


def test_its_code_runs() -> None:
    """As it is printed."""
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {})  # noqa: S102  # our own page
    assert dict(StoppedItem.objects.values_list("item_id", "is_active")) == {"P001": True, "P002": False}


def test_its_buttons_exist(browser: Client) -> None:
    """Whoever follows the page finds what it names."""
    services.stop_item("P001")
    row = StoppedItem.objects.get()
    pages = [
        browser.get("/admin/catalog_fallback/stoppeditem/"),
        browser.get("/admin/catalog_fallback/stoppeditem/bulk/"),
        browser.get(f"/admin/catalog_fallback/stoppeditem/{row.pk}/change/"),
    ]
    text = "".join(map(text_of, pages))
    for name in ("Stop or release many", "Show what would happen", "Publish again to the cache", ">Stop<", ">Release<"):
        assert name.strip("<>") in PAGE
        assert name in text
    assert str(actions.republish_selected.short_description) == "Publish again to the cache"  # type: ignore[attr-defined]


def test_its_messages_are_told(browser: Client) -> None:
    """Word for word."""
    text = text_of(confirm(browser, preview(browser, "P001", verb="release")))
    assert "were not stopped: there was nothing to release." in PAGE
    assert "was not stopped: there was nothing to release." in text
