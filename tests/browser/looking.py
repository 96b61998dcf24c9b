"""What does a browser know of a page's looks? Contrast, width, and what axe finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests import servers
from tests.browser.chromium import Page

#: The least contrast of text by WCAG 2, level AA: of all text, and of text of 24 pixels or more.
LEAST_CONTRAST, LEAST_OF_LARGE_TEXT, LARGE = 4.5, 3.0, 24.0

#: To be evaluated: comes back when nothing fades or moves any more.
IS_STILL = "() => Promise.all(document.getAnimations().map((each) => each.finished))"

#: Contrast of every visible text with the colour behind it, by the formula of WCAG 2; the worst pairs first.
_CONTRAST = """
() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const pairs = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("select, datalist")) continue;
    const [a, b] = [parse(getComputedStyle(element).color), behind(element)].map(light);
    const size = parseFloat(getComputedStyle(element).fontSize);
    pairs.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size, element.outerHTML.slice(0, 160)]);
  }
  return pairs.sort((a, b) => a[0] - b[0]);
}
"""

#: What is wider than the window, the innermost elements only; the admin's own lists scroll by themselves.
_STICKING_OUT = """
() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > width && !each.children.length)
    .map((each) => each.outerHTML.slice(0, 160));
}
"""


def too_pale(page: Page) -> list[str]:
    """Texts that stand out too little from what is behind them."""
    return [
        f"{ratio:.2f} {html}"
        for ratio, size, html in page.evaluate(_CONTRAST)
        if ratio < (LEAST_OF_LARGE_TEXT if size >= LARGE else LEAST_CONTRAST)
    ]


def sticking_out(page: Page) -> list[str]:
    """What makes the page wider than the window."""
    found: list[str] = page.evaluate(_STICKING_OUT)
    is_wider = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return found or (["something without a place"] if is_wider else [])


def axe_script() -> str:
    """The program that finds what hinders people with assistive technology; skips where it is not installed."""
    try:
        from axe_playwright_python.base import AXE_SCRIPT  # noqa: PLC0415  # may be missing
    except ImportError:
        servers.skip_for_want_of("axe", "pip install --group browser")
    return str(AXE_SCRIPT)


@dataclass(frozen=True)
class Excuse:
    """A rule of axe's, and what of the admin's own frame breaks it: a selector, and why it is as it is."""

    rule: str
    selector: str
    reason: str


#: Only what Django itself writes; each has to be needed on one of its versions.
EXCUSES = (
    Excuse("label-title-only", "#searchbar", "Django's search field is labelled by a picture of a magnifier"),
    Excuse("link-in-text-block", ".breadcrumbs a", "Django's breadcrumbs before 6.1 are links in a line of text"),
    Excuse("link-in-text-block", "#changelist-search a", 'Django\'s "Show all" beside the number of results'),
    Excuse("link-in-text-block", "#deleted-objects a", "what Django lists as being deleted"),
)

_AXE = """
async ([options, excuses]) => {
  const found = await axe.run({resultTypes: ["violations"], preload: false, ...options});
  const isExcused = (rule, node) => excuses.some(([name, selector]) =>
    name === rule && node.target.length === 1 && document.querySelector(node.target[0])?.matches(selector));
  return found.violations.flatMap((each) => each.nodes.filter((node) => !isExcused(each.id, node))
    .map((node) => `${each.id} (${each.impact}): ${node.html.slice(0, 160)}`));
}
"""
#: In another colour scheme only colours can be otherwise.
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


def hindrances(page: Page, script: str, options: Mapping[str, Any] | None = None) -> list[str]:
    """All that axe finds, whatever its impact, but what is excused: rule, impact, element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(script)
    excuses = [[each.rule, each.selector] for each in EXCUSES]
    return list(page.evaluate(_AXE, [dict(options or {}), excuses]))
