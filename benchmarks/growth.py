"""Does a hit cost more when the stop list grows?"""

from __future__ import annotations

from benchmarks import hit
from benchmarks.measuring import Case, interleave
from benchmarks.report import Row
from benchmarks.site import STOP_LISTS, StopListRouter
from benchmarks.surroundings import Surroundings

_LARGE = 1_000_000
_SMALL = min(STOP_LISTS.values())
#: What is asked → the catalog that asks it.
_CATALOGS = {"hit": "django-redis", "hit that asks the database": "locmem-auto"}
_CHUNK = 10_000


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Measure hits beside stop lists of several sizes, each in a database of its own, in the same rounds."""
    sizes = {alias: size for alias, size in STOP_LISTS.items() if around.is_large or size < _LARGE}
    cases: dict[str, Case] = {}
    for alias, size in sizes.items():
        _fill(alias, size)
        for kind, catalog in _CATALOGS.items():
            cases[_name(kind, size)] = _beside(alias, hit.hit_of(catalog))
    timings = interleave(cases, rounds)
    StopListRouter.alias = "default"
    return [
        Row(
            _name(kind, size),
            timings[_name(kind, size)].ratio_to(timings[_name(kind, _SMALL)]),
            f"that with {_SMALL}",
            timings[_name(kind, size)].median,
        )
        for kind in _CATALOGS
        for size in sizes.values()
    ]


def row_names() -> list[str]:
    """The names of the rows."""
    return [_name(kind, size) for kind in _CATALOGS for size in STOP_LISTS.values()]


def _name(kind: str, size: int) -> str:
    return f"{kind}, {size:,} stopped IDs"


def _beside(alias: str, hit_of_item: Case) -> Case:
    def case() -> object:
        StopListRouter.alias = alias
        return hit_of_item()

    return case


def _fill(alias: str, size: int) -> None:
    """Write the rows past our own query set, which would publish each of them to the cache."""
    from django.core.management import call_command  # noqa: PLC0415  # needs settings
    from django.db.models import QuerySet  # noqa: PLC0415

    from catalog_fallback.models import StoppedItem  # noqa: PLC0415

    call_command("migrate", database=alias, verbosity=0)
    for start in range(0, size, _CHUNK):
        numbers = range(start, min(start + _CHUNK, size))
        rows = [StoppedItem(catalog="locmem-auto", item_id=f"S{number:08d}") for number in numbers]
        QuerySet[StoppedItem](StoppedItem, using=alias).bulk_create(rows)
