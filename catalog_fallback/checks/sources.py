"""Do the sources have what their APIs ask for?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from catalog_fallback.conf import Complaint, Place, backend_of, source_complaints
from catalog_fallback.configuration import CatalogConfig


def always(catalogs: Iterable[CatalogConfig]) -> Iterator[Complaint]:
    """Complaints about sources, wherever the site runs."""
    for catalog in catalogs:
        for source in catalog.all_sources:
            yield from source_complaints(source)
        yield from _contact(catalog)


def _contact(catalog: CatalogConfig) -> Iterator[Complaint]:
    asking = [source.alias for source in catalog.sources if backend_of(source).needs_contact]
    if asking and not catalog.contact:
        place = Place.of_catalog(catalog.alias).at("CONTACT")
        yield place.warning(
            "W009",
            f"is empty, but the APIs behind {', '.join(asking)} ask for a contact in the User-Agent.",
            'Set it to a mail address or URL of the site, as in "catalog@example.com".',
        )
