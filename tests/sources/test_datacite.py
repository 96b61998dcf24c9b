"""Is DataCite's answer read as its rules say?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Outcome, Reply
from catalog_fallback.sources.crossref import CrossrefSource
from catalog_fallback.sources.datacite import DataCiteSource
from tests.loopback import Loopback, ok
from tests.sources.contract import SourceContract, json_reply

ASKED = "10.5067/terra+aqua/x"
OTHER = "10.5067/terra"
NOT_FOUND = {"errors": [{"status": "404", "title": "The resource you are looking for doesn't exist."}]}


def source(url: str | None = None) -> DataCiteSource:
    """Return the source, with its own URL or another."""
    return DataCiteSource(SourceConfig("datacite", url=url, contact="mail@example.com"))


def record(doi: Any = ASKED, **fields: Any) -> dict[str, Any]:
    """Return a find with these attributes beside its DOI."""
    return {"data": {"id": doi, "type": "dois", "attributes": {"titles": [{"title": "Tea"}], **fields}}}


class TestDataCite(SourceContract):
    """The contract, for DataCite."""

    source_class = DataCiteSource
    item_id, other_id = ASKED, OTHER
    body_statuses = frozenset({404})
    not_found = (json_reply(NOT_FOUND, 404),)

    def document(self, item_id: str, name: str) -> Any:
        return record(item_id, titles=[{"title": name}], publisher="House", publicationYear=2016, creators=[])


def judge(document: Any, status: int = 200) -> tuple[Outcome, str]:
    """Return outcome and reason of a reply with this document."""
    verdict = source().parse(json_reply(document, status), ASKED)
    return verdict.outcome, verdict.reason


def item(document: Any) -> Mapping[str, Any]:
    """Return the item of a document that is a find."""
    verdict = source().parse(json_reply(document), ASKED)
    assert verdict.item is not None, verdict
    return verdict.item


@pytest.mark.parametrize(
    ("document", "status", "reason"),
    [
        (NOT_FOUND, 200, "invalid_schema"),
        (NOT_FOUND, 410, "http_410"),
        (NOT_FOUND, 400, "http_400"),
        ({"errors": [{"status": 404}]}, 404, "http_404"),
        ({"errors": [{"status": "500"}, {"status": "404"}]}, 404, "http_404"),
        ({"errors": {"status": "404"}}, 404, "http_404"),
        ({"errors": []}, 404, "http_404"),
        ({"status": "404"}, 404, "http_404"),
        (record(), 404, "http_404"),
        ([], 404, "http_404"),
    ],
    ids=str,
)
def test_only_a_404_that_says_so_twice_is_not_found(document: Any, status: int, reason: str) -> None:
    """Status and first error have to agree; a 404 with any other body means that the route is gone."""
    assert judge(document, status) == (Outcome.STOP, reason)


@pytest.mark.parametrize(
    "document",
    [
        {"data": [record()["data"]]},
        {"data": None},
        {"data": {"id": ASKED}},
        {"data": {"id": ASKED, "attributes": []}},
        [{"DOI": "10.5067", "RA": "DataCite"}],
        {},
    ],
    ids=str,
)
def test_other_documents_are_malformed(document: Any) -> None:
    """Lists, agencies and records without attributes are not the agreed envelope."""
    assert judge(document) == (Outcome.STOP, "invalid_schema")


@pytest.mark.parametrize(
    ("doi", "reason"),
    [
        (ASKED, "ok"),
        (ASKED.upper(), "ok"),
        (OTHER, "invalid_item"),
        (ASKED.replace("+", " "), "invalid_item"),
        ("", "unverifiable"),
        (None, "unverifiable"),
    ],
)
def test_doi_has_to_be_the_one_asked_for(doi: Any, reason: str) -> None:
    """Compared without regard to case."""
    assert judge(record(doi))[1] == reason


@pytest.mark.parametrize("titles", [[], [{}], [{"title": ""}], [{"title": None}], None, ["Tea"], [[]]])
def test_no_title(titles: Any) -> None:
    """A record without a title has no name; the search goes on."""
    assert judge(record(titles=titles)) == (Outcome.STOP, "no_name")
    assert "no_name" in DataCiteSource.defaults["NEXT_ON"]


def test_item_has_plain_names() -> None:
    """What the API knows is under the same names as with every other adapter, and nothing else is."""
    fields = {
        "titles": [{"title": "Tea <i>data</i>"}, {"title": "x"}],
        "creators": [
            {"name": "Mossman, David J", "givenName": "David J", "familyName": "Mossman"},
            {"name": "The Group"},
            {"name": "Only, Family", "familyName": "Only"},
            {},
            5,
        ],
        "publisher": {"name": "House", "publisherIdentifier": "x"},
        "publicationYear": 1989,
        "url": "https://example.org/tea",
        "descriptions": ["long"],
    }
    assert item(record(**fields)) == {
        "id": ASKED,
        "name": "Tea data",
        "authors": ["David J Mossman", "The Group", "Only, Family"],
        "publisher": "House",
        "published": "1989",
        "url": "https://example.org/tea",
    }


@pytest.mark.parametrize(
    ("year", "published"), [("1989", "1989"), (0, None), (10**6, None), (True, None), (None, None)]
)
def test_published(year: Any, published: str | None) -> None:
    """A year comes as a number or a text; anything else is none."""
    assert item(record(publicationYear=year)).get("published") == published


def test_agrees_with_crossref_on_ids() -> None:
    """Both can be in one catalog."""
    assert DataCiteSource.normalize_id is CrossrefSource.normalize_id
    assert DataCiteSource.id_pattern == CrossrefSource.id_pattern


def test_over_the_wire() -> None:
    """A plus sign of a DOI arrives as such, with a contact in the User-Agent."""
    with Loopback() as upstream:
        upstream.otherwise(ok(record()))
        over = source(upstream.url("/dois/{id}"))
        answer = over.fetch(ASKED, "", {}, timeout=5)
        over.close()
    assert isinstance(answer, Reply)
    assert over.parse(answer, ASKED).outcome is Outcome.FOUND
    assert upstream.requests[0].target == "/dois/10.5067%2Fterra%2Baqua%2Fx"
    assert "mail@example.com" in (upstream.requests[0].header("User-Agent") or "")
    assert source().request(ASKED, "", {}).url == "https://api.datacite.org/dois/10.5067%2Fterra%2Baqua%2Fx"
