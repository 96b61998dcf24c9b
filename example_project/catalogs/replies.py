"""What does each simulated catalog answer when nothing is wrong with it? Bodies in the shape of the real APIs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from catalogs.answers import Answer, as_json
from catalogs.books import IN_OPEN_LIBRARY, IN_OPENBD, IN_PRIMARY, IN_SECONDARY, Book
from catalogs.papers import crossref, datacite
from catalogs.products import food_facts, products_facts

#: The catalogs, and an ID that each of them has (sent in place of another one by the fault "wrong ID").
CATALOGS: Mapping[str, tuple[str, ...]] = {
    "primary": ("P003", "P005"),
    "secondary": ("P002", "P004"),
    "openbd": ("9784535585744", "9784798142418"),
    "open_library": ("9780141439518", "9780262033848"),
    "open_food_facts": ("3017624010701", "9300650658615"),
    "open_products_facts": ("3450970084468", "4006381333931"),
    "crossref": ("10.1111/(issn)1442-9993", "10.1045/january2017-burton"),
    "datacite": ("10.2312/geowissenschaften.1989.7.181", "10.4121/uuid:3926db30-f712-4394-aebc-75976070e91f"),
}

#: The path of each API that is asked for one item at a time; what follows is its ID.
_PREFIXES: Mapping[str, str] = {
    "/primary/items/": "primary",
    "/secondary/items/": "secondary",
    "/api/v2/product/": "open_food_facts",
    "/opf/api/v2/product/": "open_products_facts",
    "/works/": "crossref",
    "/dois/": "datacite",
}


def route(target: str) -> tuple[str, tuple[str, ...]] | None:
    """Which catalog and which IDs does this request target ask for? None: no such route."""
    url = urlsplit(target)
    query = parse_qs(url.query)
    if url.path == "/v1/get":
        return "openbd", _listed(query, "isbn")
    if url.path == "/api/books.json":
        return "open_library", tuple(key.partition(":")[2] for key in _listed(query, "bibkeys"))
    folder, _, item_id = url.path.rpartition("/")
    catalog = _PREFIXES.get(f"{folder}/")
    return (catalog, (unquote(item_id),)) if catalog and item_id else None


def _listed(query: Mapping[str, list[str]], name: str) -> tuple[str, ...]:
    return tuple(part for value in query.get(name, []) for part in value.split(",") if part)


def healthy_answer(catalog: str, item_ids: tuple[str, ...]) -> Answer:
    """What the catalog says about these IDs."""
    answer = _ANSWERS.get(catalog)
    return as_json(_BODIES[catalog](item_ids)) if answer is None else answer(item_ids)


def other_id(catalog: str, item_ids: tuple[str, ...]) -> str:
    """An ID that the catalog has and that was not asked for."""
    return next(item_id for item_id in CATALOGS[catalog] if item_id not in item_ids)


# ------------------------------------------------------------------------------------------------ bodies


def _envelope(names: Mapping[str, str]) -> Callable[[Iterable[str]], Any]:
    """The default envelope of the package: ``{"item": {"id": …, "name": …}}`` or ``{"item": null}``."""

    def body(item_ids: Iterable[str]) -> Any:
        item_id = next(iter(item_ids))
        return {"item": {"id": item_id, "name": names[item_id]} if item_id in names else None}

    return body


def _openbd(item_ids: Iterable[str]) -> Any:
    return [_openbd_record(IN_OPENBD[isbn]) if isbn in IN_OPENBD else None for isbn in item_ids]


def _openbd_record(book: Book) -> Any:
    title = {"TitleType": "01", "TitleElement": {"TitleElementLevel": "01", "TitleText": {"content": book.title}}}
    return {
        "onix": {
            "RecordReference": book.isbn,
            "NotificationType": "03",
            "ProductIdentifier": {"ProductIDType": "15", "IDValue": book.isbn},
            "DescriptiveDetail": {
                "ProductComposition": "00",
                "TitleDetail": title,
                "Contributor": [
                    {"SequenceNumber": "1", "ContributorRole": ["A01"], "PersonName": {"content": book.author}}
                ],
            },
            "PublishingDetail": {"Imprint": {"ImprintName": book.publisher}},
        },
        "hanmoto": {},
        "summary": {
            "isbn": book.isbn,
            "title": book.title,
            "volume": "",
            "series": "",
            "publisher": book.publisher,
            "pubdate": book.published,
            "cover": "",
            "author": f"{book.author}／著",
        },
    }


def _open_library(item_ids: Iterable[str]) -> Any:
    found = (IN_OPEN_LIBRARY[isbn] for isbn in item_ids if isbn in IN_OPEN_LIBRARY)
    return {f"ISBN:{book.isbn}": _open_library_record(book) for book in found}


def _open_library_record(book: Book) -> Any:
    return {
        "title": book.title,
        "authors": [{"name": book.author}],
        "publishers": [{"name": book.publisher}],
        "publish_date": book.published,
        "identifiers": {"isbn_13": [book.isbn]},
    }


_BODIES: Mapping[str, Callable[[Iterable[str]], Any]] = {
    "primary": _envelope(IN_PRIMARY),
    "secondary": _envelope(IN_SECONDARY),
    "openbd": _openbd,
    "open_library": _open_library,
}

#: Those whose answers differ by more than the body.
_ANSWERS: Mapping[str, Callable[[tuple[str, ...]], Answer]] = {
    "open_food_facts": food_facts,
    "open_products_facts": products_facts,
    "crossref": crossref,
    "datacite": datacite,
}
