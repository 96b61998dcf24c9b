"""Does the health check read state, and only that?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from catalog_fallback import services
from catalog_fallback.fallback import chain_of
from catalog_fallback.resilience.refusal import Refusal
from tests.sites import SIMULATED, Site


@pytest.fixture
def health(needs: Callable[[str, str], Any]) -> Any:
    """The module."""
    needs("health_check.base", "django-health-check")
    from catalog_fallback.contrib import health  # noqa: PLC0415  # an extra

    return health


def result(health: Any, catalog: str | None = None) -> str:
    """What the check says, "" when all is well."""
    outcome = asyncio.run(health.CatalogSources(catalog=catalog).get_result())
    return "" if outcome.error is None else f"{outcome.error.message_type}: {outcome.error.message}"


def rest(monkeypatch: pytest.MonkeyPatch, catalog: str, *sources: str) -> None:
    """Let the guards of these sources refuse."""
    for caller in chain_of[catalog].callers:
        if caller.config.alias in sources:
            monkeypatch.setattr(caller, "refusal", lambda outlook: Refusal("circuit_open", 30.0))


@pytest.fixture
def two(settings: Any, transactional_db: None) -> None:
    """A catalog with two sources, and one with one."""
    source = {"BACKEND": SIMULATED}
    settings.CATALOG_FALLBACK = {"books": {"SOURCES": {"a": source, "b": source}}, "papers": {"SOURCES": {"a": source}}}


def test_all_is_well(health: Any, two: None) -> None:
    """Nothing to say."""
    assert result(health) == ""


def test_some_sources_rest(health: Any, two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning: the others answer."""
    rest(monkeypatch, "books", "a")
    assert result(health) == "Warning: Some sources rest (books: a (circuit_open))"


def test_a_catalog_without_a_source(health: Any, two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can be asked."""
    rest(monkeypatch, "papers", "a")
    assert result(health) == "Unavailable: No source can be called (papers: a (circuit_open))"
    assert result(health, "books") == ""


def test_nobody_is_called(health: Any, site: Site) -> None:
    """And no permit is taken."""
    assert result(health) == ""
    assert site.calls == (0, 0)


def test_a_breaker_that_is_open(health: Any, site: Site) -> None:
    """For real: after failures in a row the source rests."""
    site.simulate(503, None)
    for n in range(6):
        services.find_item(f"P{n}", refresh=True)
    assert result(health) == "Warning: Some sources rest (default: primary (circuit_open))"
