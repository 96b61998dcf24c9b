"""What is kept of an answer, for how long, and what removes it?"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from catalog_fallback import refresh_ahead, services
from catalog_fallback.cache import entries_of
from catalog_fallback.fallback import Search
from catalog_fallback.headers import Directives
from catalog_fallback.keeping import entry_of
from catalog_fallback.results import Lookup, State
from catalog_fallback.testing import FrozenClock
from tests import loopback as wire
from tests import stores
from tests.conf.making import raw_catalog, read
from tests.loopback import Script
from tests.sites import ALSO_FOUND, FOUND, ITEM, NOT_FOUND, STOP, TEMPORARY, MovableClock, Site, found, words


def seconds_kept(lookup: Lookup) -> float | None:
    """How long the answer counts as fresh, from when it was fetched; None when it is not kept."""
    if lookup.expires_at is None or lookup.fetched_at is None:
        return None
    return round((lookup.expires_at - lookup.fetched_at).total_seconds(), 3)


# --- only definite answers, for their time ------------------------------------------------------------------------


def test_a_hit_keeps_the_original_provenance(site: Site, moving: MovableClock) -> None:
    """Who answered and when does not change by asking again."""
    site.say(NOT_FOUND, ALSO_FOUND)
    first = site.find()
    moving.move(30)
    second = site.find()
    assert (second.cache, second.trace) == ("hit", ())
    assert (second.source, second.fetched_at, second.expires_at) == ("secondary", first.fetched_at, first.expires_at)
    assert second.item == first.item


@pytest.mark.parametrize("timeout", [1, 0, None], ids=str)
def test_django_ratelimit_85_the_aliass_own_timeout_does_not_count(
    site: Site, frozen_clock: FrozenClock, timeout: int | None
) -> None:
    """Whatever TIMEOUT in CACHES says, every key, those of the guards too, has the life that we give it."""
    lives = []
    for params in ({"TIMEOUT": 300}, {"TIMEOUT": timeout}):
        location = uuid.uuid4().hex
        site.cache_in("tests.stores.MemoryCache", LOCATION=location, **params)
        site.configure({"RATE_LIMIT": {"CALLS": 9, "PER": 60}}, NEGATIVE_TTL=60)
        for script in (FOUND, NOT_FOUND, TEMPORARY):
            site.say(script)
            site.find(refresh=True)
        services.invalidate_item("P001")
        lives.append([life for _key, life in stores.shelf(location).lives])
    assert lives[0] == lives[1]
    assert None not in lives[1]


@pytest.mark.parametrize("ttl", [1, 60, 2.5, timedelta(minutes=2)], ids=str)
def test_found_is_kept_for_ttl(site: Site, moving: MovableClock, ttl: Any) -> None:
    """Fresh until the last moment, not a moment longer."""
    site.configure(TTL=ttl)
    site.say(FOUND)
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    assert seconds_kept(site.find()) == seconds
    moving.move(seconds - 0.5)
    assert site.find().cache == "hit"
    moving.move(0.5)
    lookup = site.find()
    assert (lookup.cache, words(lookup), site.calls[0]) == ("miss", ("found", "ok"), 2)


@pytest.mark.parametrize("keys", [{"TTL": 0}, {"TTL": timedelta(0)}, {"TTL": 0, "STALE_IF_ERROR": 60}], ids=str)
def test_h10_ttl_0_keeps_nothing(site: Site, keys: dict[str, Any]) -> None:
    """0 is 0, not "the default": neither fresh nor stale."""
    site.configure(**keys)
    site.say(FOUND)
    assert [site.find().cache for _ in range(3)] == ["miss"] * 3
    assert site.calls == (3, 0)
    site.say(TEMPORARY)
    assert site.find().is_unavailable


@pytest.mark.parametrize(("negative_ttl", "calls"), [(0, 2), (5, 1)])
def test_not_found_is_kept_for_negative_ttl(site: Site, moving: MovableClock, negative_ttl: float, calls: int) -> None:
    """0 keeps nothing; more hides a new item for that long, and no longer (fabric-dw-mcp-cli 239)."""
    site.configure(NEGATIVE_TTL=negative_ttl)
    site.say(NOT_FOUND)
    for _ in range(2):
        assert words(site.find()) == ("not_found", "all_not_found")
    assert site.calls == (calls, calls)
    site.say(FOUND)
    moving.move(negative_ttl)
    assert site.find().is_found


@pytest.mark.parametrize(
    ("primary", "secondary"),
    [(TEMPORARY, NOT_FOUND), (NOT_FOUND, TEMPORARY), (STOP, NOT_FOUND), (wire.bad_gzip, NOT_FOUND)],
    ids=["temporary first", "temporary last", "stop", "broken"],
)
def test_a_failure_is_never_kept(site: Site, primary: Script, secondary: Script) -> None:
    """The next lookup asks again and gets the answer."""
    site.configure(NEGATIVE_TTL=60)
    site.say(primary, secondary)
    assert site.find().is_unavailable
    site.say(FOUND)
    assert site.find().is_found


def test_a_new_answer_replaces_the_old(site: Site) -> None:
    """``refresh`` skips the entry and writes a new one."""
    site.say(FOUND)
    site.find()
    site.say(ALSO_FOUND)
    assert site.find().item == ITEM
    assert site.find(refresh=True).item == {"id": "P001", "name": "Coffee"}
    lookup = site.find()
    assert (lookup.cache, lookup.item) == ("hit", {"id": "P001", "name": "Coffee"})


REMOVERS: dict[str, tuple[Script, Script]] = {
    "no such item": (NOT_FOUND, NOT_FOUND),
    "may not be stored": (found({"Cache-Control": "no-store"}), NOT_FOUND),
    "may be stored for no time": (found({"Cache-Control": "max-age=0"}), NOT_FOUND),
}


@pytest.mark.parametrize("case", REMOVERS)
def test_c12_what_is_not_kept_removes_the_older_entry(site: Site, case: str) -> None:
    """A unanimous not_found and an item that may not be stored: the older entry is no longer true."""
    site.configure(STALE_IF_ERROR=600)
    site.say(FOUND)
    site.find()
    site.say(*REMOVERS[case])
    assert site.find(refresh=True).cache == "miss"
    site.say(TEMPORARY, TEMPORARY)
    lookup = site.find()
    assert (words(lookup), lookup.item) == (("unavailable", "incomplete_search"), None)


@pytest.mark.parametrize("script", [TEMPORARY, STOP, wire.bad_gzip], ids=["temporary", "stop", "broken"])
def test_g5_a_failed_refresh_leaves_the_entry(site: Site, script: Script) -> None:
    """Not having found out is no reason to forget: the next ordinary lookup is a hit."""
    site.say(FOUND)
    site.find()
    site.say(script, script)
    assert site.find(refresh=True).is_unavailable
    assert site.find().cache == "hit"


def test_c13_a_not_found_entry_has_nothing_of_the_item(site: Site) -> None:
    """A negative entry is its own kind of record: neither item nor source shine through."""
    site.configure(NEGATIVE_TTL=60)
    site.say(FOUND)
    site.find()
    site.say(NOT_FOUND)
    site.find(refresh=True)
    lookup = site.find()
    assert (lookup.cache, words(lookup)) == ("hit", ("not_found", "all_not_found"))
    assert (lookup.item, lookup.source) == (None, None)


# --- what the upstream says about keeping -------------------------------------------------------------------------

#: Headers of the reply → seconds for which it is kept under TTL=60, None for not at all.
CACHE_CONTROL: dict[str, tuple[dict[str, str], float | None]] = {
    "nothing": ({}, 60),
    "public": ({"Cache-Control": "public"}, 60),
    "no-store": ({"Cache-Control": "no-store"}, None),
    "NO-STORE": ({"Cache-Control": "NO-STORE"}, None),
    "private": ({"Cache-Control": "private"}, None),
    "private for one header": ({"Cache-Control": 'private="set-cookie"'}, None),
    "no-cache": ({"Cache-Control": "no-cache"}, None),
    "max-age shortens": ({"Cache-Control": "max-age=10"}, 10),
    "max-age never lengthens": ({"Cache-Control": "max-age=3600"}, 60),
    "max-age is 0": ({"Cache-Control": "max-age=0"}, None),
    "max-age is garbage": ({"Cache-Control": "max-age=soon"}, None),
    "max-age twice": ({"Cache-Control": "max-age=50, max-age=10"}, 10),
    "max-age in quotes": ({"Cache-Control": 'max-age="10"'}, 10),
    "s-maxage wins": ({"Cache-Control": "max-age=5, s-maxage=20"}, 20),
    "age is taken off": ({"Cache-Control": "max-age=30", "Age": "10"}, 20),
    "age is all of it": ({"Cache-Control": "max-age=30", "Age": "30"}, None),
    "age alone says nothing": ({"Age": "10"}, 60),
    "must-revalidate": ({"Cache-Control": "must-revalidate"}, 60),
    "no-store among others": ({"Cache-Control": "max-age=30, no-store"}, None),
    "unknown": ({"Cache-Control": "immutable, x=y"}, 60),
    "expires is not looked at": ({"Expires": "Thu, 01 Jan 1970 00:00:00 GMT"}, 60),
}


@pytest.mark.parametrize("case", CACHE_CONTROL)
def test_directives_of_the_upstream(site: Site, case: str) -> None:
    """They may shorten the life of an entry, or forbid it."""
    headers, expected = CACHE_CONTROL[case]
    site.say(found(headers))
    assert seconds_kept(site.find()) == expected
    assert site.find().cache == ("miss" if expected is None else "hit")


@pytest.mark.parametrize("level", ["source", "catalog"])
@pytest.mark.parametrize("value", ["no-store", "private", "no-cache", "max-age=0", "max-age=5"])
def test_respect_cache_control_can_be_switched_off(site: Site, level: str, value: str) -> None:
    """For one source, or for all of a catalog."""
    off = {"RESPECT_CACHE_CONTROL": False}
    if level == "source":
        site.configure(primary=off)
    else:
        site.configure(**off)
    site.say(found({"Cache-Control": value}))
    assert seconds_kept(site.find()) == 60
    assert site.find().cache == "hit"


def test_a_source_may_respect_what_its_catalog_does_not(site: Site) -> None:
    """The nearer setting wins."""
    site.configure(primary={"RESPECT_CACHE_CONTROL": True}, RESPECT_CACHE_CONTROL=False)
    site.say(found({"Cache-Control": "no-store"}))
    assert seconds_kept(site.find()) is None


NEGATIVE: dict[str, tuple[dict[str, str], dict[str, str], float | None]] = {
    "nobody says anything": ({}, {}, 40),
    "the first forbids": ({"Cache-Control": "no-store"}, {}, None),
    "the last forbids": ({}, {"Cache-Control": "private"}, None),
    "the shortest counts": ({"Cache-Control": "max-age=30"}, {"Cache-Control": "max-age=5"}, 5),
    "never longer": ({"Cache-Control": "max-age=3000"}, {}, 40),
}


@pytest.mark.parametrize("case", NEGATIVE)
def test_a_not_found_is_kept_as_the_strictest_source_says(site: Site, case: str) -> None:
    """It is the answer of all of them."""
    first, second, expected = NEGATIVE[case]
    site.configure(NEGATIVE_TTL=40)
    site.say(wire.ok({"item": None}, first), wire.ok({"item": None}, second))
    assert seconds_kept(site.find()) == expected
    assert site.find().cache == ("miss" if expected is None else "hit")


def test_only_the_answering_source_says_how_long_an_item_is_kept(site: Site) -> None:
    """What others said about their "no such item" is not about this item."""
    site.say(wire.ok({"item": None}, {"Cache-Control": "no-store"}), ALSO_FOUND)
    assert seconds_kept(site.find()) == 60


# --- jitter -------------------------------------------------------------------------------------------------------


def test_jitter_only_ever_shortens(site: Site) -> None:
    """TTL_JITTER=0.25 means between three quarters of TTL and all of it."""
    site.configure(TTL=100, TTL_JITTER=0.25)
    site.say(FOUND)
    lives = [seconds_kept(site.find(refresh=True)) or 0 for _ in range(40)]
    assert all(75 <= life <= 100 for life in lives)
    assert len(set(lives)) > 1


@pytest.mark.parametrize(("chance", "life"), [(0.0, 100.0), (0.5, 87.5), (1.0, 75.0)])
def test_c3_jitter_is_for_items_only(chance: float, life: float) -> None:
    """Negative entries live as long as the site says."""
    config = read(raw_catalog(TTL=100, TTL_JITTER=0.25, NEGATIVE_TTL=100, STALE_IF_ERROR=10))
    item = entry_of(Search(State.FOUND, "ok", item=ITEM, fetched_at=1000.0), config, chance=lambda: chance)
    assert item is not None
    assert (item.expires_at, item.stale_until) == (1000 + life, 1010 + life)
    none = entry_of(Search(State.NOT_FOUND, "all_not_found", fetched_at=1000.0), config, chance=lambda: chance)
    assert none is not None
    assert (none.expires_at, none.stale_until) == (1100.0, 1100.0)


def test_jitter_is_a_part_of_the_shortened_life() -> None:
    """The upstream's max-age first, then the jitter."""
    config = read(raw_catalog(TTL=100, TTL_JITTER=0.5))
    search = Search(State.FOUND, "ok", item=ITEM, fetched_at=0.0, directives=Directives(ttl=10.0))
    entry = entry_of(search, config, chance=lambda: 1.0)
    assert entry is not None
    assert entry.expires_at == 5.0


