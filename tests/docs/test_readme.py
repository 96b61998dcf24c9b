"""Is the README right where it is read outside of the project: on the page of the package index?"""

from __future__ import annotations

import email
import re
from pathlib import Path

import pytest

from catalog_fallback.problems import PROBLEMS
from catalog_fallback.results import State
from tests.docs.pages import DOCS, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> email.message.Message:
    """What the wheel says of itself."""
    build = pytest.importorskip("hatchling.build", reason="the wheel is built with hatchling: pip install --group test")
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("PIP_BUILD_TRACKER", raising=False)
    folder = build.prepare_metadata_for_build_wheel(str(tmp_path))
    return email.message_from_string((tmp_path / folder / "METADATA").read_text(encoding="utf-8"))


def relative_links(text: str) -> list[str]:
    """Targets of links and pictures that are no whole address; a code block holds none."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    inline = re.findall(r"\]\(([^)\s]+)", text)
    referenced = re.findall(r"^\[[^]]+\]: (\S+)", text, re.MULTILINE)
    html = re.findall(r"(?:href|src)=[\"']([^\"']+)", text)
    return [target for target in (*inline, *referenced, *html) if not re.match(r"https://|mailto:", target)]


def test_the_long_description_has_no_relative_links(metadata: email.message.Message) -> None:
    """There is no project beside it, so they would lead nowhere: it is the README without its pictures."""
    text = str(metadata.get_payload())
    assert metadata["Description-Content-Type"] == "text/markdown"
    before, pictures, after = re.split(r"<!-- (?:end of )?pictures -->\n\n", README)
    assert text.strip() == (before + after).strip()
    assert relative_links(text) == []
    assert len(relative_links(pictures)) >= 3


def test_the_pictures_are_there() -> None:
    """In light and in dark."""
    named = re.findall(r'(?:src|srcset)="([^"]+)"', README)
    assert len(named) == 6
    assert [name for name in named if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[page](docs/page.md)", ["docs/page.md"], id="inline"),
        pytest.param("![picture](picture.png)", ["picture.png"], id="picture"),
        pytest.param("[page]: docs/page.md", ["docs/page.md"], id="reference"),
        pytest.param('<img src="picture.png">', ["picture.png"], id="html"),
        pytest.param("[page](https://example.com/page)", [], id="whole address"),
        pytest.param("`[page](docs/page.md)`", [], id="code"),
    ],
)
def test_a_relative_link_is_noticed(text: str, expected: list[str]) -> None:
    """In all its forms."""
    assert relative_links(text) == expected


def test_every_page_that_it_names_is_there() -> None:
    """The table of pages is of files in docs/."""
    table = README.split("## Documentation")[1]
    named = re.findall(r"`([\w/-]+\.md)`", table)
    assert len(named) > 20
    assert [name for name in named if not (DOCS / name).is_file() and name != "CHANGELOG.md"] == []


def test_the_states_of_the_table() -> None:
    """The four that there are, in their order."""
    rows = re.findall(r"^\| `(\w+)` \| .+ \|$", README.split("## Good to know")[0], re.MULTILINE)
    assert rows == [str(state) for state in State]


@pytest.mark.parametrize("state", ["not_found", "unavailable", "stopped"])
def test_the_statuses_of_the_table(state: str) -> None:
    """Those that the views answer with."""
    row = re.search(rf"^\| `{state}` \| .+ \|$", README, re.MULTILINE)
    assert row is not None
    assert re.findall(r"\b[45]\d\d\b", row[0]) == [str(PROBLEMS[state].status)]
