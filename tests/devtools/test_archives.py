"""Do the archives that people install hold everything? Built for real, installed beside nothing of this tree."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from devtools import packaging
from tests import loopback as wire
from tests import servers
from tests.sites import FOUND

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SETTINGS = """
INSTALLED_APPS += ["catalog_fallback"]
CATALOG_FALLBACK = {{"default": {{"SOURCES": {{"only": {{"URL": "{url}"}}}}}}}}
"""
WHERE = """
import catalog_fallback, django, sys
from django.template.loader import get_template
django.setup()
print(catalog_fallback.__file__)
print(get_template("admin/catalog_fallback/stoppeditem/change_list.html").origin)
"""


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that was built from it."""
    pytest.importorskip("hatchling", reason=f"{servers.MISSING}hatchling (pip install hatchling)")
    return packaging.build_archives(sys.executable, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def python(archives: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel installed, and with the dependencies of the one that runs; nothing is downloaded."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    made = subprocess.run([sys.executable, "-m", "venv", str(place)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        servers.skip_for_want_of("the venv module", f"python -m venv: {made.stdout}{made.stderr}".strip())
    python = place / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(archives[1]))
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # A path file is followed, the path files in the directory that it names are not: this tree stays out.
    (Path(packages) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def run(*command: str | Path, directory: Path | None = None, code: int = 0, **variables: str) -> str:
    """What a program prints, run far from this tree; the test fails if it ends otherwise than expected."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=directory or "/",
        env={"PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_the_whole_package(archives: tuple[Path, Path]) -> None:
    """Templates, static files, migrations, translations and the type marker."""
    with zipfile.ZipFile(archives[1]) as wheel:
        names = wheel.namelist()
    assert packaging.complaints_about(names, packaging.source_files(packaging.ROOT, [packaging.PACKAGE])) == []


def test_the_sdist_holds_its_tests(archives: tuple[Path, Path], tmp_path: Path) -> None:
    """Who unpacks it finds every test, and pytest can collect them there."""
    with tarfile.open(archives[0]) as sdist:
        names = [name.partition("/")[2] for name in sdist.getnames()]
        sdist.extractall(tmp_path, filter="data")
    sources = packaging.source_files(packaging.ROOT, packaging.IN_SDIST)
    assert packaging.complaints_about_sdist(names, sources) == []
    (unpacked,) = tmp_path.iterdir()
    options = ("--collect-only", "-q", "-p", "no:cacheprovider", "--assert=plain")
    collected = run(sys.executable, "-m", "pytest", *options, directory=unpacked)
    files = {line.partition("::")[0] for line in collected.splitlines() if "::" in line}
    here = {name for name in sources if name.startswith("tests/") and "/test_" in name}
    assert files <= here
    assert len(files) > 0.9 * len(here), "a test whose package is missing is skipped; most are not"


def test_a_new_site_with_the_wheel_finds_an_item(python: Path, tmp_path: Path) -> None:
    """As the tutorial has it: startproject, add the app, migrate, check, look up."""
    run(python, "-m", "django", "startproject", "shop", directory=tmp_path)
    site = tmp_path / "shop"
    with wire.Loopback() as catalog:
        catalog.on_id("P001", FOUND)
        with (site / "shop" / "settings.py").open("a") as settings:
            settings.write(SETTINGS.format(url=catalog.template))
        for command in ("migrate --verbosity=0", "makemigrations --check", "check --fail-level=WARNING"):
            run(python, "-W", "error", "manage.py", *command.split(), directory=site)
        shown = run(python, "-W", "error", "manage.py", "lookup_item", "P001", "--json", directory=site)
    assert '"state": "found"' in shown
    places = run(python, "-c", WHERE, directory=site, DJANGO_SETTINGS_MODULE="shop.settings").split()
    assert [Path(place).is_relative_to(python.parent.parent) for place in places] == [True, True]
