"""Which fixtures do the tests of the guards have?"""

from __future__ import annotations

import pytest

from tests.resilience.worlds import FaultyStore, MovableClock


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> MovableClock:
    """A clock that stands still until it is moved."""
    return MovableClock().install(monkeypatch)


@pytest.fixture
def store(moving: MovableClock) -> FaultyStore:
    """A store that all simulated processes share."""
    return FaultyStore()
