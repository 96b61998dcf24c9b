"""Is Open Food Facts' answer read as its rules say, in each version of its API?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.results import NoReply, Outcome, Reply
from catalog_fallback.sources.open_food_facts import OpenFoodFactsSource
from tests.loopback import Loopback, ok
from tests.sources.contract import SourceContract, json_reply

ASKED = "03017624010701"
OTHER = "09300650658615"
NOT_FOUND_V2 = {"code": "3017624010701", "status": 0, "status_verbose": "product not found"}
NOT_FOUND_V3 = {
    "code": "3017624010701",
    "errors": [{"field": {"id": "code"}, "message": {"id": "product_not_found"}}],
    "result": {"id": "product_not_found"},
    "status": "failure",
}


def source(url: str | None = None, language: str = "", **options: Any) -> OpenFoodFactsSource:
    """Return the source, with its own URL or another."""
    config = SourceConfig("open_food_facts", url=url, contact="mail@example.com", language=language)
    return OpenFoodFactsSource(config, **options)


def product(top: Any = "3017624010701", /, **fields: Any) -> dict[str, Any]:
    """Return a find of the second version with these fields beside its code."""
    return {"code": top, "product": fields, "status": 1, "status_verbose": "product found"}


class TestOpenFoodFacts(SourceContract):
    """The contract, for the second version."""

    source_class = OpenFoodFactsSource
    item_id, other_id = ASKED, OTHER
    body_statuses = frozenset({404})
    not_found = tuple(json_reply(body, status) for body in (NOT_FOUND_V2, NOT_FOUND_V3) for status in (200, 404))

    def document(self, item_id: str, name: str) -> Any:
        fields = {"code": item_id.lstrip("0"), "product_name": name, "brands": "Ferrero", "quantity": "400 g"}
        return product(item_id.lstrip("0"), **fields)


class TestOpenFoodFacts3(TestOpenFoodFacts):
    """The contract, for the third version, which differs in the envelope only."""

    def document(self, item_id: str, name: str) -> Any:
        found = super().document(item_id, name)
        del found["status_verbose"]
        return {**found, "status": "success", "result": {"id": "product_found"}, "errors": [], "warnings": []}


def judge(document: Any, status: int = 200) -> tuple[Outcome, str]:
    """Return outcome and reason of a reply with this document."""
    verdict = source().parse(json_reply(document, status), ASKED)
    return verdict.outcome, verdict.reason


def item(document: Any, language: str = "") -> Mapping[str, Any]:
    """Return the item of a document that is a find."""
    verdict = source(language=language).parse(json_reply(document), ASKED)
    assert verdict.item is not None, verdict
    return verdict.item


def errors(*messages: Any, **fields: Any) -> dict[str, Any]:
    """Return a failure of the third version with these messages."""
    return {"errors": [{"message": {"id": message}} for message in messages], "status": "failure", **fields}


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize(
    ("document", "outcome", "reason"),
    [
        (NOT_FOUND_V2, Outcome.NOT_FOUND, "empty_result"),
        (NOT_FOUND_V3, Outcome.NOT_FOUND, "empty_result"),
        (
            {"status": 0, "status_verbose": "product found with a different product type: beauty"},
            Outcome.NOT_FOUND,
            "other_type",
        ),
        (errors("product_found_with_a_different_product_type"), Outcome.NOT_FOUND, "other_type"),
        ({"status": 0, "status_verbose": "no code or invalid code"}, Outcome.STOP, "invalid_request"),
        (errors("invalid_code"), Outcome.STOP, "invalid_request"),
        (
            errors("invalid_code", "product_not_found", result={"id": "product_not_found"}),
            Outcome.STOP,
            "invalid_request",
        ),
        (
            errors("product_not_found", "invalid_code", result={"id": "product_not_found"}),
            Outcome.STOP,
            "invalid_request",
        ),
    ],
    ids=str,
)
def test_off_12848_only_the_words_tell(document: Any, outcome: Outcome, reason: str, status: int) -> None:
    """Missing, of another kind and invalid share their status; an invalid code says "not found" as well."""
    assert judge(document, status) == (outcome, reason)


@pytest.mark.parametrize(
    "document",
    [
        {"status": 0},
        {"status": 0, "status_verbose": "database error"},
        {"status": 0, "status_verbose": None},
        {"status": "0", "status_verbose": "product not found"},
        {"status": False, "status_verbose": "product not found"},
        {"status": 1, "status_verbose": "product not found"},
        {"status_verbose": "product not found"},
        {"result": "product_not_found"},
        errors("something_else"),
        errors(["invalid_code"]),
        {"errors": {"message": {"id": "invalid_code"}}},
        {"status": 1, "product": []},
        {"status": 1},
        {"status": True, "product": {"product_name": "Tea"}, "code": "3017624010701"},
        {"status": "failure", "product": {"product_name": "Tea"}, "code": "3017624010701"},
        {"product": {"product_name": "Tea"}, "code": "3017624010701"},
        [],
        None,
    ],
    ids=str,
)
def test_other_documents_are_no_answer(document: Any) -> None:
    """Anything but the documented words is a stop, whatever the status is."""
    assert judge(document) == (Outcome.STOP, "invalid_schema")
    assert judge(document, 404) == (Outcome.STOP, "http_404")


def test_find_with_404_is_no_find() -> None:
    """A product comes with 200, or it is no answer."""
    assert judge(product(product_name="Tea"), 404) == (Outcome.STOP, "http_404")


@pytest.mark.parametrize("status", ["success", "success_with_warnings", "success_with_errors"])
def test_third_version_succeeds_in_several_words(status: str) -> None:
    """A success with warnings is one."""
    assert judge({**product(product_name="Tea"), "status": status}) == (Outcome.FOUND, "ok")


@pytest.mark.parametrize(
    ("top", "inner", "reason"),
    [
        ("3017624010701", "3017624010701", "ok"),
        ("03017624010701", None, "ok"),
        (None, "3017624010701", "ok"),
        ("", "3017624010701", "ok"),
        ("9300650658615", "3017624010701", "invalid_item"),
        ("3017624010701", "9300650658615", "invalid_item"),
        ("9300650658615", None, "invalid_item"),
        (None, None, "unverifiable"),
        ("", "", "unverifiable"),
        ("x", None, "unverifiable"),
        (3017624010701, None, "unverifiable"),
        (["3017624010701"], None, "unverifiable"),
    ],
)
def test_codes_are_compared_padded(top: Any, inner: Any, reason: str) -> None:
    """Both places may hold the code, padded or not; every code that is there has to be the one asked for."""
    assert judge(product(top, product_name="Tea", code=inner))[1] == reason


@pytest.mark.parametrize(
    ("fields", "language", "name"),
    [
        ({"product_name": "Tea", "product_name_fr": "Thé"}, "fr", "Tea"),
        ({"product_name": "", "product_name_fr": "Thé", "product_name_en": "Tea"}, "fr", "Thé"),
        ({"product_name": "", "product_name_fr": "Thé", "product_name_en": "Tea"}, "fr-CA", "Thé"),
        ({"product_name": "", "product_name_fr": "Thé", "product_name_en": "Tea"}, "FR", "Thé"),
        ({"product_name": "", "product_name_fr": "Thé", "product_name_en": "Tea"}, "de", "Tea"),
        ({"product_name": "", "product_name_fr": "Thé", "product_name_en": "Tea"}, "", "Tea"),
        ({"product_name_fr": "Thé", "product_name_de": "Tee"}, "", "Tee"),
        ({"product_name_fr": " ", "generic_name": "Hot drink"}, "fr", "Hot drink"),
        ({"product_name": None, "product_name_fr": "Thé"}, "", "Thé"),
        ({"product_name": "Tea &amp; <b>milk</b>"}, "", "Tea & milk"),
    ],
    ids=str,
)
def test_off_6798_best_name(fields: dict[str, Any], language: str, name: str) -> None:
    """Its own name, then the site's language, English, any language, and the generic name."""
    assert item(product(**fields), language)["name"] == name


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"product_name": ""},
        {"brands": "Asda", "quantity": "1 kg"},
        {"product_name_debug_tags": ["x"], "product_name_en_imported": "Tea", "product_name_": "Tea"},
    ],
)
def test_off_12000_unnamed_product_goes_on(fields: dict[str, Any]) -> None:
    """The product exists without a name: a stop of its own, which by default goes on to the next source."""
    assert judge(product(**fields)) == (Outcome.STOP, "no_name")
    assert "no_name" in OpenFoodFactsSource.defaults["NEXT_ON"]


