"""Which products do the simulated Open Food Facts and its sister hold, and in which words do they answer?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalogs.answers import Answer, as_json


@dataclass(frozen=True, slots=True)
class Product:
    """What the API says about a product; many have no name."""

    code: str
    name: str
    brands: str = ""
    quantity: str = ""


def gtin(code: str) -> str:
    """A barcode in the form under which products are filed here."""
    return code.zfill(14)


def _filed(*products: Product) -> Mapping[str, Product]:
    return {gtin(product.code): product for product in products}


IN_FOOD_FACTS = _filed(
    Product("3017624010701", "Nutella", "Ferrero", "400 g"),
    Product("9300650658615", "Vegemite", "Vegemite", "600 g"),
    Product("0737628064502", "Thai peanut noodle kit &amp; seasoning", "Thai Kitchen,Simply Asia", "155 g"),
    Product("5054070608074", "", "Asda"),
)
#: The sister for what is no food: it is asked second, also about products without a name.
IN_PRODUCTS_FACTS = _filed(
    Product("3450970084468", "GEL WC blancheur avec javel", "eco +", "750 ml"),
    Product("4006381333931", "Stabilo Boss Original", "Stabilo", "1 piece"),
)
#: Known to the first as something else than food; the API says so with the status of "not found".
OF_ANOTHER_KIND = {gtin("8710447445990"): "beauty"}


def food_facts(item_ids: tuple[str, ...]) -> Answer:
    """What Open Food Facts says, in the second version of its API."""
    kind = OF_ANOTHER_KIND.get(gtin(item_ids[0]))
    if kind is not None:
        return _nothing(item_ids[0], f"product found with a different product type: {kind}")
    return _answer(IN_FOOD_FACTS, item_ids[0])


def products_facts(item_ids: tuple[str, ...]) -> Answer:
    """What Open Products Facts says."""
    return _answer(IN_PRODUCTS_FACTS, item_ids[0])


def _answer(products: Mapping[str, Product], code: str) -> Answer:
    product = products.get(gtin(code))
    if product is None:
        return _nothing(code, "product not found")
    body = {"code": product.code, "product": _fields(product), "status": 1, "status_verbose": "product found"}
    return as_json(body)


def _nothing(code: str, words: str) -> Answer:
    return as_json({"code": code, "status": 0, "status_verbose": words}, 404)


def _fields(product: Product) -> dict[str, Any]:
    fields = {"brands": product.brands, "code": product.code, "quantity": product.quantity}
    return {**fields, "product_name": product.name} if product.name else fields
