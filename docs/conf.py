"""How is the documentation built? ``python3 dev.py docs`` does it, and every warning is an error there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "catalog_fallback" / "__init__.py").read_text("utf-8"), re.M)
assert _VERSION is not None

project = "django-catalog-fallback"
author = "django-catalog-fallback contributors"
copyright = author
release = _VERSION[1]

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
# A reference that leads nowhere is a warning, in prose too.
nitpicky = True

myst_enable_extensions = ["deflist"]
# Headings down to this level can be linked to, by the same names as on code hosts.
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {release}"
# Nothing is fetched from elsewhere, and no page needs its source beside it.
html_copy_source = False
html_show_sourcelink = False


def _copy_pictures(app: Any, error: Exception | None) -> None:
    """The pages name their pictures in HTML, light and dark, as code hosts show them; Sphinx does not see those."""
    if error is None:
        shutil.copytree(ROOT / "docs" / "images", Path(app.outdir) / "images", dirs_exist_ok=True)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("build-finished", _copy_pictures)
