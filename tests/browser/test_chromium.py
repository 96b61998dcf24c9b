"""What happens where there is no browser? The tests in one are skipped, and the summary of the run says why."""

from __future__ import annotations

import sys

import pytest

from tests import servers
from tests.browser import chromium


def _reason() -> str:
    with pytest.raises(pytest.skip.Exception) as skipped, chromium.running_chromium():
        raise AssertionError("a browser was started")
    return str(skipped.value)


def test_without_playwright(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in a group of its own, which not everybody installs."""
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    assert _reason() == f"{servers.MISSING}a browser (pip install --group browser)"


def test_without_a_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is downloaded instead."""
    pytest.importorskip("playwright", reason=f"{servers.MISSING}a browser (pip install --group browser)")
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(chromium.shutil, "which", lambda name: None)
    assert _reason() == f"{servers.MISSING}a browser (install Chromium, or set CHROMIUM to its path)"


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_where_it_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """By the names that systems give it; ``CHROMIUM`` wins."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(chromium.shutil, "which", lambda asked: f"/bin/{name}" if asked == name else None)
    assert chromium.executable() == f"/bin/{name}"
    monkeypatch.setenv("CHROMIUM", "/opt/mine")
    assert chromium.executable() == "/opt/mine"
