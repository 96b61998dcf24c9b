"""Who visits the site of the simulation? Processes that ask for items at random moments, as Zipf says.

The catalogs are sources without HTTP: what is of interest is how often they are called, not what a call costs. Whether
the primary fails is said to all processes at once.
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.catalog_server import FIELDS
from benchmarks.herd import use_all_processors
from catalog_fallback.results import NoReply, Reply
from catalog_fallback.sources.json_item import JSONItemSource

CATALOG = "simulation"


def place_of(number: int) -> int:
    """Return which hundredth of the items one is in, whatever its rank."""
    return number * 61 % 100


class Counted(JSONItemSource):
    """Counts its calls. It has the hundredths ``has`` of the items; with ``down`` every call is answered 503."""

    needs_url: ClassVar[bool] = False
    #: Alias → calls in this process; whether the primary is down, for all processes; when it answered first.
    calls: ClassVar[Counter[str]] = Counter()
    is_down: ClassVar[Any] = None
    answered_at: ClassVar[float] = 0.0

    def __init__(self, config: Any, *, has: tuple[int, int], down: bool = False) -> None:
        """Take the configuration, which items there are, and whether it ever answers."""
        super().__init__(config)
        self._has = range(*has)
        self._down = down

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """Answer at once; a primary that is down answers 503."""
        Counted.calls[self.alias] += 1
        if self.alias == "primary":
            if self._down or (Counted.is_down is not None and Counted.is_down.value):
                return Reply(503)
            Counted.answered_at = Counted.answered_at or time.time()
        item = {"id": item_id, **FIELDS} if place_of(int(item_id[1:])) in self._has else None
        return Reply(200, {}, json.dumps({"item": item}).encode())


@dataclass(frozen=True, slots=True)
class Order:
    """Ask from one moment to another (seconds since the epoch), so many times a second."""

    begin_at: float
    end_at: float
    rate: float
    seed: int


@dataclass(frozen=True, slots=True)
class Report:
    """What one process saw: lookups, hits, reasons, calls by source, and when the primary answered first."""

    lookups: int
    hits: int
    reasons: Mapping[str, int]
    calls: Mapping[str, int]
    answered_at: float


def shares(items: int, exponent: float) -> list[float]:
    """Return the cumulated shares of the items, in the order of their ranks."""
    return list(itertools.accumulate(rank**-exponent for rank in range(1, items + 1)))


def serve(pipe: Connection, redis: str, url: str, directory: str, is_down: Any, items: int, exponent: float) -> None:
    """Set Django up, then carry out one order after the other."""
    use_all_processors()
    from benchmarks import site  # noqa: PLC0415  # the process has no settings yet

    site.set_up(redis, url, Path(directory))
    Counted.is_down = is_down
    cumulated = shares(items, exponent)
    pipe.send(None)
    while True:
        pipe.send(_visit(pipe.recv(), cumulated))


def _visit(order: Order, cumulated: list[float]) -> Report:
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    chance = random.Random(order.seed)  # noqa: S311  # visitors, no secrets
    Counted.calls.clear()
    Counted.answered_at = 0.0
    hits, reasons, moment = 0, Counter[str](), order.begin_at
    ranks = range(1, len(cumulated) + 1)
    while (moment := moment + chance.expovariate(order.rate)) < order.end_at:
        time.sleep(max(0.0, moment - time.time()))
        rank = chance.choices(ranks, cum_weights=cumulated)[0]
        lookup = find_item(f"Z{rank:08d}", catalog=CATALOG)
        hits += lookup.cache == "hit"
        reasons[lookup.reason] += 1
    return Report(reasons.total(), hits, dict(reasons), dict(Counted.calls), Counted.answered_at)
