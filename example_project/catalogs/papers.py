"""Which papers and data sets do the simulated Crossref and DataCite hold, and in which words do they answer?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catalogs.answers import Answer, as_json


@dataclass(frozen=True, slots=True)
class Work:
    """What both APIs say about a work; a figure has no title. Authors are (given name, family name)."""

    doi: str
    title: str
    publisher: str
    year: int
    authors: tuple[tuple[str, str], ...] = ()


def _filed(*works: Work) -> dict[str, Work]:
    return {work.doi.lower(): work for work in works}


#: Papers are asked of Crossref first …
IN_CROSSREF = _filed(
    Work("10.1111/(issn)1442-9993", "Austral Ecology", "Wiley", 2000),
    Work(
        "10.1045/january2017-burton",
        "The Scholix Framework for Interoperability\n in Data-Literature Information Exchange",
        "CNRI Acct",
        2017,
        (("Adrian", "Burton"),),
    ),
    Work("10.1371/journal.pmed.0030277.g001", "", "Public Library of Science (PLoS)", 2006),
)

#: … and then of DataCite, which has data sets.
IN_DATACITE = _filed(
    Work(
        "10.4121/uuid:3926db30-f712-4394-aebc-75976070e91f",
        "BPI Challenge 2012",
        "Eindhoven University of Technology",
        2012,
        (("Boudewijn", "van Dongen"),),
    ),
    Work(
        "10.2312/geowissenschaften.1989.7.181",
        "An Overview of the Geology of Canadian Gold Occurrences",
        "VCH Verlagsgesellschaft mbH",
        1989,
        (("David J", "Mossman"),),
    ),
)


def crossref(item_ids: tuple[str, ...]) -> Answer:
    """What Crossref says: its 404 is one sentence, and no JSON."""
    work = IN_CROSSREF.get(item_ids[0].lower())
    if work is None:
        return Answer(404, b"Resource not found.", "text/plain")
    return as_json({"status": "ok", "message-type": "work", "message-version": "1.0.0", "message": _message(work)})


def _message(work: Work) -> dict[str, Any]:
    return {
        "DOI": work.doi.upper(),
        "URL": f"https://doi.org/{work.doi}",
        "title": [work.title] if work.title else [],
        "author": [{"given": given, "family": family} for given, family in work.authors],
        "publisher": work.publisher,
        "issued": {"date-parts": [[work.year]]},
    }


def datacite(item_ids: tuple[str, ...]) -> Answer:
    """What DataCite says: its 404 is JSON that says 404 once more."""
    work = IN_DATACITE.get(item_ids[0].lower())
    if work is None:
        return as_json({"errors": [{"status": "404", "title": "The resource you are looking for doesn't exist."}]}, 404)
    return as_json({"data": {"id": work.doi, "type": "dois", "attributes": _attributes(work)}})


def _attributes(work: Work) -> dict[str, Any]:
    return {
        "doi": work.doi,
        "titles": [{"title": work.title}],
        "creators": [
            {"name": f"{family}, {given}", "givenName": given, "familyName": family} for given, family in work.authors
        ],
        "publisher": work.publisher,
        "publicationYear": work.year,
    }
