"""Do the recipes of docs/how-to/consumers.md work? That for Redis streams runs against a real server."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from catalog_fallback import services
from catalog_fallback.results import CacheStatus
from tests.admin.site import SwitchedCache
from tests.posting import payload
from tests.sites import SIMULATED

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "consumers.md"
SECTIONS = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
RECIPES = {
    title: text.split("```python\n")[1].split("```")[0]
    for title, text in zip(SECTIONS[::2], SECTIONS[1::2], strict=True)
    if "```python" in text
}


@pytest.fixture
def consumers(settings: Any, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module that every recipe imports, in a site whose cache can be switched off."""
    settings.CACHES = {"default": {"BACKEND": "tests.admin.site.SwitchedCache", "LOCATION": "consumers"}}
    source = {"BACKEND": SIMULATED, "OPTIONS": {"items": {"P001": "Tea", "P002": "Coffee"}}}
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"only": source}, "STOP_CHECK": "cache"}}
    monkeypatch.setattr("catalog_fallback.clock.sleep", lambda seconds: None)
    shop, module = ModuleType("shop"), ModuleType("shop.consumers")
    exec(RECIPES["What every consumer does"], vars(module))  # noqa: S102  # our own page
    monkeypatch.setitem(sys.modules, "shop", shop)
    monkeypatch.setitem(sys.modules, "shop.consumers", module)
    yield module
    from django.core.cache import caches  # noqa: PLC0415  # the one of these settings

    caches["default"].clear()


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_python(name: str) -> None:
    """As far as it goes without the library."""
    compile(RECIPES[name], name, "exec")


def test_there_is_a_recipe_for_each() -> None:
    """The queues that sites have."""
    assert set(RECIPES) == {
        "What every consumer does",
        "Redis streams",
        "RabbitMQ",
        "Kafka",
        "Amazon SQS",
        "Google Pub/Sub",
        "Celery",
    }


def test_what_is_settled(consumers: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Done, or hopeless: acknowledge. The cache is off: again."""
    assert consumers.is_settled(payload("item.stopped"))
    assert services.find_item("P001").is_stopped
    assert consumers.is_settled(b"no notice")
    monkeypatch.setattr(SwitchedCache, "is_on", False)
    assert not consumers.is_settled(payload("item.released"))


def test_redis_streams(consumers: ModuleType, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be done is delivered again, and then done; nothing stays unacknowledged."""
    redis = pytest.importorskip("redis")
    recipe: dict[str, Any] = {}
    exec(RECIPES["Redis streams"], recipe)  # noqa: S102  # our own page
    client = redis.Redis.from_url(redis_url)
    stream, group = recipe["STREAM"], recipe["GROUP"]
    client.delete(stream)
    client.xgroup_create(stream, group, id="0", mkstream=True)
    try:
        services.find_items(["P001", "P002"])
        for body in (payload(ids="P001"), payload("item.stopped", "P002"), b"odd"):
            client.xadd(stream, {"body": body})
        with monkeypatch.context() as off:
            off.setattr(SwitchedCache, "is_on", False)
            assert recipe["consume"](client, block=1) == 1
        assert client.xpending(stream, group)["pending"] == 2
        assert recipe["consume"](client, block=1) == 2
        assert client.xpending(stream, group)["pending"] == 0
        assert services.find_item("P001").cache is CacheStatus.MISS
        assert services.find_item("P002").is_stopped
    finally:
        client.delete(stream)
        client.close()
