"""Is everything in the archives that people install? The sdist, and the wheel that is built from it."""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from devtools.environments import MAIN
from devtools.running import ROOT, Failed, run, say

PACKAGE = "catalog_fallback"
#: Files that a wheel without them would install broken, whatever the source tree holds.
REQUIRED = (f"{PACKAGE}/py.typed", f"{PACKAGE}/migrations/0001_initial.py")
#: What an sdist has to hold so that its tests can run: everything in these places.
IN_SDIST = (PACKAGE, "benchmarks", "devtools", "docs", "example_project", "tests")
#: Made by running things; never part of an archive.
_MADE = re.compile(r"(^|/)(__pycache__/|\.)|\.py[cod]$|^(docs/_build|benchmarks/results|example_project/var)/")


def build(arguments: list[str]) -> None:
    """build the sdist and the wheel into dist/ and look into them"""
    if arguments:
        raise Failed(f"wheel takes no arguments: {' '.join(arguments)}")
    MAIN.ensure("test")
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    sdist, wheel = build_archives(MAIN.program("python"), dist)
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    complaints = [f"{sdist.name}: {text}" for text in complaints_about_sdist(names, source_files(ROOT, IN_SDIST))]
    wheel_names = zipfile.ZipFile(wheel).namelist()
    complaints += [f"{wheel.name}: {text}" for text in complaints_about(wheel_names, source_files(ROOT, (PACKAGE,)))]
    if complaints:
        raise Failed("\n  ".join(["the archives are not right:", *complaints]))
    say(f"{sdist.name}: {len(names)} files; {wheel.name}: {len(wheel_names)} files")


def build_archives(python: str, dist: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from the unpacked sdist, as for those who install from source.

    ``python`` needs hatchling, and nothing is downloaded. Returns the two archives in the directory ``dist``.
    """
    run([python, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(dist)])
    (sdist,) = dist.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as directory:
        with tarfile.open(sdist) as archive:
            archive.extractall(directory, filter="data")
        (unpacked,) = Path(directory).iterdir()
        run([python, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(dist)], directory=unpacked)
    (wheel,) = dist.glob("*.whl")
    return sdist, wheel


def source_files(root: Path, places: Iterable[str]) -> list[str]:
    """The files of the source tree in these directories, relative to ``root``, without what running it leaves."""
    found = (
        path.relative_to(root).as_posix() for place in places for path in (root / place).rglob("*") if path.is_file()
    )
    return sorted(name for name in found if not _MADE.search(name))


def complaints_about(names: Iterable[str], sources: Iterable[str]) -> list[str]:
    """What a wheel with these files has too much or too little; ``sources`` are the files of the package's tree.

    A translation that nobody compiled is as good as none: each ``.po`` needs its ``.mo``.
    """
    names = set(names)
    strangers = sorted({name.split("/")[0] for name in names if not name.startswith((f"{PACKAGE}/", "django_"))})
    compiled = {f"{name.removesuffix('.po')}.mo" for name in sources if name.endswith(".po")}
    needed = {*REQUIRED, *sources, *compiled}
    return [f"should not hold {name}" for name in strangers] + [f"lacks {name}" for name in sorted(needed - names)]


def complaints_about_sdist(names: Iterable[str], sources: Iterable[str]) -> list[str]:
    """What an sdist with these files lacks; ``sources`` are the files that its tests and docs are made of."""
    needed = {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "dev.py", "hatch_build.py", *sources}
    return [f"lacks {name}" for name in sorted(needed - set(names))]
