"""Does a type checker say of the public API what the docs say? ``lookups``, ``guards``, ``adapters`` and ``misuse``."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import servers

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FILES = sorted(path.name for path in HERE.glob("*.py") if not path.name.startswith(("test_", "__")))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mypy has learnt of the package; the first run of the module takes longest."""
    if find_spec("mypy") is None or find_spec("mypy_django_plugin") is None:
        servers.skip_for_want_of("mypy and django-stubs", "python3 dev.py lint installs them")
    return tmp_path_factory.mktemp("mypy")


def complaints(cache: Path, *files: Path) -> str:
    """What mypy says, with the settings of a strict site; empty where it has nothing to say."""
    options = ["--config-file", str(HERE / "mypy.ini"), "--cache-dir", str(cache), "--no-error-summary"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", FILES)
def test_a_strict_site_has_nothing_to_complain_about(name: str, cache: Path) -> None:
    """Every type is as asserted, and every misuse is refused: an ignore without an error is an error."""
    assert complaints(cache, HERE / name) == ""


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param("assert_type(find_item('P001').item, dict[str, str])", "assert-type", id="wrong type"),
        pytest.param("find_item(1)", "arg-type", id="wrong argument"),
        pytest.param("find_item('P001')  # type: ignore[arg-type]", "unused-ignore", id="misuse that is none"),
    ],
)
def test_the_checker_notices(line: str, code: str, cache: Path, tmp_path: Path) -> None:
    """If mypy saw Any instead of our types, it would accept each of these."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(f"from typing import assert_type\nfrom catalog_fallback.services import find_item\n{line}\n")
    said = complaints(cache, wrong)
    assert f"[{code}]" in said
    assert said.count("error:") == 1