# --- refreshed ahead ----------------------------------------------------------------------------------------------


def find_async(item_id: str) -> Lookup:
    """The same under asyncio."""
    return asyncio.run(services.afind_item(item_id))


@pytest.mark.parametrize("find", [services.find_item, find_async], ids=["sync", "async"])
def test_every_old_hit_is_noticed(
    site: Site, moving: MovableClock, monkeypatch: pytest.MonkeyPatch, find: Callable[[str], Lookup]
) -> None:
    """A hit older than REFRESH_AHEAD of its life is handed to the background, whichever way it was read."""
    submitted: list[str] = []
    monkeypatch.setattr(refresh_ahead.refresher, "submit", lambda query: submitted.append(query.item_id))
    site.configure(TTL=100, REFRESH_AHEAD=0.5)
    site.say(FOUND)
    find("P001")
    moving.move(49)
    assert find("P001").cache == "hit"
    assert submitted == []
    moving.move(2)
    assert find("P001").cache == "hit"
    assert submitted == ["P001"]


# --- nothing strange is believed -----------------------------------------------------------------------------------

STRANGE: dict[str, Any] = {
    "text": "garbage",
    "number": 7,
    "mapping": {"state": "found"},
    "too short": [1, 2, 3],
    "nested": [[["x"] * 9] * 9] * 9,
}


