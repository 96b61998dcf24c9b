"""Does dev.py notice what an archive lacks?"""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools import packaging

TREE = [*packaging.REQUIRED, "catalog_fallback/templates/a.html", "catalog_fallback/static/a.css"]
PO, MO = (f"catalog_fallback/locale/de/LC_MESSAGES/django.{kind}" for kind in ("po", "mo"))


@pytest.mark.parametrize(
    ("names", "sources", "complaints"),
    [
        pytest.param([*TREE, "django_catalog_fallback-1.dist-info/METADATA"], TREE, [], id="good"),
        pytest.param(TREE[1:], TREE, ["lacks catalog_fallback/py.typed"], id="untyped"),
        pytest.param(
            [], [], [f"lacks {name}" for name in sorted(packaging.REQUIRED)], id="required, whatever is there"
        ),
        pytest.param(TREE[:-1], TREE, ["lacks catalog_fallback/static/a.css"], id="without a static file"),
        pytest.param([*TREE, "tests/a.py", "tests/b.py"], TREE, ["should not hold tests"], id="with tests"),
        pytest.param([*TREE, PO], [*TREE, PO], [f"lacks {MO}"], id="translation that is not compiled"),
        pytest.param([*TREE, PO, MO], [*TREE, PO, MO], [], id="translation"),
    ],
)
def test_complaints_about_a_wheel(names: list[str], sources: list[str], complaints: list[str]) -> None:
    """A wheel holds the package's whole tree, with compiled translations, and nothing else."""
    assert packaging.complaints_about(names, sources) == complaints


def test_complaints_about_an_sdist() -> None:
    """An sdist holds what its tests, docs and tools need."""
    names = ["pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "dev.py", "hatch_build.py", "tests/a.py"]
    assert packaging.complaints_about_sdist(names, ["tests/a.py"]) == []
    assert packaging.complaints_about_sdist(names[1:], ["tests/a.py", "tests/b.py"]) == [
        "lacks pyproject.toml",
        "lacks tests/b.py",
    ]


def test_what_running_leaves_behind_is_no_source(tmp_path: Path) -> None:
    """Compiled Python, hidden directories and built docs are not asked for."""
    for name in (
        "docs/index.md",
        "docs/_build/index.html",
        "docs/.doctrees/a",
        "docs/__pycache__/conf.cpython-311.pyc",
        "docs/conf.py",
        "other/a.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert packaging.source_files(tmp_path, ["docs"]) == ["docs/conf.py", "docs/index.md"]


def test_the_package_s_tree_has_what_django_finds_by_itself() -> None:
    """Templates, the migrations and the type marker are part of what the wheel is compared with."""
    kinds = {name.split("/")[1] for name in packaging.source_files(packaging.ROOT, [packaging.PACKAGE])}
    assert {"py.typed", "templates", "migrations", "management", "templatetags"} <= kinds
