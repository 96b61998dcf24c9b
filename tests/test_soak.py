"""Does a process stay as it is, however many different IDs it is asked for?

``SOAK_IDS=500000`` (some minutes) asks for a million; ``python -m benchmarks soak --large`` does so with real caches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from catalog_fallback.off_loop import Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

IDS = int(os.environ.get("SOAK_IDS", "5000"))
#: Blocks of memory by which a process may differ after twice as many IDs, however many that is: they swing by some
#: hundreds (629 between 100,000 and a million IDs), while one object kept of each ID would be five thousand.
GROWTH = 1_000


@pytest.fixture(scope="module")
def soaked() -> Any:
    """What a process of its own is made of after twice IDS."""
    command = [sys.executable, "-m", "tests.soaking", str(IDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_e12_memory_does_not_grow_with_distinct_ids(soaked: Any) -> None:
    """No table of locks, flights, leases, breakers or names keeps anything of an ID (resilience4j 1809, 2243)."""
    first, second = soaked["blocks"]
    assert second - first < GROWTH
    assert (soaked["flights"], soaked["refreshes"]) == (0, 0)


def test_e12_threads_are_those_of_the_pools(soaked: Any) -> None:
    """None beside the main one and those that serve event loops, and of these not more than their pools allow."""
    threads = dict(soaked["threads"])
    assert threads.pop("MainThread") == 1
    assert threads.keys() <= {f"catalog-fallback-{pool.name.lower()}" for pool in Pool}
    for pool in Pool:
        assert threads.get(f"catalog-fallback-{pool.name.lower()}", 0) <= pool.value
