"""Is Crossref's answer read as its rules say?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Outcome, Reply
from catalog_fallback.sources.crossref import CrossrefSource
from tests.loopback import Loopback, ok
from tests.sources.contract import SourceContract, json_reply

ASKED = "10.1234/abc(def)"
OTHER = "10.1234/abd"


def source(url: str | None = None, contact: str = "mail@example.com") -> CrossrefSource:
    """Return the source, with its own URL or another."""
    return CrossrefSource(SourceConfig("crossref", url=url, contact=contact))


def work(doi: Any = ASKED, **fields: Any) -> dict[str, Any]:
    """Return a find with these fields beside its DOI."""
    return {"status": "ok", "message-type": "work", "message": {"DOI": doi, "title": ["Tea"], **fields}}


class TestCrossref(SourceContract):
    """The contract, for Crossref."""

    source_class = CrossrefSource
    item_id, other_id = ASKED, OTHER
    body_statuses = frozenset({404})
    not_found = (
        Reply(404, {"content-type": "text/plain"}, b"Resource not found."),
        Reply(404, {"content-type": "application/json"}, b" Resource not found.\n"),
    )

    def document(self, item_id: str, name: str) -> Any:
        return work(item_id, title=[name], publisher="House", author=[{"given": "Ann", "family": "Lee"}])


def judge(document: Any) -> tuple[Outcome, str]:
    """Return outcome and reason of a 200 with this document."""
    verdict = source().parse(json_reply(document), ASKED)
    return verdict.outcome, verdict.reason


def item(document: Any) -> Mapping[str, Any]:
    """Return the item of a document that is a find."""
    verdict = source().parse(json_reply(document), ASKED)
    assert verdict.item is not None, verdict
    return verdict.item


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b""),
        (404, b'{"status":"failed","message-type":"resource-failure","message":[]}'),
        (404, b"<html>DOI Not Found</html>"),
        (404, b"Resource not found"),
        (404, b"Resource not found. Or is it?"),
        (404, b'"Resource not found."'),
        (400, b"Resource not found."),
        (410, b"Resource not found."),
        (200, b"Resource not found."),
    ],
)
def test_only_one_sentence_says_not_found(status: int, body: bytes) -> None:
    """A 404 with any other body is about our request, and the sentence means nothing with another status."""
    verdict = source().parse(Reply(status, {}, body), ASKED)
    assert (verdict.outcome, verdict.reason) == (Outcome.STOP, f"http_{status}" if status != 200 else "invalid_json")


@pytest.mark.parametrize(
    "document",
    [
        {**work(), "status": "failed"},
        {**work(), "message-type": "work-list"},
        {**work(), "message": [work()["message"]]},
        {"status": "ok", "message-type": "work"},
        work()["message"],
        [work()],
    ],
    ids=str,
)
def test_other_documents_are_malformed(document: Any) -> None:
    """Lists, failures and bare records are not the agreed envelope."""
    assert judge(document) == (Outcome.STOP, "invalid_schema")


@pytest.mark.parametrize(
    ("doi", "reason"),
    [
        (ASKED, "ok"),
        (ASKED.upper(), "ok"),
        (OTHER, "invalid_item"),
        (f"{ASKED}/", "invalid_item"),
        ("10.1234/ABC(DEF)\u212a", "invalid_item"),
        ("", "unverifiable"),
        (None, "unverifiable"),
        ([ASKED], "unverifiable"),
    ],
)
def test_crossref_110_another_doi_is_another_work(doi: Any, reason: str) -> None:
    """An alias answers with its primary DOI; that is another item. Case does not count, and only in ASCII."""
    assert judge(work(doi))[1] == reason


@pytest.mark.parametrize("title", [[], [""], [None], None, [["x"]], {}, [" \n "]])
def test_component_without_a_title(title: Any) -> None:
    """A figure is no article; another agency may know a title, so the search goes on."""
    assert judge(work(title=title, **{"container-title": ["PLoS"]})) == (Outcome.STOP, "no_name")
    assert "no_name" in CrossrefSource.defaults["NEXT_ON"]


def test_item_has_plain_names() -> None:
    """What the API knows is under the same names as with every other adapter, and nothing else is."""
    fields = {
        "title": ["Tea &amp; <i>milk</i>\n   in H<sub>2</sub>O", "x"],
        "author": [{"given": "Ann", "family": "Lee"}, {"family": "Ng"}, {"name": "The Group"}, {}, 5],
        "publisher": "House",
        "issued": {"date-parts": [[2009, 6, 26]]},
        "URL": "https://doi.org/10.1234/abc",
        "abstract": "<jat:p>long</jat:p>",
    }
    assert item(work(**fields)) == {
        "id": ASKED,
        "name": "Tea & milk in H2O",
        "authors": ["Ann Lee", "Ng", "The Group"],
        "publisher": "House",
        "published": "2009-06-26",
        "url": "https://doi.org/10.1234/abc",
    }


@pytest.mark.parametrize(
    ("parts", "published"),
    [
        ([[2017]], "2017"),
        ([[2017, 1]], "2017-01"),
        ([[None]], None),
        ([[]], None),
        ([], None),
        (None, None),
        ([["2017"]], None),
        ([[2017, 13, 1]], "2017"),
        ([[True, 1]], None),
        ([[10**30]], None),
    ],
    ids=str,
)
def test_published_is_as_exact_as_it_is_known(parts: Any, published: str | None) -> None:
    """Month and day may be missing; what is no date is left out."""
    assert item(work(issued={"date-parts": parts})).get("published") == published


@pytest.mark.parametrize(
    ("contact", "params"),
    [
        ("mail@example.com", {"mailto": "mail@example.com"}),
        ("mailto:mail@example.com", {"mailto": "mail@example.com"}),
        ("https://example.com/@about", {}),
        ("", {}),
    ],
)
def test_mail_address_makes_a_polite_caller(contact: str, params: dict[str, str]) -> None:
    """CONTACT goes along where it is a mail address."""
    request = source(contact=contact).request(ASKED, "", {})
    assert request.url == "https://api.crossref.org/works/10.1234%2Fabc%28def%29"
    assert request.params == params


@pytest.mark.parametrize(
    ("typed", "target"),
    [
        ("10.1111/(ISSN)1442-9993", "10.1111%2F%28issn%291442-9993"),
        ("10.5067/terra+aqua/x", "10.5067%2Fterra%2Baqua%2Fx"),
        (
            "10.1890/0012-9615(1999)069[0569:EDILSA]2.0.CO;2",
            "10.1890%2F0012-9615%281999%29069%5B0569%3Aedilsa%5D2.0.co%3B2",
        ),
        ("https://doi.org/10.1234/a%3Cb%3E?x#y", "10.1234%2Fa%3Cb%3E%3Fx%23y"),
        ("10.1234/50%25", "10.1234%2F50%2525"),
    ],
)
def test_rcrossref_254_doi_is_encoded_once(typed: str, target: str) -> None:
    """Slashes, brackets, plus and percent signs of a DOI arrive as such."""
    doi = CrossrefSource.normalize_id(typed)
    with Loopback() as upstream:
        upstream.otherwise(ok(work(doi)))
        over = source(upstream.url("/works/{id}"))
        answer = over.fetch(doi, "", {}, timeout=5)
        over.close()
    assert isinstance(answer, Reply)
    assert (over.parse(answer, doi).item or {})["id"] == doi
    assert upstream.requests[0].target == f"/works/{target}?mailto=mail%40example.com"
