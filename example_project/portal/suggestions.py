"""Which IDs are worth trying? For each catalog some, with what is to be seen."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from catalogs.books import IN_OPEN_LIBRARY, IN_OPENBD
from catalogs.papers import IN_DATACITE


class Suggestion(NamedTuple):
    """An ID of a catalog, and why to try it."""

    catalog: str
    item_id: str
    hint: str | Promise


_THINGS = (
    ("P001", _("both catalogs have it")),
    ("P002", _("only the second one has it")),
    ("P003", _("only the first one has it")),
    ("P404", _("nobody has it")),
)

SUGGESTIONS = (
    *(Suggestion(catalog, item_id, hint) for catalog in ("default", "shop") for item_id, hint in _THINGS),
    Suggestion("books", next(iter(IN_OPENBD)), _("a Japanese book, from openBD")),
    Suggestion("books", next(iter(IN_OPEN_LIBRARY)), _("a French one, from Open Library")),
    Suggestion("books", "0-306-40615-2", _("a short ISBN, with hyphens")),
    Suggestion("books", "9780000000002", _("nobody has it")),
    Suggestion("products", "3017624010701", _("something to eat, from Open Food Facts")),
    Suggestion("products", "4006381333931", _("a pen, from the second catalog")),
    Suggestion("products", "5054070608074", _("a product that nobody has named yet")),
    Suggestion("papers", "10.1111/(ISSN)1442-9993", _("a journal, from Crossref")),
    Suggestion("papers", next(iter(IN_DATACITE)), _("a data set, from DataCite")),
    Suggestion("papers", "10.1371/journal.pmed.0030277.g001", _("a figure without a title")),
)


def suggestions(catalog: str) -> list[Suggestion]:
    """Those of one catalog."""
    return [each for each in SUGGESTIONS if each.catalog == catalog]
