"""How is a code block tried? One way for each language; whatever has none is named with its reason."""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from django.template import Context, Template
from django.test import override_settings
from django.urls import URLResolver
from django.urls.resolvers import RegexPattern
from django.utils.module_loading import import_string

from catalog_fallback.checks import check_settings
from catalog_fallback.services import find_item
from tests.docs import terminal
from tests.docs.pages import Block

#: Languages that nothing here can run, and why.
EXEMPT = {
    "": "a picture, or what a program prints",
    "text": "what a program prints",
    "yaml": "settings of other programs",
    "promql": "a question to Prometheus, which is not here",
    "nginx": "settings of another program",
    "ini": "settings of another program",
    "sql": "for a database with a site's own tables",
    "{toctree}": "a list of pages: the build of the documentation reads it",
    "{include}": "another file: the build of the documentation reads it",
}

Names = dict[str, Any]


def python(block: Block, names: Names, run: terminal.Runner) -> None:
    """Settings are read by our parser, a module becomes one, URLs are checked; everything else is run."""
    code = compile(block.code, str(block), "exec")
    if is_settings(block):
        found: Names = {}
        exec(code, found)  # noqa: S102  # our own page
        settings(found)
    elif block.file == "urls.py":
        module = ModuleType("urls_of_the_page")
        exec(code, vars(module))  # noqa: S102  # our own page
        assert URLResolver(RegexPattern(r"^/"), module).check() == []
    elif block.file:
        module = ModuleType(block.file.removesuffix(".py").replace("/", "."))
        sys.modules[module.__name__] = module
        exec(code, vars(module))  # noqa: S102  # our own page
        names |= {name: value for name, value in vars(module).items() if not name.startswith("__")}
    else:
        exec(code, names)  # noqa: S102  # our own page


def is_settings(block: Block) -> bool:
    """Only names in capital letters get values, as in a settings module."""
    if block.language != "python":
        return False
    assigned = [
        target.id if isinstance(target, ast.Name) else ""
        for node in ast.parse(block.code).body
        if isinstance(node, ast.Assign)
        for target in node.targets
    ]
    others = [
        node for node in ast.parse(block.code).body if not isinstance(node, (ast.Assign, ast.Import, ast.ImportFrom))
    ]
    return block.file == "settings.py" or (bool(assigned) and not others and all(map(str.isupper, assigned)))


def settings(found: Names) -> None:
    """No check complains about CATALOG_FALLBACK, and whatever else names a class names one that is there."""
    ours = {name: found[name] for name in ("CATALOG_FALLBACK", "CACHES") if name in found}
    if "CATALOG_FALLBACK" in ours:
        with override_settings(**ours):
            assert check_settings() == []
    for cache in found.get("CACHES", {}).values():
        import_string(cache["BACKEND"])
    for name in found.get("MIDDLEWARE", ()):
        import_string(name)
    for name in found.get("REST_FRAMEWORK", {}).values():
        if isinstance(name, str):
            import_string(name)


def console(block: Block, names: Names, run: terminal.Runner) -> None:
    """Each command is one that there is, with arguments that it takes; ours are run."""
    for pipeline, shown in terminal.pipelines(block.code):
        terminal.attempt(pipeline, shown, run)


def html(block: Block, names: Names, run: terminal.Runner) -> None:
    """A template is rendered, once for each state."""
    for item_id in ("P001", "P404"):
        lookup = find_item(item_id)
        context = {
            "lookup": lookup,
            "product": {"barcode": "04006381333931"},
            "LANGUAGE_CODE": "en",
            "item": lookup.item,
        }
        Template(block.code).render(Context(context))


def as_json(block: Block, names: Names, run: terminal.Runner) -> None:
    """One document, or one a line."""
    try:
        json.loads(block.code)
    except ValueError:
        for line in block.code.splitlines():
            json.loads(line)


def toml(block: Block, names: Names, run: terminal.Runner) -> None:
    """It can be read."""
    tomllib.loads(block.code)


KINDS: dict[str, Callable[[Block, Names, terminal.Runner], None]] = {
    "python": python,
    "console": console,
    "html": html,
    "json": as_json,
    "toml": toml,
}
