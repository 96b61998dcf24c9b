"""How does a test use a real browser? The system's Chromium, started once a process, with a new context for each visit.

Playwright's plain interface runs an event loop, in which Django refuses its database. So the browser lives in a thread
of its own: a test hands it a visitor, a function that gets a page, and asks its own questions before and afterwards.
Nothing is ever downloaded: without Playwright or a Chromium the tests are skipped, and the summary of the run says so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from devtools.suite import BROWSERS
from tests import servers

#: Milliseconds until something has to be there.
PATIENCE = 15_000
#: What the browser may not do: ask for more rights than a container has, and call home.
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--force-color-profile=srgb",
]

#: A page of Playwright's; it need not be installed where these tests are only collected.
Page = Any
_T = TypeVar("_T")


def executable() -> str | None:
    """The Chromium to use: ``CHROMIUM``, else one on the path, else None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


class Chromium:
    """A running browser, and the thread that it belongs to."""

    def __init__(self, browser: Any, thread: ThreadPoolExecutor) -> None:
        self._browser = browser
        self._thread = thread

    def visit(
        self, visitor: Callable[[Page], _T], *, cookies: Sequence[dict[str, Any]] = (), **context: Any
    ) -> tuple[_T, list[str]]:
        """Let a visitor use a fresh context; what it returns, and everything that the browser complained about.

        ``cookies`` and ``context`` are Playwright's: ``viewport``, ``color_scheme``, ``java_script_enabled`` …
        """
        return self._thread.submit(self._visit, visitor, cookies, context).result()

    def _visit(
        self, visitor: Callable[[Page], _T], cookies: Sequence[dict[str, Any]], options: dict[str, Any]
    ) -> tuple[_T, list[str]]:
        with self._browser.new_context(locale="en-GB", timezone_id="UTC", **options) as context:
            context.add_cookies(list(cookies))
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            said = complaints(page)
            try:
                return visitor(page), said
            except Exception as error:
                error.add_note(f"At {page.url}: {page.title()!r}; the browser said {said}.")
                raise


def complaints(page: Page) -> list[str]:
    """A list that grows: the console, errors of scripts, dialogs, and pages that were sent without a policy."""
    said: list[str] = []

    def dismissed(dialog: Any) -> None:
        said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def looked_at(response: Any) -> None:
        is_page = response.request.resource_type == "document" and "html" in response.headers.get("content-type", "")
        if is_page and "default-src 'none'" not in response.headers.get("content-security-policy", ""):
            said.append(f"no strict policy: {response.url}")

    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", dismissed)
    page.on("response", looked_at)
    return said


@contextmanager
def running_chromium() -> Iterator[Chromium]:
    """Start the browser, and end it; skips where there is none."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  # may be missing
    except ImportError:
        servers.skip_for_want_of("a browser", "pip install --group browser")
    path = executable()
    if path is None:
        servers.skip_for_want_of("a browser", "install Chromium, or set CHROMIUM to its path")
    with ThreadPoolExecutor(1, "browser") as thread:
        playwright = thread.submit(lambda: sync_playwright().start()).result()
        try:
            launch = thread.submit(playwright.chromium.launch, executable_path=path, args=_ARGUMENTS)
            browser = launch.result()
            try:
                yield Chromium(browser, thread)
            finally:
                thread.submit(browser.close).result()
        finally:
            thread.submit(playwright.stop).result()