def test_item_has_plain_names() -> None:
    """What the API knows is under the same names as with every other adapter, and nothing else is."""
    fields = {
        "product_name": "Nutella",
        "brands": "Ferrero, Kinder",
        "quantity": "400.0 g",
        "url": "https://world.openfoodfacts.org/product/3017624010701/nutella",
        "product_type": "food",
        "nutriments": {"fat": "30"},
    }
    assert item(product(**fields)) == {
        "id": ASKED,
        "name": "Nutella",
        "brand": "Ferrero",
        "quantity": "400.0 g",
        "url": "https://world.openfoodfacts.org/product/3017624010701/nutella",
    }
    assert "brand" not in item(product(product_name="x", brands=""))
    assert "brand" not in item(product(product_name="x", brands=["y"]))


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("", "product_name,product_name_en,generic_name"),
        ("en-gb", "product_name,product_name_en,generic_name"),
        ("de-AT", "product_name,product_name_en,product_name_de,generic_name"),
        ("x", "product_name,product_name_en,generic_name"),
    ],
)
def test_request_asks_for_the_fields_that_are_read(language: str, names: str) -> None:
    """A whole product is 40 to 70 KB; the site's language decides which names are asked for."""
    request = source().request(ASKED, language, {})
    assert request.url == f"https://world.openfoodfacts.org/api/v2/product/{ASKED}"
    assert request.params == {"fields": f"code,{names},brands,quantity,product_type,url"}
    assert source("https://example.com/{id}?fields=code").request(ASKED, language, {}).params == {}


