"""What do many items cost that are all in the cache, beside the one read that brings them?"""

from __future__ import annotations

from benchmarks import counting
from benchmarks.measuring import Case, interleave
from benchmarks.report import Row
from benchmarks.surroundings import Surroundings

ITEMS = 100
ITEM_IDS = [f"W{number:05d}" for number in range(ITEMS)]
#: Base of the ratios.
GET_MANY = f"get_many of {2 * ITEMS} keys"
#: Row → the catalog that is asked (named after its cache).
_BATCHES = {
    f"{ITEMS} warm items, django-redis": "django-redis",
    f"{ITEMS} warm items, Django's RedisCache": "django",
    f"{ITEMS} warm items, LocMem": "locmem",
}
_SINGLE = f"{ITEMS} lookups of one item each, django-redis"
_COMMANDS = f"{ITEMS} warm items, django-redis: commands"


def row_names() -> list[str]:
    """The names of the rows."""
    return [*(each for name in _BATCHES for each in (_floor(name), name)), _SINGLE, _COMMANDS]


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Measure one batch of hits against one read of the same keys, and against as many single hits."""
    cases: dict[str, Case] = {}
    for name, catalog in _BATCHES.items():
        cases[name] = _batch(catalog)
        cases[_floor(name)] = _read(catalog)
    cases[_SINGLE] = _singles("django-redis")
    timings = interleave(cases, rounds)
    rows = []
    for name in _BATCHES:
        floor = timings[_floor(name)]
        rows.append(Row(_floor(name), 1.0, GET_MANY, floor.median))
        rows.append(Row(name, timings[name].ratio_to(floor), GET_MANY, timings[name].median))
    django_redis = timings[_floor(next(iter(_BATCHES)))]
    rows.append(Row(_SINGLE, timings[_SINGLE].ratio_to(django_redis), GET_MANY, timings[_SINGLE].median))
    counts = counting.commands(around.redis, _batch("django-redis"))
    return [*rows, Row(_COMMANDS, sum(counts.values()), note=counting.as_note(counts))]


def _floor(name: str) -> str:
    return f"{name}: floor"


def _batch(catalog: str) -> Case:
    from catalog_fallback.services import find_items  # noqa: PLC0415  # needs settings

    find_items(ITEM_IDS, catalog=catalog, budget=60)
    found = find_items(ITEM_IDS, catalog=catalog)
    assert {str(lookup.cache) for lookup in found.values()} == {"hit"}, found
    return lambda: find_items(ITEM_IDS, catalog=catalog)


def _singles(catalog: str) -> Case:
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    return lambda: [find_item(item_id, catalog=catalog) for item_id in ITEM_IDS]


def _read(catalog: str) -> Case:
    """``get_many`` of the gates and entries that this batch reads, through Django's cache."""
    from django.core.cache import caches  # noqa: PLC0415  # needs settings

    from catalog_fallback.cache import entries_of  # noqa: PLC0415

    entries = entries_of[catalog]
    queries = [entries.query(item_id) for item_id in ITEM_IDS]
    keys = [key for query in queries for key in (query.gate_key, query.entry_key)]
    cache = caches[entries.config.cache]
    assert len(cache.get_many(keys)) == len(keys)
    return lambda: cache.get_many(keys)
