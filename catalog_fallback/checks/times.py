"""Do the durations fit each other?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from catalog_fallback.conf import Complaint, Place
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.waits import sum_of_limits


def always(catalogs: Iterable[CatalogConfig]) -> Iterator[Complaint]:
    """Complaints about durations, wherever the site runs."""
    for catalog in catalogs:
        place = Place.of_catalog(catalog.alias)
        yield from _without_ttl(catalog, place)
        yield from _order_of_ttls(catalog, place)
        yield from _outer_timeout(catalog, place)


def deployed(catalogs: Iterable[CatalogConfig]) -> Iterator[Complaint]:
    """Complaints about durations that matter where people wait."""
    for catalog in catalogs:
        longest = sum_of_limits(catalog)
        if longest > catalog.budget:
            yield (
                Place.of_catalog(catalog.alias)
                .at("BUDGET")
                .warning(
                    "W017",
                    f"is {catalog.budget:g} seconds, less than the {longest:g} that all calls may take together "
                    "(sum of ATTEMPTS × TIMEOUT).",
                    "Lower the TIMEOUTs or raise BUDGET, or slow sources leave no time for the last ones.",
                )
            )


def _without_ttl(catalog: CatalogConfig, place: Place) -> Iterator[Complaint]:
    if catalog.ttl:
        return
    for key in ("STALE_IF_ERROR", "REFRESH_AHEAD", "TTL_JITTER"):
        value = getattr(catalog, key.lower())
        if value:
            yield place.at(key).warning(
                "W001", f"is {value:g} and has no effect: TTL is 0, nothing is kept.", f"Set TTL, or remove {key}."
            )


def _order_of_ttls(catalog: CatalogConfig, place: Place) -> Iterator[Complaint]:
    if catalog.negative_ttl > catalog.ttl:
        yield place.at("NEGATIVE_TTL").warning(
            "W002",
            f"is {catalog.negative_ttl:g}, longer than TTL ({catalog.ttl:g}): a new item stays hidden for longer than "
            "a known one is kept.",
            "Set it to TTL or less.",
        )
    if 0 < catalog.stale_if_error < catalog.ttl:
        yield place.at("STALE_IF_ERROR").warning(
            "W007",
            f"is {catalog.stale_if_error:g}, shorter than TTL ({catalog.ttl:g}). It counts from the end of TTL; such a "
            "short one bridges only short outages.",
            "Set it to TTL or more, to 0 to switch it off, or silence this check if that is what you want.",
        )


def _outer_timeout(catalog: CatalogConfig, place: Place) -> Iterator[Complaint]:
    if catalog.budget >= catalog.outer_timeout:
        yield place.at("BUDGET").warning(
            "W008",
            f"is {catalog.budget:g} seconds, but the web server ends a request after {catalog.outer_timeout:g} "
            "(OUTER_TIMEOUT).",
            "Lower BUDGET, or raise the limit of the web server and OUTER_TIMEOUT with it: each layer has to wait a "
            "little longer than the one inside it.",
        )
