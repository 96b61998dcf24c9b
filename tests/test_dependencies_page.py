"""Does docs/reference/dependencies.md name what pyproject.toml makes a site install?"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reference" / "dependencies.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PACKAGE = ROOT / "catalog_fallback"

#: What comes with a dependency or an extra, and may be imported without being asked for.
COMES_ALONG = {"asgiref", "redis"}
#: What is used where a site has it.
OPTIONAL = {"celery", "opentelemetry"}
#: Packages whose module has another name.
MODULES = {
    "django-redis": "django_redis",
    "python-stdnum": "stdnum",
    "djangorestframework": "rest_framework",
    "django-health-check": "health_check",
    "django-debug-toolbar": "debug_toolbar",
    "prometheus-client": "prometheus_client",
    "django-tasks": "django_tasks",
}


def test_the_page_names_what_is_always_installed() -> None:
    """Each with its versions, and nothing that is not asked for."""
    assert re.findall(r"^\| `([^`]+)` \| [^`|–]", PAGE, re.MULTILINE) == PROJECT["dependencies"]


def test_the_page_names_every_extra() -> None:
    """Each package of each extra has a row; an empty extra has one, too."""
    rows = re.findall(r"^\| `([^`]+)` \| (?:`([^`]+)`|–) \|", PAGE, re.MULTILINE)
    expected = [(extra, package) for extra, packages in EXTRAS.items() for package in packages or [""]]
    assert rows == expected


def test_the_extra_without_a_package_is_kept() -> None:
    """Sites that ask for ``products`` may go on doing so."""
    assert EXTRAS["products"] == []


def test_the_package_imports_nothing_that_is_not_named() -> None:
    """A module of another package is a dependency, an extra, or used where a site has it."""
    asked = {re.split(r"[<>=\[]", line)[0] for lines in (PROJECT["dependencies"], *EXTRAS.values()) for line in lines}
    known = {MODULES.get(name, name).lower() for name in asked} | COMES_ALONG | OPTIONAL | {"catalog_fallback"}
    imported = {module for path in PACKAGE.rglob("*.py") for module in imports(path)}
    assert imported - known - sys.stdlib_module_names == set()


def imports(path: Path) -> set[str]:
    """The first part of every module that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                found |= {name.name.partition(".")[0] for name in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module.partition(".")[0])
    return found
