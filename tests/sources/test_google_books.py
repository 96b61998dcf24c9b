"""Is Google Books' answer read as its rules say, and does its key stay in the request?"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Outcome, Reply
from catalog_fallback.sources.google_books import GoogleBooksSource
from tests.loopback import Loopback, ok, reply
from tests.sources.contract import SourceContract, json_reply

ASKED = "9780306406157"
OTHER = "9782070464234"
KEY = "canary-7f3a"


def source(url: str | None = None, **options: Any) -> GoogleBooksSource:
    """Return the source, with its own URL or another."""
    return GoogleBooksSource(SourceConfig("google_books", url=url, contact="mail@example.com"), **options)


def volume(*isbns: str, kind: str = "ISBN_13", **fields: Any) -> dict[str, Any]:
    """Return a hit with these identifiers and a title."""
    identifiers = [{"type": kind, "identifier": isbn} for isbn in isbns]
    return {"id": "x", "volumeInfo": {"title": "Tea", "industryIdentifiers": identifiers, **fields}}


def hits(*volumes: Any, **fields: Any) -> dict[str, Any]:
    """Return a list of hits."""
    return {"kind": "books#volumes", "totalItems": len(volumes), "items": list(volumes), **fields}


class TestGoogleBooks(SourceContract):
    """The contract, for Google Books."""

    source_class = GoogleBooksSource
    options = {"key": KEY, "country": "JP"}  # noqa: RUF012  # ClassVar in the base class
    item_id, other_id = ASKED, OTHER
    not_found = (
        json_reply({"kind": "books#volumes", "totalItems": 0}),
        json_reply({"kind": "books#volumes", "totalItems": 0, "items": []}),
    )

    def document(self, item_id: str, name: str) -> Any:
        fields = {"title": name, "authors": ["Ann"], "publisher": "House", "publishedDate": "1999"}
        return hits(volume(item_id, **fields))


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
    ("volumes", "reason"),
    [
        ([volume(ASKED)], "ok"),
        ([volume("0306406152", kind="ISBN_10")], "ok"),
        ([volume("0306406152", ASKED)], "ok"),
        ([volume(OTHER), volume(ASKED)], "ok"),
        ([volume("UOM:39015004307750", kind="OTHER"), volume(ASKED)], "ok"),
        ([volume(OTHER)], "invalid_item"),
        ([volume(OTHER), volume("UOM:39015004307750", kind="OTHER")], "invalid_item"),
        ([volume("UOM:39015004307750", kind="OTHER")], "unverifiable"),
        ([volume(ASKED, kind="OTHER")], "unverifiable"),
        ([volume("GENT:900000009876", kind="ISBN_13")], "unverifiable"),
        ([volume()], "unverifiable"),
        ([{"id": "x"}], "unverifiable"),
        ([None, 5, []], "unverifiable"),
    ],
    ids=str,
)
def test_isbnlib_23_a_hit_has_to_hold_the_isbn(volumes: list[Any], reason: str) -> None:
    """Hits may be other books: the first that names the ISBN is it, and one without an ISBN proves nothing."""
    assert judge(hits(*volumes))[1] == reason


@pytest.mark.parametrize(
    "document",
    [
        {"totalItems": 0},
        {"kind": "books#volume", "totalItems": 0},
        {"kind": "books#volumes"},
        {"kind": "books#volumes", "totalItems": 3},
        {"kind": "books#volumes", "totalItems": 3, "items": []},
        {"kind": "books#volumes", "totalItems": "0"},
        {"kind": "books#volumes", "totalItems": False},
        {"kind": "books#volumes", "totalItems": None, "items": None},
        {"kind": "books#volumes", "totalItems": 0, "items": {}},
        volume(ASKED),
        [volume(ASKED)],
    ],
    ids=str,
)
def test_other_documents_are_malformed(document: Any) -> None:
    """Only a complete list of volumes with nothing in it says "not found"."""
    assert judge(document) == (Outcome.STOP, "invalid_schema")


def test_items_count_more_than_their_number() -> None:
    """The number of hits changes from call to call; the hits themselves are what there is."""
    assert judge(hits(volume(ASKED), totalItems=0)) == (Outcome.FOUND, "ok")


@pytest.mark.parametrize("fields", [{"title": ""}, {"title": None}, {"title": " ", "subtitle": "x"}])
def test_no_name(fields: dict[str, Any]) -> None:
    """A record without a title has no name."""
    assert judge(hits(volume(ASKED, **fields))) == (Outcome.STOP, "no_name")


def test_item_has_plain_names() -> None:
    """What the API knows is under the same names as with every other adapter, and nothing else is."""
    fields = {
        "subtitle": "A <i>history</i>",
        "authors": ["Ann &amp; Bob", ""],
        "publisher": "House",
        "publishedDate": "2008-03-28",
        "infoLink": "http://books.google.com/books?id=x",
        "description": "long",
    }
    assert item(hits(volume(ASKED, **fields))) == {
        "id": ASKED,
        "name": "Tea: A history",
        "authors": ["Ann & Bob"],
        "publisher": "House",
        "published": "2008-03-28",
        "url": "http://books.google.com/books?id=x",
    }


def quota(unit: Any) -> dict[str, Any]:
    """Return the body of a 429 with this quota unit."""
    return {"error": {"code": 429, "details": [{"@type": "x"}, {"metadata": {"quota_unit": unit}}]}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (quota("1/d/{project}"), 3600.0),
        (quota("1/min/{project}"), 7.0),
        (quota(None), 7.0),
        ({"error": {"details": {}}}, 7.0),
        ({"error": "x"}, 7.0),
        ([], 7.0),
    ],
    ids=str,
)
def test_isbnlib_150_daily_quota_cools_down_for_an_hour(body: Any, expected: float) -> None:
    """A quota per day is not over in a minute; every other 429 waits as its header says."""
    verdict = source().parse(json_reply(body, 429, {"retry-after": "7"}), ASKED)
    assert (verdict.outcome, verdict.reason, verdict.retry_after) == (Outcome.STOP, "http_429", expected)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_tome_11_a_bad_key_is_no_missing_book(status: int) -> None:
    """A 400 means the key or the request, a 403 the key, the quota or the country: never "not found"."""
    assert judge({"error": {"code": status, "errors": [{"reason": "x"}]}}, status) == (Outcome.STOP, f"http_{status}")


def test_request() -> None:
    """The adapter needs no URL; key and country go into the query, and only where they are set."""
    request = source(key=KEY, country="JP").request(ASKED, "", {})
    assert request.url.startswith(f"https://www.googleapis.com/books/v1/volumes?q=isbn:{ASKED}&")
    assert request.params == {"key": KEY, "country": "JP"}
    assert source().request(ASKED, "", {}).params == {}


def test_key_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Not in a repr, and not in a log record of any library at any level."""
    caplog.set_level(logging.DEBUG)
    with Loopback() as upstream:
        upstream.otherwise(reply(400, {"error": KEY}))
        over = source(upstream.url("/books/v1/volumes?q=isbn:{id}"), key=KEY)
        answer = over.fetch(ASKED, "", {}, timeout=5)
        over.close()
        assert not isinstance(answer, NoReply)
        verdict = over.parse(answer, ASKED)
        assert upstream.requests[0].target == f"/books/v1/volumes?q=isbn:{ASKED}&key={KEY}"
    assert KEY not in repr((over, over.request(ASKED, "", {}), answer, verdict, over.config))
    assert caplog.records, "urllib3 logs its connections at this level"
    assert all(KEY not in record.getMessage() + repr(record.args) for record in caplog.records)


@pytest.mark.parametrize(
    ("options", "word"),
    [({}, "key"), ({"key": KEY, "country": "Japan"}, "country"), ({"key": KEY, "country": "jp"}, "country")],
    ids=["no key", "a name", "small letters"],
)
def test_check(options: dict[str, Any], word: str) -> None:
    """A missing key and a wrong country are said in words that show no value."""
    said = " ".join(source(**options).check())
    assert f'"{word}"' in said
    assert KEY not in said
    assert list(source(key=KEY, country="JP").check()) == []


def test_over_the_wire() -> None:
    """One book is asked for with a contact in the User-Agent."""
    with Loopback() as upstream:
        upstream.otherwise(ok(hits(volume(ASKED))))
        over = source(upstream.url("/volumes?q=isbn:{id}"), key=KEY, country="JP")
        answer = over.fetch(ASKED, "", {}, timeout=5)
        over.close()
    assert isinstance(answer, Reply)
    assert over.parse(answer, ASKED).outcome is Outcome.FOUND
    assert upstream.requests[0].target == f"/volumes?q=isbn:{ASKED}&country=JP&key={KEY}"
    assert "mail@example.com" in (upstream.requests[0].header("User-Agent") or "")