@pytest.mark.parametrize(
    ("code", "is_in_store"),
    [
        ("02000000000343", True),
        ("00200000000034", True),
        ("00400000000032", True),
        ("00000020000004", True),
        ("03017624010701", False),
        ("00000012345678", False),
        ("00123456789012", False),
        ("12000000000340", False),
    ],
)
def test_in_store_codes(code: str, is_in_store: bool) -> None:
    """Codes of one shop are asked for as they are in the catalog; the option refuses them before any call."""
    assert source().request(code, "", {}).url.endswith(code)
    if not is_in_store:
        assert source(refuse_in_store=True).request(code, "", {}).url.endswith(code)
        return
    with pytest.raises(InvalidItemID, match="in-store"):
        source(refuse_in_store=True).request(code, "", {})


def test_over_the_wire_in_the_language_of_the_lookup() -> None:
    """The language of the call, not only that of the settings, decides which name is the best."""
    document = product(product_name="", product_name_en="Tea", product_name_fr="Thé")
    with Loopback() as upstream:
        upstream.otherwise(ok(document))
        over = source(upstream.url("/api/v2/product/{id}"), language="en")
        answers = [over.fetch(ASKED, language, {}, timeout=5) for language in ("fr", "en")]
        over.close()
    names = []
    for answer in answers:
        assert isinstance(answer, Reply)
        names.append((over.parse(answer, ASKED).item or {}).get("name"))
    assert names == ["Thé", "Tea"]
    first = upstream.requests[0]
    assert first.path == f"/api/v2/product/{ASKED}"
    assert "product_name_fr" in first.target
    assert "mail@example.com" in (first.header("User-Agent") or "")


def test_call_without_a_reply() -> None:
    """What the transport says is passed on."""
    with Loopback() as upstream:
        url = upstream.url("/{id}")
    assert source(url).fetch(ASKED, "", {}, timeout=5) == NoReply("connect_failed")
