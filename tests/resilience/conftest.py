"""Which fixtures do the tests of the guards have?"""

from __future__ import annotations

import pytest

from catalog_fallback.resilience.stores import Stores
from tests.resilience.breakers import Process
from tests.resilience.worlds import FaultyStore, MovableClock


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> MovableClock:
    """A clock that stands still until it is moved."""
    return MovableClock().install(monkeypatch)


@pytest.fixture
def store(moving: MovableClock) -> FaultyStore:
    """A store that all simulated processes share."""
    return FaultyStore()


@pytest.fixture
def half_open(store: FaultyStore, moving: MovableClock) -> Process:
    """A process whose breaker will let probes through."""
    process = Process(store, half_open_calls=2, successes_to_close=2)
    process.calls("FFF")
    moving.move(30)
    process.told.clear()
    return process


@pytest.fixture
def stores(store: FaultyStore) -> Stores:
    """A shared store, and the one in the process."""
    return Stores(store)
