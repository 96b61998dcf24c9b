"""Do all stores behave alike, and does the one in the process stay small?"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from catalog_fallback.resilience.store import ProcessStore, Store, count, number
from tests.resilience.redis_store import RedisStore
from tests.resilience.worlds import FaultyStore, MovableClock


@pytest.fixture(params=["process", "redis", "faulty"])
def any_store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Each store that tests or the guards use."""
    match request.param:
        case "process":
            yield ProcessStore()
        case "faulty":
            yield FaultyStore()
        case _:
            yield RedisStore(request.getfixturevalue("redis_url"))


@pytest.fixture
def key() -> str:
    """A key that nobody else uses."""
    return uuid.uuid4().hex


def test_add_writes_once(any_store: Store, key: str) -> None:
    """The first add wins, and its value stays."""
    assert any_store.add(key, {"g": "a"}, 60) is True
    assert any_store.add(key, {"g": "b"}, 60) is False
    assert any_store.get_many((key, key + "x")) == {key: {"g": "a"}}


def test_set_replaces_and_delete_removes(any_store: Store, key: str) -> None:
    """A set replaces, a delete leaves nothing, and a second delete is no error."""
    any_store.set(key, 1, 60)
    any_store.set(key, [2, "b"], 60)
    assert any_store.get_many((key,)) == {key: [2, "b"]}
    any_store.delete(key)
    any_store.delete(key)
    assert any_store.get_many((key,)) == {}


def test_incr_needs_a_number(any_store: Store, key: str) -> None:
    """A missing key cannot be added to; a number can, in both directions."""
    assert any_store.incr(key, 1, 60) is None
    any_store.add(key, 5, 60)
    assert any_store.incr(key, 2, 60) == 7
    assert any_store.incr(key, -1, 60) == 6


def test_count_makes_the_number(any_store: Store, key: str) -> None:
    """Counting starts a missing number."""
    assert [count(any_store, key, 3, 60), count(any_store, key, 1, 60)] == [3, 4]


def test_touching_a_missing_key_makes_nothing(any_store: Store, key: str) -> None:
    """A touch gives life only to what is there."""
    any_store.touch(key, 60)
    assert any_store.get_many((key,)) == {}
    assert any_store.is_paused is False


@pytest.mark.parametrize(("ttl", "life"), [(0.01, 1), (1.0, 1), (1.2, 2), (0, 1)])
def test_lives_are_whole_seconds(moving: MovableClock, ttl: float, life: float) -> None:
    """Lives are rounded up, as shared caches that know whole seconds only would have to."""
    store = ProcessStore()
    store.add("a", 1, ttl)
    moving.move(life - 0.001)
    assert store.get_many(("a",)) == {"a": 1}
    moving.move(0.002)
    assert store.get_many(("a",)) == {}
    assert store.add("a", 2, ttl) is True


def test_touch_and_incr_and_expiry(moving: MovableClock) -> None:
    """A touch lengthens a life, incr leaves it alone."""
    store = ProcessStore()
    store.add("a", 1, 10)
    store.add("b", 1, 10)
    moving.move(9)
    store.touch("a", 10)
    store.incr("b", 1, 10)
    moving.move(2)
    assert store.get_many(("a", "b")) == {"a": 1}


def test_incr_of_something_else_is_none() -> None:
    """What is no number cannot be counted with."""
    store = ProcessStore()
    store.set("a", "text", 60)
    assert store.incr("a", 1, 60) is None


def test_a_full_store_drops_what_expires_first(moving: MovableClock) -> None:
    """The number of keys is bounded; a tenth makes room at a time."""
    store = ProcessStore(max_entries=20)
    for place in range(20):
        store.set(f"k{place}", place, 100 - place)
    store.set("k19", "again", 100)
    assert len(store) == 20
    store.set("new", 1, 50)
    assert len(store) == 19
    assert store.get_many(("k18", "k17", "k19", "new")) == {"k19": "again", "new": 1}


def test_a_full_store_drops_everything_that_has_expired(moving: MovableClock) -> None:
    """What has expired goes first, all of it."""
    store = ProcessStore(max_entries=20)
    for place in range(20):
        store.set(f"k{place}", place, 10 if place < 15 else 100)
    moving.move(11)
    store.add("new", 1, 10)
    assert len(store) == 6


def test_a_store_of_one_key_still_takes_the_next() -> None:
    """Even the smallest bound leaves room for the key that is written."""
    store = ProcessStore(max_entries=1)
    store.set("a", 1, 60)
    store.set("b", 2, 60)
    assert store.get_many(("a", "b")) == {"b": 2}


@pytest.mark.parametrize(
    ("faults", "answer", "kept"),
    [
        pytest.param(["lost", "lost"], None, {}, id="nothing is taken"),
        pytest.param(["reply", "reply"], None, {"a": 1}, id="add is done, nobody hears"),
        pytest.param([], 1, {"a": 1}, id="all is well"),
    ],
)
def test_count_in_a_store_in_trouble(
    store: FaultyStore, faults: list[str], answer: int | None, kept: dict[str, int]
) -> None:
    """Counting answers None when the store cannot tell."""
    store.faults = [*faults]
    assert count(store, "a", 1, 60) == answer
    assert store.contents() == kept


def test_count_when_somebody_makes_the_number_meanwhile(store: FaultyStore) -> None:
    """Two who find no number make one between them, and both are counted."""
    store.interruptions = [None, lambda: store.inner.set("a", 1, 60)]
    assert count(store, "a", 1, 60) == 2


@pytest.mark.parametrize(("value", "read"), [(3, 3), (None, 0), ("3", 0), (True, 0), (2.5, 0), ([], 0)])
def test_number_reads_only_numbers(value: object, read: int) -> None:
    """Garbage under a counter's key is as good as nothing."""
    assert number(value) == read
