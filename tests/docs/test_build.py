"""Can the documentation be built without a warning?"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from devtools import documentation
from devtools.running import Failed
from tests.docs.pages import DOCS, pages
from tests.servers import MISSING

NEEDED = ("sphinx", "furo", "myst_parser")


@pytest.fixture
def tools() -> None:
    """What builds the documentation; it is not in the group ``test``."""
    absent = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"{MISSING}the documentation's tools ({', '.join(absent)}): pip install --group docs")


def built(target: Path) -> subprocess.CompletedProcess[str]:
    """Build as ``dev.py docs`` does."""
    command = documentation.build_command(sys.executable, target)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_page_is_built_without_a_warning(tools: None, tmp_path: Path) -> None:
    """One HTML file each; and a reader's browser asks nobody else for fonts or scripts."""
    done = built(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for page in pages():
        if page.is_relative_to(DOCS):
            assert (tmp_path / page.relative_to(DOCS)).with_suffix(".html").is_file()
    pictures = {path.name for path in (DOCS / "images").iterdir()}
    assert {path.name for path in (tmp_path / "images").iterdir()} == pictures != set()
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'src="http' not in text
    assert '<link rel="stylesheet" type="text/css" href="http' not in text


def test_a_broken_page_fails(tools: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that leads nowhere is an error, not a line that nobody reads."""
    broken = tmp_path / "docs"
    broken.mkdir()
    (broken / "conf.py").write_text('project = "x"\nextensions = ["myst_parser"]\n', encoding="utf-8")
    (broken / "index.md").write_text("# Title\n\n[nowhere](nowhere.md)\n", encoding="utf-8")
    monkeypatch.setattr(documentation, "SOURCES", broken)
    done = built(tmp_path / "html")
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr


def test_arguments_are_refused() -> None:
    """The command has none."""
    with pytest.raises(Failed, match="takes no arguments: --html"):
        documentation.docs(["--html"])
