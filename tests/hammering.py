"""Which processes do the gate tests start? Ones that hammer on one item, and ones that kill themselves at a step.

Each is started afresh by ``spawn``, on the test's cache and database. Moments are those of ``time.monotonic``, which
all processes of a machine share.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

PATIENCE = 60
#: Where a process kills itself → module or class, method, and whether before or after it.
STEPS: dict[str, tuple[str, str, str]] = {
    "after putting up the gate": ("leases", "put_up_gate", "after"),
    "after winning the flight": ("flights", "take_lease", "after"),
    "after asking the stop list": ("stop_query", "is_stopped", "after"),
    "in the fetch": ("fallback.Chain", "search", "before"),
    "before the entry is written": ("item_store.ItemStore", "keep_under", "before"),
    "after the entry is written": ("item_store.ItemStore", "keep_under", "after"),
    "between commit and publish": ("publishing", "publish_changes", "before"),
    "between set and reading back": ("store.Store", "set_many_or_raise", "after"),
    "before the row is confirmed": ("publishing", "_confirm", "before"),
}
LOOKUP_STEPS, STOP_STEPS = list(STEPS)[:6], list(STEPS)[6:]


class Event(NamedTuple):
    """One operation of one process: what, on what, from when to when, how it ended, when its data was asked for."""

    verb: str
    item_id: str
    began: float
    ended: float
    outcome: str
    sent: float | None = None


class Site(NamedTuple):
    """Where a process works; ``ahead``: by how many seconds its wall clock is before the others'."""

    database: dict[str, Any]
    caches: dict[str, Any]
    catalogs: dict[str, Any]
    ahead: float = 0.0

    def enter(self) -> None:
        """Set Django up in a process that has nothing yet."""
        from tests import settings  # noqa: PLC0415  # the process has none yet

        settings.DATABASES["default"] = self.database
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
        from django.utils import timezone  # noqa: PLC0415

        from catalog_fallback import clock  # noqa: PLC0415

        clock.wall = lambda: time.time() + self.ahead
        timezone.now = lambda: datetime.fromtimestamp(clock.wall(), UTC)  # before a model takes it as a default
        import django  # noqa: PLC0415

        django.setup()
        from django.test import override_settings  # noqa: PLC0415

        override_settings(CACHES=self.caches, CATALOG_FALLBACK=self.catalogs).enable()


def run(function: Callable[..., None], *arguments: Any) -> multiprocessing.process.BaseProcess:
    """Start a process."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments, daemon=True)
    process.start()
    return process


# ------------------------------------------------------------------------------------------------ killing oneself


def die_at(site: Site, step: str, verb: str, item_id: str) -> None:
    """Do it, and be killed by the kernel at that step."""
    site.enter()
    from django.utils.module_loading import import_string  # noqa: PLC0415  # needs settings

    owner_path, name, when = STEPS[step]
    try:
        owner = import_string(f"catalog_fallback.{owner_path}")
    except ImportError:
        owner = __import__(f"catalog_fallback.{owner_path}", fromlist=[name])
    method = getattr(owner, name)

    def dying(*arguments: Any, **keywords: Any) -> Any:
        if when == "after":
            method(*arguments, **keywords)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, dying)
    from catalog_fallback import services  # noqa: PLC0415

    getattr(services, verb)(item_id)


# ------------------------------------------------------------------------------------------------ hammering


def hammer(site: Site, seed: int, count: int, start: Any, results: Any) -> None:
    """Look up, stop, release and forget at random, together with the others; send what happened."""
    site.enter()
    chance = random.Random(seed)
    start.wait(PATIENCE)
    results.put([_one(chance.choice(VERBS), chance.choice(("P001", "P002"))) for _ in range(count)])


VERBS = ("find_item",) * 24 + ("stop_item", "release_item", "invalidate_item")


def _one(verb: str, item_id: str) -> Event:
    from catalog_fallback import services  # noqa: PLC0415  # needs settings
    from catalog_fallback.exceptions import InvalidationFailed  # noqa: PLC0415

    began = time.monotonic()
    try:
        answer = getattr(services, verb)(item_id)
    except InvalidationFailed:
        return Event(verb, item_id, began, time.monotonic(), "failed")
    ended = time.monotonic()
    if verb != "find_item":
        assert answer == 1, f"{verb} changed nothing"
        return Event(verb, item_id, began, ended, "confirmed")
    sent = answer.item["sent"] if answer.item is not None else None
    return Event(verb, item_id, began, ended, str(answer.state), sent)


def source() -> dict[str, Any]:
    """A source without HTTP, whose items say when they were asked for."""
    return {"BACKEND": "tests.hammering.stamped", "TIMEOUT": 0.1, "CONNECT_TIMEOUT": 0.1, "BREAKER": None}


def __getattr__(name: str) -> Any:
    """The source's class, made when it is asked for: the processes import this module before they have settings."""
    if name != "stamped":
        raise AttributeError(name)
    from catalog_fallback.results import Reply  # noqa: PLC0415
    from catalog_fallback.sources.json_item import JSONItemSource  # noqa: PLC0415

    class Stamped(JSONItemSource):
        needs_url: ClassVar[bool] = False

        def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply:
            item = {"id": item_id, "name": "Tea", "sent": time.monotonic()}
            return Reply(200, {}, json.dumps({"item": item}).encode())

    return Stamped
