"""What if fifty visitors want the same item at once, and nobody has it in the cache? They all ask; who is called?"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connections

from catalog_fallback.results import Lookup
from catalog_fallback.services import find_item, invalidate_item
from portal import switchboard

CALLERS = 50
#: Seconds in which the threads have to be there.
PATIENCE = 20.0
#: One hammer at a time: another one's calls would be counted with these.
_turn = threading.Lock()


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it. ``calls`` are those that each catalog counted itself, None where they do not run.

    ``seconds`` is from the common start to the last answer; ``states`` says how many callers got which answer.
    """

    item_id: str
    catalog: str
    callers: int
    seconds: float
    states: Mapping[str, int]
    calls: Mapping[str, int] | None

    @property
    def total(self) -> int | None:
        """Calls of all catalogs together."""
        return None if self.calls is None else sum(self.calls.values())

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON-ready values."""
        return {**asdict(self), "total": self.total}


def hammer(item_id: str, catalog: str, callers: int = CALLERS) -> Report:
    """Forget the item, then look it up from so many threads at once; say who was called how often.

    Raises InvalidItemID, UnknownCatalog and InvalidationFailed as the package's verbs do.
    """
    with _turn:
        invalidate_item(item_id, catalog=catalog, reason="demo")
        before = switchboard.calls()
        lookups, seconds = _at_once(item_id, catalog, callers)
        after = switchboard.calls()
    states = Counter(str(lookup.state) for lookup in lookups)
    return Report(item_id, catalog, callers, seconds, dict(states), _difference(before, after))


def _at_once(item_id: str, catalog: str, callers: int) -> tuple[list[Lookup], float]:
    started_at = 0.0

    def start() -> None:
        nonlocal started_at
        started_at = time.monotonic()

    line = threading.Barrier(callers, action=start, timeout=PATIENCE)

    def ask(_number: int) -> Lookup:
        line.wait()
        try:
            return find_item(item_id, catalog=catalog)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(callers, thread_name_prefix="hammer") as pool:
        lookups = list(pool.map(ask, range(callers)))
    return lookups, time.monotonic() - started_at


def _difference(before: Mapping[str, int] | None, after: Mapping[str, int] | None) -> dict[str, int] | None:
    if before is None or after is None:
        return None
    return {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}
