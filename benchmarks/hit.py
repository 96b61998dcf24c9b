"""What does a hit cost beside the read that no cache can do without?"""

from __future__ import annotations

from functools import partial

from benchmarks import counting, peers
from benchmarks.bars import GET_MANY
from benchmarks.measuring import Case, Timing, interleave
from benchmarks.report import Row
from benchmarks.surroundings import Surroundings

ITEM_ID = "P001"
#: Row → the catalog that is asked (named after its cache).
_HITS = {
    "hit, django-redis": "django-redis",
    "hit, Django's RedisCache": "django",
    "hit, LocMem, STOP_CHECK=cache": "locmem",
    "hit, LocMem, STOP_CHECK=auto (asks the database)": "locmem-auto",
}
_COUNTED = ("hit, django-redis", "hit, Django's RedisCache")
_QUERIES = "hit, STOP_CHECK=cache: database queries"
_DOGPILE = "dogpile.cache over Redis (one key, no stop list)"


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Measure every backend against its own floor, and the peer against that of django-redis."""
    cases: dict[str, Case] = {}
    for name, catalog in _HITS.items():
        cases[name] = hit_of(catalog)
        cases[floor_of(name)] = floor(catalog)
    has_dogpile = peers.is_installed("dogpile.cache")
    if has_dogpile:
        ask = peers.dogpile(around.redis, lambda _: around.an_item(ITEM_ID))
        cases[_DOGPILE] = partial(ask, ITEM_ID)
    timings = interleave(cases, rounds)
    rows = [row for name in _HITS for row in _pair(name, timings)]
    if has_dogpile:
        rows.append(_row(_DOGPILE, timings, floor_of("hit, django-redis")))
    return rows + ([] if has_dogpile else peers.missing([_DOGPILE])) + _counts(around)


def row_names() -> list[str]:
    """The names of the rows of our own."""
    return [*_HITS, *(f"{name}: commands" for name in _COUNTED), _QUERIES]


def hit_of(catalog: str) -> Case:
    """A lookup of an item that is in the cache."""
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    find_item(ITEM_ID, catalog=catalog)
    lookup = find_item(ITEM_ID, catalog=catalog)
    assert lookup.is_found, lookup
    assert lookup.cache == "hit", lookup
    return lambda: find_item(ITEM_ID, catalog=catalog)


def floor(catalog: str) -> Case:
    """``get_many`` of the two keys that this hit reads, through Django's cache."""
    from django.core.cache import caches  # noqa: PLC0415  # needs settings

    from catalog_fallback.cache import entries_of  # noqa: PLC0415

    entries = entries_of[catalog]
    query = entries.query(ITEM_ID)
    keys = [query.gate_key, query.entry_key]
    cache = caches[entries.config.cache]
    assert len(cache.get_many(keys)) == len(keys)
    return lambda: cache.get_many(keys)


def floor_of(name: str) -> str:
    """The name of the floor of a row."""
    return f"{name}: floor"


def _pair(name: str, timings: dict[str, Timing]) -> list[Row]:
    base = floor_of(name)
    return [Row(base, 1.0, GET_MANY, timings[base].median), _row(name, timings, base)]


def _row(name: str, timings: dict[str, Timing], base: str) -> Row:
    return Row(name, timings[name].ratio_to(timings[base]), GET_MANY, timings[name].median)


def _counts(around: Surroundings) -> list[Row]:
    rows = []
    for name in _COUNTED:
        counts = counting.commands(around.redis, hit_of(_HITS[name]))
        rows.append(Row(f"{name}: commands", sum(counts.values()), note=counting.as_note(counts)))
    hit = hit_of("django-redis")
    with counting.queries() as counted:
        hit()
    return [*rows, Row(_QUERIES, counted.count)]