@pytest.mark.parametrize("case", STRANGE)
def test_h37_a_poisoned_entry_is_a_miss_and_overwritten(site: Site, case: str) -> None:
    """Whatever stands under the key: the lookup works and writes its own."""
    site.say(FOUND)
    site.find()
    entries = entries_of["default"]
    entries.store.backend.set(entries.query("P001").entry_key, STRANGE[case])
    assert [site.find().cache for _ in range(2)] == ["miss", "hit"]


#: Place in the stored entry → what somebody wrote there.
TAMPERED: dict[str, tuple[int, Any]] = {
    "another question": (0, "catalog:1:1:e:{default:P002}"),
    "another token": (1, "o" + "0" * 32),
    "unknown state": (2, "unavailable"),
    "state of another type": (2, 7),
    "no fetch time": (3, None),
    "fetched in the future": (3, 9e12),
    "expiry is text": (4, "tomorrow"),
    "no limit of staleness": (5, None),
    "source is a number": (6, 7),
    "found without an item": (7, None),
    "item is a list": (7, [ITEM]),
    "neither checked nor unchecked": (8, 1),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_i7_an_entry_that_names_something_else_is_a_miss(site: Site, case: str) -> None:
    """A reader believes only what is whole, and what names the very question."""
    at, value = TAMPERED[case]
    site.say(FOUND)
    site.find()
    entries = entries_of["default"]
    key = entries.query("P001").entry_key
    entry = list(entries.store.backend.get(key))
    entry[at] = value
    entries.store.backend.set(key, entry)
    assert [site.find().cache for _ in range(2)] == ["miss", "hit"]


@pytest.mark.parametrize("gate", ["", "x" * 32, "o" * 34, 7, None, ["o" * 33]], ids=str)
def test_a_poisoned_gate_is_replaced(site: Site, gate: Any) -> None:
    """What stands where the gate should be is not believed, and does not keep the item out of the cache for ever."""
    site.say(FOUND)
    entries = entries_of["default"]
    entries.store.backend.set(entries.query("P001").gate_key, gate)
    assert [site.find().cache for _ in range(2)] == ["miss", "hit"]
