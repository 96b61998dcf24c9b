"""Does a hit cost more when something grows: the stop list, the sources, the variants, the entries in the cache?"""

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
#: What grows beside the stop list → the row of the small one, and of the large one.
_ONE_SOURCE, _TEN_SOURCES = "hit, 1 source", "hit, 10 sources"
_ONE_VARIANT, _MANY_VARIANTS = "hit, 1 variant of the item", "hit, 1,000 variants of the item"
_FEW_ENTRIES, _MANY_ENTRIES = "hit, 100 entries in the cache", "hit, 10,000 entries in the cache"
#: ID → in how many languages it is in the cache.
_VARIANTS = {"SINGLE": 1, "VARIED": 1000}
_PAIRS = {_TEN_SOURCES: _ONE_SOURCE, _MANY_VARIANTS: _ONE_VARIANT, _MANY_ENTRIES: _FEW_ENTRIES}


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Measure hits beside stop lists of several sizes, each in a database of its own, in the same rounds."""
    sizes = {alias: size for alias, size in STOP_LISTS.items() if around.is_large or size < _LARGE}
    cases: dict[str, Case] = {}
    for alias, size in sizes.items():
        _fill(alias, size)
        for kind, catalog in _CATALOGS.items():
            cases[_name(kind, size)] = _beside(alias, hit.hit_of(catalog))
    cases |= _pairs()
    timings = interleave(cases, rounds)
    StopListRouter.alias = "default"
    pairs = [
        Row(name, timings[name].ratio_to(timings[base]), base, timings[name].median)
        for large, base in _PAIRS.items()
        for name in (base, large)
    ]
    stop_lists = [
        Row(
            _name(kind, size),
            timings[_name(kind, size)].ratio_to(timings[_name(kind, _SMALL)]),
            f"that with {_SMALL}",
            timings[_name(kind, size)].median,
        )
        for kind in _CATALOGS
        for size in sizes.values()
    ]
    return [*stop_lists, *pairs]


def row_names() -> list[str]:
    """The names of the rows."""
    stop_lists = [_name(kind, size) for kind in _CATALOGS for size in STOP_LISTS.values()]
    return [*stop_lists, *(name for pair in _PAIRS.items() for name in pair)]


def _name(kind: str, size: int) -> str:
    return f"{kind}, {size:,} stopped IDs"


def _pairs() -> dict[str, Case]:
    """Hits on django-redis beside few and beside many of each."""
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    few, many = hit.hit_of("growth-small"), hit.hit_of("growth-large")
    _add_entries("growth-small", 100)
    _add_entries("growth-large", 10_000)
    for item_id, variants in _VARIANTS.items():
        for number in range(variants):
            find_item(item_id, catalog="django-redis", language=f"x-{number}" if number else None)
    single, varied = _VARIANTS
    return {
        _ONE_SOURCE: few,
        _TEN_SOURCES: hit.hit_of("ten-sources"),
        _ONE_VARIANT: lambda: find_item(single, catalog="django-redis"),
        _MANY_VARIANTS: lambda: find_item(varied, catalog="django-redis"),
        _FEW_ENTRIES: few,
        _MANY_ENTRIES: many,
    }


def _add_entries(catalog: str, count: int) -> None:
    """Put gates and entries of so many other items beside that of the hit."""
    from django.core.cache import caches  # noqa: PLC0415  # needs settings

    from catalog_fallback.cache import entries_of  # noqa: PLC0415

    entries = entries_of[catalog]
    cache = caches[entries.config.cache]
    asked = entries.query(hit.ITEM_ID)
    gate, entry = cache.get(asked.gate_key), cache.get(asked.entry_key)
    others = [entries.query(f"G{number:08d}") for number in range(count)]
    cache.set_many({query.gate_key: gate for query in others} | {query.entry_key: entry for query in others}, 3600)


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
