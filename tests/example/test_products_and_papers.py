"""Do the package's adapters read the written replies of products and papers as those of the real catalogs?"""

from __future__ import annotations

import pytest

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Outcome, Reply, Verdict
from catalog_fallback.sources.base import Source
from catalog_fallback.sources.crossref import CrossrefSource
from catalog_fallback.sources.datacite import DataCiteSource
from catalog_fallback.sources.open_food_facts import OpenFoodFactsSource
from catalogs.papers import IN_CROSSREF, IN_DATACITE
from catalogs.products import IN_FOOD_FACTS, IN_PRODUCTS_FACTS, OF_ANOTHER_KIND
from catalogs.replies import healthy_answer

ADAPTERS: dict[str, type[Source]] = {
    "open_food_facts": OpenFoodFactsSource,
    "open_products_facts": OpenFoodFactsSource,
    "crossref": CrossrefSource,
    "datacite": DataCiteSource,
}
HELD = {
    "open_food_facts": {code: product.name for code, product in IN_FOOD_FACTS.items()},
    "open_products_facts": {code: product.name for code, product in IN_PRODUCTS_FACTS.items()},
    "crossref": {doi: work.title for doi, work in IN_CROSSREF.items()},
    "datacite": {doi: work.title for doi, work in IN_DATACITE.items()},
}


def verdict_of(catalog: str, typed: str) -> Verdict:
    """What the adapter of this catalog makes of its healthy answer."""
    adapter = ADAPTERS[catalog]
    item_id = adapter.normalize_id(typed)
    answer = healthy_answer(catalog, (item_id,))
    reply = Reply(answer.status, {"content-type": answer.content_type}, answer.body)
    return adapter(SourceConfig(alias=catalog)).parse(reply, item_id)


@pytest.mark.parametrize(("catalog", "held"), [(name, item_id) for name in HELD for item_id in HELD[name]])
def test_the_adapter_finds_what_is_held(catalog: str, held: str) -> None:
    """Everything with a name is found under it, cleaned; what has none is named as such."""
    verdict = verdict_of(catalog, held)
    name = " ".join(HELD[catalog][held].replace("&amp;", "&").split())
    if not name:
        assert verdict.reason == "no_name"
        return
    assert verdict.outcome is Outcome.FOUND
    assert verdict.item is not None
    assert (verdict.item["id"], verdict.item["name"]) == (held, name)


@pytest.mark.parametrize("catalog", HELD)
def test_unknown_items_are_not_found(catalog: str) -> None:
    """What the catalog lacks, it says in the API's own way."""
    typed = "10.1371/notarealdoi" if catalog in {"crossref", "datacite"} else "12345678"
    assert verdict_of(catalog, typed).outcome is Outcome.NOT_FOUND


def test_products_of_another_kind() -> None:
    """The API says so with the status of "not found"."""
    for code in OF_ANOTHER_KIND:
        assert verdict_of("open_food_facts", code).reason == "other_type"
