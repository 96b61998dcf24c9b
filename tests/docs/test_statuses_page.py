"""Does docs/reference/statuses.md name the routes and headers that there are? (Statuses: tests/test_views.py.)"""

from __future__ import annotations

import re

import pytest
from django.http import HttpResponse
from django.test import Client

from catalog_fallback import services, urls
from catalog_fallback.testing import fake_source, override_catalog
from tests.docs.pages import DOCS
from tests.docs.scene import ITEMS, scene

TEXT = (DOCS / "reference" / "statuses.md").read_text(encoding="utf-8")
#: Headers that every response of Django has, or that another application adds.
USUAL = {"Content-Type", "Content-Length", "X-Frame-Options", "Vary"}


def header_rows() -> set[str]:
    """The headers of the table."""
    section = TEXT.split("## Headers of the item view")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)}


@pytest.fixture
def answers(transactional_db: None) -> list[HttpResponse]:
    """An item that is fresh, one from the cache, one that is stopped, one that nobody could find out about."""
    client, found = Client(), []
    sources = {"primary": fake_source(ITEMS, failing={"P009": 503})}
    with scene("statuses"):
        for tag in ("Surrogate-Key", "Cache-Tag"):
            with override_catalog(SOURCES=sources, CDN_TAG_HEADER=tag):
                services.stop_item("P008", reason="legal")
                paths = [f"/catalog/default/items/{item_id}/" for item_id in ("P001", "P001", "P008", "P009", "P404")]
                found += [client.get(path) for path in paths]
    return found


def test_it_has_the_routes_that_there_are() -> None:
    """With their names, and what they take."""
    rows = re.findall(r"^\| `catalog_fallback:(\w+)`, `([^`]+)` \|", TEXT, re.MULTILINE)
    named = {pattern.name: re.sub(r"<\w+:", "<", str(pattern.pattern)) for pattern in urls.urlpatterns if pattern.name}
    assert dict(rows) == named


def test_it_has_the_headers_that_are_sent(answers: list[HttpResponse]) -> None:
    """No more, no less."""
    assert [answer.status_code for answer in answers[:5]] == [200, 200, 451, 503, 404]
    assert {name for answer in answers for name in answer.headers} - USUAL == header_rows()
