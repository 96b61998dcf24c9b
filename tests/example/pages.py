"""What is on a page? Its text as people read it, and what a strict policy would refuse."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from django.test import Client

#: What may be asked for in the address bar; GONE has to be stopped before.
PATHS = {
    "start": "/",
    "books": "/?catalog=books",
    "found": "/?catalog=default&id=P001&scene=healthy",
    "fall-through": "/?catalog=default&id=P002",
    "not-found": "/?catalog=default&id=P404",
    "stopped": "/?catalog=default&id=GONE",
    "another-catalog": "/?catalog=shop&id=P404",
    "own-data": "/?catalog=shop&id=P001&scene=own",
    "error": "/?catalog=default&id=no+good",
    "no-such-catalog": "/?catalog=nowhere&id=P001",
    "notices": "/notices/",
}

_ADDRESSES = ("src", "href", "action", "formaction", "data", "poster")


def text_of(page: bytes) -> str:
    """What a person reads on a page."""
    without_tags = re.sub(r"<[^>]+>", " ", page.decode())
    return " ".join(html.unescape(without_tags).split())


class _Scan(HTMLParser):
    """Collects what is not allowed to stand in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one element."""
        values = {name: value or "" for name, value in attrs}
        self.ids += [values["id"]] if "id" in values else []
        if tag in {"style", "base", "iframe", "object", "embed"} or (tag == "script" and not values.get("src")):
            self.refused.append(f"<{tag}>")
        self.refused += [f"{tag} {name}" for name in values if name == "style" or name.startswith("on")]
        self.refused += [f"{tag} {name}={values[name]}" for name in _ADDRESSES if _is_elsewhere(values.get(name, ""))]


def _is_elsewhere(address: str) -> bool:
    return re.match(r"(?i)\s*([a-z][a-z0-9+.-]*:|//)", address) is not None


def refused_by_the_policy(page: bytes) -> list[str]:
    """Inline scripts and styles, handlers, frames, and addresses on other hosts or of other schemes."""
    scan = _Scan()
    scan.feed(page.decode())
    return scan.refused


def double_ids(page: bytes) -> set[str]:
    """IDs that stand twice on the page, which labels and scripts could not tell apart."""
    scan = _Scan()
    scan.feed(page.decode())
    return {each for each in scan.ids if scan.ids.count(each) > 1}


def unlabelled(page: bytes) -> Iterator[str]:
    """Fields that no label names."""
    text = page.decode()
    for field in re.findall(r"<(?:input|select|meter)\b[^>]*>", text):
        name = re.search(r'\bid="([^"]+)"', field)
        if 'type="hidden"' not in field and not (name and f'<label for="{name[1]}"' in text):
            yield field


def facts(site: Client, **query: str) -> dict[str, str]:
    """The texts about P001 and its catalog that the page's script would poll."""
    reply = site.get("/state.json", {"catalog": "default", "id": "P001", **query})
    assert reply.status_code == 200
    return {key: fact["text"] for key, fact in json.loads(reply.content)["facts"].items()}
