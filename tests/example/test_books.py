"""Do the package's adapters find in the written replies what they find in the real ones?"""

from __future__ import annotations

import pytest

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Outcome, Reply
from catalogs.books import IN_OPEN_LIBRARY, IN_OPENBD, Book
from catalogs.replies import healthy_answer


def verdict_of(catalog: str, isbn: str):
    """What the adapter of this catalog makes of its healthy answer."""
    pytest.importorskip("stdnum")
    from catalog_fallback.sources.open_library import OpenLibrarySource  # noqa: PLC0415  # needs an extra
    from catalog_fallback.sources.openbd import OpenBDSource  # noqa: PLC0415  # the same

    adapter = {"openbd": OpenBDSource, "open_library": OpenLibrarySource}[catalog]
    answer = healthy_answer(catalog, (isbn,))
    reply = Reply(answer.status, {"content-type": answer.content_type}, answer.body)
    return adapter(SourceConfig(alias=catalog)).parse(reply, isbn)


@pytest.mark.parametrize(
    ("catalog", "book"),
    [
        pytest.param(catalog, book, id=f"{catalog}-{book.isbn}")
        for catalog, books in {"openbd": IN_OPENBD, "open_library": IN_OPEN_LIBRARY}.items()
        for book in books.values()
    ],
)
def test_the_adapter_finds_the_book(catalog: str, book: Book) -> None:
    """Each book is found, with its title, author and publisher."""
    verdict = verdict_of(catalog, book.isbn)
    assert verdict.outcome is Outcome.FOUND
    assert verdict.item is not None
    assert (verdict.item["id"], verdict.item["name"]) == (book.isbn, book.title)
    assert (list(verdict.item["authors"]), verdict.item["publisher"]) == ([book.author], book.publisher)


@pytest.mark.parametrize("catalog", ["openbd", "open_library"])
def test_an_unknown_book_is_not_found(catalog: str) -> None:
    """What the catalog lacks, it says in the API's own way."""
    assert verdict_of(catalog, "9780000000002").outcome is Outcome.NOT_FOUND
