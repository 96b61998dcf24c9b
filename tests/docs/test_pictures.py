"""Are the pictures of the documentation there, small, and used? ``tests/browser/test_pictures.py`` makes them."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, pages

IMAGES = DOCS / "images"
PICTURES = sorted(IMAGES.glob("*.png"))
_PICTURE = re.compile(
    r'<picture>\n<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)-dark\.png">\n'
    r'<img src="(?P<light>[^"]+)-light\.png" alt="(?P<alt>[^"]+)" width="\d+">\n</picture>'
)


def shown() -> dict[Path, str]:
    """The pictures of all pages, by their path without scheme, each with the words for who cannot see it."""
    found = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        matches = list(_PICTURE.finditer(text))
        assert len(matches) == text.count("<picture>") == text.count("<img "), page
        for match in matches:
            assert match["dark"] == match["light"]
            found[(page.parent / match["light"]).resolve()] = match["alt"]
    return found


def test_every_picture_is_used_in_both_schemes() -> None:
    """Each that a page names is there, light and dark; and none is there that nobody names."""
    named = {path.with_name(f"{path.name}-{scheme}.png") for path in shown() for scheme in ("light", "dark")}
    assert named == set(PICTURES)
    assert len(named) == 10


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_small(path: Path) -> None:
    """1280 pixels wide, less than 200 KB."""
    png = path.read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert width == 1280
    assert 600 <= height <= 1400
    assert len(png) < 200_000


def test_words_for_each_picture() -> None:
    """A sentence that says what is to be seen, not the name of a file."""
    assert all(len(words) > 40 and ".png" not in words for words in shown().values())
