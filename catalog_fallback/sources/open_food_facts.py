"""What does Open Food Facts say about a barcode? One status has three meanings; only the words tell them apart."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from catalog_fallback import classify
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.results import NoReply, Reply, Request, Verdict
from catalog_fallback.sources import identifiers, json_body, json_reply, text
from catalog_fallback.sources.base import Source
from catalog_fallback.sources.json_path import dig, objects

_UNIQUE_NAMES = json_body.UNIQUE_NAMES | {
    "status",
    "status_verbose",
    "code",
    "product",
    "product_name",
    "result",
    "errors",
    "message",
}
_FIELDS = "code,product_name,product_name_en,{own}generic_name,brands,quantity,product_type,url"
_LANGUAGE = re.compile("[a-z]{2,3}(?![a-z0-9])")
_ANY_NAME = re.compile("product_name_[a-z]{2,3}")
_CODE = re.compile("[0-9]{1,14}")
#: In which language was asked, noted beside the reply's own headers under a name that no server can send.
_ASKED_IN = ":language"

#: Beginnings of ``status_verbose`` (v2), and message IDs (v3), that are neither a find nor "not found".
_VERBOSE = (
    ("no code or invalid code", "invalid_request"),
    ("product found with a different product type", "other_type"),
)
_MESSAGES = (
    ("invalid_code", "invalid_request"),
    ("product_found_with_a_different_product_type", "other_type"),
)


class OpenFoodFactsSource(Source):
    """Food by barcode. IDs are GTIN-14.

    ``refuse_in_store``
        Do not ask for codes that shops give themselves (GTIN-13 beginning with 2, 02 or 04): InvalidItemID.
    """

    id_pattern: ClassVar[str] = identifiers.GTIN14_PATTERN
    normalize_id = staticmethod(identifiers.gtin14)
    needs_contact: ClassVar[bool] = True
    default_url: ClassVar[str | None] = "https://world.openfoodfacts.org/api/v2/product/{id}"
    defaults: ClassVar[Mapping[str, Any]] = {
        "RATE_LIMIT": {"CALLS": 15, "PER": 60},
        "NEXT_ON": ["not_found", "temporary", "no_name"],
    }

    def __init__(self, config: SourceConfig, *, refuse_in_store: bool = False) -> None:
        """Take the option from OPTIONS."""
        super().__init__(config)
        self._refuses_in_store = refuse_in_store

    def request(self, item_id: str, language: str, vary: Mapping[str, str]) -> Request:
        """Return the GET for one product, limited to the fields that are read (a whole one is 40 to 70 KB)."""
        if self._refuses_in_store and _is_in_store(item_id):
            raise InvalidItemID(f"{item_id} is an in-store code: every shop uses it for something else.")
        request = super().request(item_id, language, vary)
        if "fields=" in request.url:
            return request
        own = _language(language)
        fields = _FIELDS.format(own=f"product_name_{own}," if own not in ("", "en") else "")
        return dataclasses.replace(request, params={"fields": fields})

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """Make the call, and note beside the reply in which language it was asked for: the best name depends on it."""
        reply = super().fetch(item_id, language, vary, timeout=timeout)
        if isinstance(reply, NoReply):
            return reply
        return dataclasses.replace(reply, headers={**reply.headers, _ASKED_IN: language})

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Return what the reply means: 200 and 404 are judged by the words in the body, in the form of v0, v2 or v3."""
        if reply.status == 404:
            return classify.verdict(_refusal(json_body.decode(reply.body, _UNIQUE_NAMES)) or "http_404")
        answer = json_reply.document(reply, _UNIQUE_NAMES)
        if isinstance(answer, Verdict):
            return answer
        refusal = _refusal(answer)
        if refusal is not None:
            return classify.verdict(refusal)
        if not isinstance(answer, dict) or not _is_find(answer):
            return classify.verdict("invalid_schema")
        return _judge(answer, item_id, _language(reply.headers.get(_ASKED_IN, self.config.language)))


def _language(tag: str) -> str:
    """Return the language of ``de-AT`` as the API writes it; ``""`` where there is none."""
    match = _LANGUAGE.match(tag.lower())
    return "" if match is None else match[0]


def _is_in_store(gtin: str) -> bool:
    """Whether a GTIN-14 is one that shops give themselves: EAN-13 20-29, 02 and 04 (UPC), EAN-8 from 2."""
    is_short = gtin.startswith("000000")
    return gtin[6] == "2" if is_short else gtin.startswith(("02", "002", "004"))


def _refusal(answer: Any) -> str | None:
    """Return the reason where the words say that there is no product to show, None where they do not."""
    if not isinstance(answer, dict):
        return None
    errors = objects(answer.get("errors"), text.MAX_ENTRIES)
    messages = {message for message in (dig(error, "message", "id") for error in errors) if isinstance(message, str)}
    for word, reason in _MESSAGES:
        if word in messages:
            return reason
    if dig(answer, "result", "id") == "product_not_found":
        return "empty_result"
    status, verbose = answer.get("status"), answer.get("status_verbose")
    if type(status) is not int or status != 0 or not isinstance(verbose, str):
        return None
    if verbose == "product not found":
        return "empty_result"
    return next((reason for words, reason in _VERBOSE if verbose.startswith(words)), None)


def _is_find(answer: dict[str, Any]) -> bool:
    if not isinstance(answer.get("product"), dict):
        return False
    status = answer.get("status")
    return status.startswith("success") if isinstance(status, str) else type(status) is int and status == 1


def _judge(answer: dict[str, Any], item_id: str, language: str) -> Verdict:
    product = answer["product"]
    codes = {_padded(code) for code in (answer.get("code"), product.get("code"))} - {None}
    if codes != {_padded(item_id)}:
        return classify.verdict("invalid_item" if codes else "unverifiable")
    name = next(_names(product, language), None)
    if name is None:
        return classify.verdict("no_name")
    return classify.found(
        text.without_empty(
            {
                "id": item_id,
                "name": name,
                "brand": _brand(product.get("brands")),
                "quantity": text.clean_name(product.get("quantity")),
                "url": text.web_url(product.get("url")),
            }
        )
    )


def _padded(code: object) -> str | None:
    """Return a code in the form in which codes are compared; None for what is no code."""
    return code.zfill(14) if isinstance(code, str) and _CODE.fullmatch(code) is not None else None


def _names(product: dict[str, Any], language: str) -> Iterator[str]:
    """Yield the product's names, the best one first; many products have none, or one in another language only."""
    others = sorted(key for key in product if _ANY_NAME.fullmatch(key) is not None)
    own = [f"product_name_{language}"] if language else []
    keys = ["product_name", *own, "product_name_en", *others, "generic_name"]
    return (name for name in (text.clean_name(product.get(key)) for key in keys) if name)


def _brand(brands: object) -> str:
    """Return the first of ``"Thai Kitchen,Simply Asia"``."""
    return text.clean_name(brands.partition(",")[0]) if isinstance(brands, str) else ""
