"""Is a look that finds nothing new the last one over again, and is everything new followed?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from catalog_fallback.resilience.store import ProcessStore, Store
from catalog_fallback.resilience.stores import Stores


class Follower:
    """Reads a number under "first" and follows it to a key of its own; notes what it was told to remember."""

    def __init__(self) -> None:
        self.remembered: list[Mapping[str, Any]] = []
        self.wanted: tuple[str, ...] = ("first",)

    def patterns(self, store: Store) -> Follower:
        return self

    def keys(self) -> tuple[str, ...]:
        return self.wanted

    def more_keys(self, found: Mapping[str, Any]) -> tuple[str, ...]:
        return ("first", f"after {found['first']}") if "first" in found else ("first",)

    def remember(self, found: Mapping[str, Any]) -> None:
        self.remembered.append(found)


@pytest.fixture
def follower() -> Follower:
    return Follower()


@pytest.fixture
def stores() -> Stores:
    return Stores(ProcessStore())


def test_what_has_not_changed_is_not_looked_through_again(stores: Stores, follower: Follower) -> None:
    """It is the same mapping, read later."""
    looks = [stores.read((follower,)) for _ in range(3)]
    assert looks[0].found is looks[1].found is looks[2].found
    assert looks[0].read_at <= looks[1].read_at <= looks[2].read_at
    assert len(follower.remembered) == 1


def test_what_has_changed_is_followed(stores: Stores, follower: Follower) -> None:
    """And what it leads to is asked for each time, as long as it is not among the first keys: it may come later."""
    stores.read((follower,))
    stores.shared.set("first", 1, 60)
    assert stores.read((follower,)).found == {"first": 1}
    assert stores.read((follower,)).found == {"first": 1}
    stores.shared.set("after 1", "here", 60)
    assert stores.read((follower,)).found == {"first": 1, "after 1": "here"}
    assert len(follower.remembered) == 4
    follower.wanted = ("first", "after 1")
    assert [stores.read((follower,)).found for _ in range(2)] == [{"first": 1, "after 1": "here"}] * 2
    stores.shared.set("first", 2, 60)
    assert stores.read((follower,)).found == {"first": 2, "after 1": "here"}
    stores.shared.delete("first")
    stores.shared.delete("after 1")
    assert stores.read((follower,)).found == {}


def test_other_keys_and_another_store_are_another_look(stores: Stores, follower: Follower) -> None:
    """Though both hold the same."""
    stores.read((follower,))
    stores.read((follower,), ("more",))
    assert len(follower.remembered) == 2
    for _ in range(3):
        stores.heard(has_answered=False)
    view = stores.read((follower,), ("more",))
    assert view.store is stores.local
    assert len(follower.remembered) == 3
