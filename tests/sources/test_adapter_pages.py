"""Do the pages about adapters say what the adapters do? Every code block of them is run."""

from __future__ import annotations

import json
import re
import sys
import types
import uuid
from pathlib import Path
from typing import Any

import pytest

from catalog_fallback import classify
from catalog_fallback.conf import backend_of, build_source, source_complaints
from catalog_fallback.conf.registry import parse
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.results import Outcome, Reply
from catalog_fallback.sources.base import Source
from tests.sources.contract import JSON_TYPE

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page for page in (DOCS / "adapters").glob("*.md") if page.stem != "index")
HOW_TO = DOCS / "how-to" / "add-a-source.md"
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in this language."""
    return [match["code"] for match in BLOCK.finditer(page) if match["language"] == language]


def run(code: str, **names: Any) -> dict[str, Any]:
    """Run a block and return its names."""
    exec(compile(code, "page", "exec"), names)  # noqa: S102  # our own pages
    return names


def catalog(code: str) -> CatalogConfig:
    """Return the catalog that a block of settings describes; nothing in it may be worth a complaint."""
    found, complaints = parse(run(code)["CATALOG_FALLBACK"])
    assert complaints == []
    (config,) = found.values()
    assert [str(one) for source in config.sources for one in source_complaints(source)] == []
    return config


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_settings_of_a_page_are_right(page: Path) -> None:
    """They can be copied: no check complains, and the adapter of the page's name is in them."""
    settings = [code for code in blocks(page.read_text(), "python") if "CATALOG_FALLBACK" in code]
    assert settings
    for code in settings:
        config = catalog(code)
        modules = {backend_of(source).__module__.rpartition(".")[2] for source in config.sources}
        assert page.stem in modules
        assert config.contact or not any(backend_of(source).needs_contact for source in config.sources)


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "json_item"], ids=lambda page: page.stem)
def test_page_says_what_its_adapter_brings(page: Path) -> None:
    """Rate, what goes on to the next source, and what has to be said by every page."""
    text = page.read_text()
    config = catalog(blocks(text, "python")[0])
    backend = next(backend_of(one) for one in config.sources if backend_of(one).__module__.endswith(f".{page.stem}"))
    assert backend.defaults["RATE_LIMIT"]["PER"] == 60
    assert f"`RATE_LIMIT` is {backend.defaults['RATE_LIMIT']['CALLS']} calls a minute by default" in text
    next_on = backend.defaults.get("NEXT_ON")
    assert next_on is None or json.dumps(next_on) in text
    for term in ("IDs\n:", "Item\n:", "`not_found`\n:", "Rate\n:", "Keeping\n:", "Terms\n:"):
        assert term in text, term


def test_there_is_a_page_for_each_adapter() -> None:
    """And none for something else."""
    folder = Path(sys.modules[Source.__module__].__file__ or "").parent
    own_address = "default_url: ClassVar[str | None] = "
    adapters = {path.stem for path in folder.glob("*.py") if own_address in path.read_text()}
    assert {page.stem for page in PAGES} == adapters - {"base"} | {"json_item"}


#: The worked examples of the page about the default envelope.
EXAMPLES = (DOCS / "adapters" / "json_item.md").read_text().split("\n### ")[1:]


@pytest.mark.parametrize("section", EXAMPLES, ids=lambda section: section.partition("\n")[0])
def test_worked_example(section: str) -> None:
    """The reply of each example is the item that stands below it, and its other reply is "not found"."""
    good, *nothing = blocks(section, "json")
    settings, item = blocks(section, "python")
    config = catalog(settings).sources[0]
    source = build_source(config)
    assert source.parse(Reply(200, JSON_TYPE, good.encode()), "P001").item == run(item)["item"]
    assert source.parse(Reply(200, JSON_TYPE, good.encode()), "P002").reason == "invalid_item"
    for body in nothing or [""]:
        verdict = classify.settle(source.parse(Reply(404, JSON_TYPE, body.encode()), "P001"), config)
        assert verdict.outcome is Outcome.NOT_FOUND


def test_there_are_three_worked_examples() -> None:
    """As many as were promised."""
    assert len(EXAMPLES) == 3


# --- "Add a source" ----------------------------------------------------------------------------------------------


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The package ``shop`` of the page, with the adapters ``sources`` and ``mugs``."""
    package = types.ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", package)
    for code in blocks(HOW_TO.read_text(), "python"):
        if (named := re.match(r"# shop/(\w+)\.py\n", code)) is not None:
            module = types.ModuleType(f"shop.{named[1]}")
            monkeypatch.setitem(sys.modules, module.__name__, module)
            setattr(package, named[1], module)
            exec(compile(code, f"shop/{named[1]}.py", "exec"), vars(module))  # noqa: S102  # our own page
    return package


def test_how_to_adapter_is_short_and_reads_its_examples(shop: types.ModuleType) -> None:
    """About twenty lines for a new API, which mean what the page says of its replies."""
    page = HOW_TO.read_text()
    body = blocks(page, "python")[0].partition("    def parse")[2]
    assert len([line for line in body.splitlines() if line.strip()]) <= 20
    source = build_source(catalog(blocks(page, "python")[1]).sources[0])
    good, nothing = blocks(page, "json")
    found = source.parse(Reply(200, JSON_TYPE, good.encode()), "T00042")
    assert found.item == {"id": "T00042", "name": "Oolong & mint", "grower": "Hill Farm"}
    assert source.parse(Reply(200, JSON_TYPE, nothing.encode()), "T00042").outcome is Outcome.NOT_FOUND


@pytest.mark.parametrize("name", ["TestTeaBoard", "TestMugBoard"])
def test_how_to_contract_is_kept(shop: types.ModuleType, name: str) -> None:
    """The page's adapters pass the page's tests."""
    code = [block for block in blocks(HOW_TO.read_text(), "python") if "(SourceContract):" in block]
    contract = run("\n".join(code))[name]
    tests = [name for name in dir(contract) if name.startswith("test_")]
    assert len(tests) > 15
    for test in tests:
        getattr(contract(), test)()


def test_how_to_test_without_a_catalog(settings: Any, transactional_db: None) -> None:
    """The page's last block is a test that passes."""
    backend = "django.core.cache.backends.locmem.LocMemCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": uuid.uuid4().hex}}
    code = blocks(HOW_TO.read_text(), "python")[-1]
    assert run(code)["asked"]
