"""What does the package index show? The README without its pictures, which lie beside it and not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: What stands between these two is for a reader who has the project before him.
_PICTURES = re.compile(r"<!-- pictures -->.*?<!-- end of pictures -->\n\n", re.DOTALL)


class LongDescription(MetadataHookInterface):
    """Gives the archives their long description."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Put it into the metadata, as pyproject.toml's ``readme`` would."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": _PICTURES.sub("", text)}
