"""Is it counted how many lookups the cache answered: by all processes, without a price on the hit?"""

from __future__ import annotations

import asyncio
import uuid

import pytest

from catalog_fallback.cache import entries_of
from catalog_fallback.fallback import chain_of
from catalog_fallback.hit_counts import Answered, HitCounts
from catalog_fallback.results import CacheStatus, Lookup, State
from catalog_fallback.services import afind_item, find_item, find_items
from catalog_fallback.statistics import WINDOW
from catalog_fallback.status import status_of
from catalog_fallback.testing import FrozenClock
from tests.crew import DJANGO_REDIS
from tests.guard_scenes import over_memory, spent
from tests.sites import FOUND, NOT_FOUND, Site

HIT = Lookup("P001", "default", State.FOUND, "ok", {"id": "P001", "name": "Tea"}, cache=CacheStatus.HIT)
MISS = Lookup("P001", "default", State.FOUND, "ok", {"id": "P001", "name": "Tea"})


def counted() -> Answered:
    """What is known of the catalog's lookups."""
    return status_of("default").answered


def note(*lookups: Lookup) -> HitCounts:
    """Lookups of another process than this one: its counts so far are its own."""
    entries = type(entries_of["default"])(entries_of["default"].config)
    counts = HitCounts(entries, chain_of["default"].stores.shared)
    for lookup in lookups:
        entries.note(lookup)
    return counts


@pytest.mark.parametrize("stop_check", ["cache", "database"])
def test_every_way_of_looking_up_is_counted(site: Site, stop_check: str) -> None:
    """One by one, several at once, in asyncio; kept answers that the database has to confirm are hits, too."""
    site.configure(STOP_CHECK=stop_check)
    site.say(FOUND)
    find_item("P001")
    find_item("P001")
    find_items(["P001", "P002"])
    asyncio.run(afind_item("P001"))
    assert counted() == Answered(hits=3, lookups=5)
    assert counted().ratio == 0.6


def test_a_refresh_is_no_hit(site: Site) -> None:
    """It asks the sources; neither is an unavailable answer one."""
    site.say(FOUND)
    find_item("P001")
    find_item("P001", refresh=True)
    assert counted() == Answered(0, 2)


def test_a_hit_writes_nothing(site: Site, frozen_clock: FrozenClock) -> None:
    """However many there are; the next miss writes what has come together, in one or two commands."""
    shelf = over_memory(site)
    site.configure(TTL=3600)
    site.say(FOUND, NOT_FOUND)
    find_item("P001")
    with spent(shelf) as cost:
        for _ in range(20):
            frozen_clock.advance(1)
            find_item("P001")
    assert set(cost.operations) == {"get_many"}
    before = len(shelf.log)
    find_item("P002")
    assert [name for name, keys in shelf.log[before:] if any(":hits:" in key for key in keys)] == ["incr", "add"]
    assert counted() == Answered(20, 22)


def test_processes_add_up(site: Site, redis_url: str, frozen_clock: FrozenClock) -> None:
    """What each has written, and what this one has not yet."""
    site.cache_in(DJANGO_REDIS, LOCATION=redis_url, KEY_PREFIX=uuid.uuid4().hex)
    site.configure()
    one, other = note(HIT, HIT, MISS), note(HIT)
    frozen_clock.advance(6)
    one.write_if_due()
    other.write_if_due()
    entries_of["default"].note(MISS)
    assert counted() == Answered(3, 5)
    one.write_if_due()
    assert counted() == Answered(3, 5)


def test_old_lookups_are_forgotten(site: Site, frozen_clock: FrozenClock) -> None:
    """After the window."""
    counts = note(HIT, MISS)
    frozen_clock.advance(6)
    counts.write_if_due()
    assert counted() == Answered(1, 2)
    frozen_clock.advance(WINDOW + 31)
    assert counted() == Answered(0, 0)
    assert counted().ratio is None


def test_what_came_together_for_long_counts_for_one_window(site: Site, frozen_clock: FrozenClock) -> None:
    """A process without a miss for an hour does not pour the hits of that hour into five minutes."""
    counts = note(*[HIT] * 1200)
    frozen_clock.advance(4 * WINDOW)
    counts.write_if_due()
    assert counted() == Answered(300, 300)


def test_one_catalog_s_counts_are_not_another_s(site: Site, settings: object) -> None:
    """Each has its own key; a source of any name has another."""
    site.say(FOUND)
    keys = chain_of["default"].hit_counts.keys()
    assert not set(keys) & {key for caller in chain_of["default"].callers for key in caller.statistics.keys()}  # noqa: SIM118
    assert all("{default}" in key for key in keys)
