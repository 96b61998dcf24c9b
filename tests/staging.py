"""How do several lookups and publishes run so that a test decides who takes the next step, and what becomes of it?

Each runs in a thread of its own, but only one at a time, and each stands still before every operation on the cache,
the stop list and the upstream until :meth:`Stage.resume` lets it go on to the next one. Nothing sleeps.

The database is a model: committed rows, and the snapshot of whoever looks at an old state. The functions of
``stop_list`` and ``publishing`` that ask a real one are replaced; ``tests/test_transactions.py`` is about those.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

from django.test import override_settings

from catalog_fallback import after_commit, boarding, clock, conf, flight_table, isolation, publishing, stop_list
from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.queries import Query
from catalog_fallback.results import NoReply, Reply
from catalog_fallback.sources.json_item import JSONItemSource
from catalog_fallback.testing import FrozenClock
from tests import stores

#: What may become of the operation that an actor stands before. Reads know only "well" and "down".
FATES = ("well", "lost", "late", "mute", "down")
LOCATION = "stage"
_HANG = 30.0

#: The stop list: ID → whether it is stopped, and when that was written.
Rows = dict[str, tuple[bool, int]]


@dataclass(eq=False)
class Actor:
    """One running lookup or publish."""

    kind: str
    item_id: str = ""
    language: str = ""
    #: The stop list as its transaction sees it; None for whoever sees what is committed.
    snapshot: Rows | None = None
    is_refresh: bool = False
    #: Which process it runs in: the flights of another process are out of sight.
    process: int = 0
    at: str = "the start"
    fate: str = "well"
    is_done: bool = False
    result: Any = None
    error: BaseException | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    is_waiting: Callable[[], bool] = bool

    @property
    def can_go(self) -> bool:
        """It is not at its end, and does not wait for somebody else."""
        return not self.is_done and not self.is_waiting()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.item_id}/{self.language} at {self.at}: {self.result or self.error or '…'}>"


class Stage:
    """Lets actors take turns. ``now`` counts what happens."""

    def __init__(self) -> None:
        self.now = 0
        #: How many steps were taken, by whomever.
        self.moves = 0
        self.actors: list[Actor] = []
        self.late: list[Callable[[], Any]] = []
        self.rows: Rows = {}
        self.upstream: Callable[[Actor], Reply | NoReply] = lambda actor: NoReply("timeout")
        self.on_write: Callable[[str], None] = lambda operation: None
        self.shelf = stores.Shelf()
        self._turn = threading.Semaphore(0)

    @property
    def actor(self) -> Actor | None:
        """Who runs just now."""
        return _actor.get()

    def tick(self) -> int:
        """Count one more event."""
        self.now += 1
        return self.now

    def start(self, actor: Actor, function: Callable[[], Any]) -> Actor:
        """Begin; the actor stands before its first operation."""

        def run() -> None:
            _actor.set(actor)
            actor.go.acquire()
            try:
                actor.result = function()
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                actor.error = error
            actor.is_done, actor.at = True, "the end"
            self._turn.release()

        self.actors.append(actor)
        threading.Thread(target=run, daemon=True).start()
        return actor

    def resume(self, actor: Actor, fate: str = "well") -> None:
        """Let the operation that the actor stands before happen in this way, and everything up to the next one."""
        actor.fate = fate
        self.moves += 1
        actor.go.release()
        assert self._turn.acquire(timeout=_HANG), f"{actor!r} hangs"

    def run(self, actor: Actor, until: str = "the end") -> None:
        """Let an actor go on until it stands there, has ended, or waits for another."""
        for _ in range(300):
            if not actor.can_go or (actor.at.startswith(until) and not actor.is_done):
                return
            self.resume(actor)
        raise AssertionError(f"{actor!r} never ends")

    def step(self, label: str, is_waiting: Callable[[], bool] = bool) -> str:
        """Called by actors: stand still before an operation; returns its fate."""
        actor = self.actor
        if actor is None:
            return "well"
        actor.at, actor.is_waiting = label, is_waiting
        self._turn.release()
        actor.go.acquire()
        actor.is_waiting = bool
        if actor.fate == "interrupt":
            raise KeyboardInterrupt
        return actor.fate


#: In the context, because a batch calls its sources in threads of its own.
_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)
stage = Stage()


class StagedCache(stores.MemoryCache):
    """Stands still before each operation."""

    def do(self, name: str, keys: tuple[str, ...], effect: stores.Effect) -> Any:
        self.shelf = stage.shelf
        fate = stage.step(f"cache.{name}")
        if fate == "down" or (fate != "well" and name not in stores.WRITES):
            raise ConnectionError("down")
        if fate in {"lost", "late"}:
            stage.late += [effect] if fate == "late" else []
            return stores.LossyCache.fault(name, keys, effect)
        answer = effect()
        stage.on_write(name)
        if fate == "mute":
            raise ConnectionError("reply lost")
        return answer


class StagedSource(JSONItemSource):
    """Stands still before the request is sent and before the reply has come."""

    needs_url: ClassVar[bool] = False

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        actor = stage.actor
        assert actor is not None
        stage.step("source.before")
        actor.facts.setdefault("sent", []).append(stage.tick())
        stage.step("source.body")
        return stage.upstream(actor)


class StagedEvent:
    """An event whose waiters let others go on."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float) -> bool:
        until = clock.monotonic() + timeout

        def is_waiting() -> bool:
            return not self._is_set and clock.monotonic() < until

        while is_waiting():
            stage.step("waiting", is_waiting)
        return self._is_set


class FlightTables:
    """The flights of several processes, each of which sees only its own."""

    def __init__(self, on_join: Callable[[Actor, Any], None]) -> None:
        self._tables: dict[int, flight_table.FlightTable] = defaultdict(flight_table.FlightTable)
        self._on_join = on_join

    @property
    def _own(self) -> flight_table.FlightTable:
        assert stage.actor is not None
        return self._tables[stage.actor.process]

    def __len__(self) -> int:
        return sum(map(len, self._tables.values()))

    def find(self, name: Any) -> Any:
        return self._own.find(name)

    def join(self, name: Any, ends_at: float) -> Any:
        stage.step("flight")
        flight, is_own = self._own.join(name, ends_at)
        if is_own and stage.actor is not None:
            self._on_join(stage.actor, name)
        return flight, is_own

    def land(self, name: Any, flight: Any) -> None:
        assert stage.actor is not None
        stage.actor.facts.pop("flight", None)
        self._own.land(name, flight)


def item_reply(actor: Actor, **fields: Any) -> Reply:
    """The item that the actor asked for."""
    return Reply(200, {}, json.dumps({"item": {"id": actor.item_id, "name": "Tea", **fields}}).encode())


# ------------------------------------------------------------------------------------------------ the modelled database


def _view() -> Rows:
    actor = stage.actor
    return stage.rows if actor is None or actor.snapshot is None else actor.snapshot


def _is_stopped(query: Query) -> bool | None:
    return None if stage.step("database.is_stopped") == "down" else _view().get(query.item_id, (False, 0))[0]


def _ask(catalog: str, item_ids: Sequence[str]) -> Callable[[str], bool | None]:
    if stage.step("database.is_stopped") == "down":
        return lambda item_id: None
    said = dict(_view())
    return lambda item_id: said.get(item_id, (False, 0))[0]


def _state(catalog: str, item_ids: list[str]) -> dict[str, tuple[bool, int, bool]]:
    if stage.step("database.state") == "down":
        raise InvalidationFailed("the database is down")
    return {item_id: (*row, True) for item_id, row in _view().items() if item_id in item_ids}


def _has_snapshot(*_: object) -> bool:
    return stage.actor is not None and stage.actor.snapshot is not None


class _Connection:
    """The connection of whoever is on the stage: in a transaction where it looks at a snapshot."""

    @property
    def in_atomic_block(self) -> bool:
        return _has_snapshot()


def _after_commit(connection: object, changes: Mapping[str, list[str]], reason: str, publish: object) -> None:
    """What a real transaction publishes once more after its commit is the machine's business."""


SETTINGS = {
    "default": {
        "SOURCES": {"only": {"BACKEND": "tests.staging.StagedSource", "BREAKER": None}},
        "TTL": 60,
        "NEGATIVE_TTL": 30,
        "STALE_IF_ERROR": 120,
        "STOP_CHECK": "cache",
        "BUDGET": 60,
    }
}


@contextmanager
def staged(on_join: Callable[[Actor, Any], None] = lambda actor, name: None) -> Iterator[FrozenClock]:
    """An empty stage, an empty cache, an empty stop list, and a clock that stands still.

    ``on_join`` is told of each flight that somebody begins.
    """
    stage.__init__()  # type: ignore[misc]
    patched = [
        (stop_list, "is_stopped", _is_stopped),
        (stop_list, "ask", _ask),
        (stop_list, "sees_old_state", _has_snapshot),
        (publishing, "sees_old_state", _has_snapshot),
        (publishing, "database", lambda: "default"),
        (publishing, "connections", {"default": _Connection()}),
        (publishing, "is_in_transaction", _has_snapshot),
        (after_commit, "publish", _after_commit),
        (publishing, "_state", _state),
        (publishing, "_confirm", lambda *_: None),
        (publishing, "_take_along", lambda *_: None),
        (boarding, "table", FlightTables(on_join)),
    ]
    with ExitStack() as stack:
        frozen = stack.enter_context(FrozenClock())
        caches = {"default": {"BACKEND": "tests.staging.StagedCache", "LOCATION": LOCATION}}
        stack.enter_context(override_settings(CATALOG_FALLBACK=SETTINGS, CACHES=caches))
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable()
        for owner, name, replacement in patched:
            stack.enter_context(mock.patch.object(owner, name, replacement))
        stack.enter_context(mock.patch.object(isolation.Isolation, "ask", return_value=frozenset()))
        threads = SimpleNamespace(Event=StagedEvent, Lock=threading.Lock)
        stack.enter_context(mock.patch.object(flight_table, "threading", threads))
        stack.enter_context(mock.patch.object(clock, "sleep", _staged_sleep(frozen)))
        stack.callback(conf.forget)
        yield frozen


def _staged_sleep(frozen: FrozenClock) -> Callable[[float], None]:
    """Sleep: a lookup, which polls, until anybody else has moved, so that it does not poll for ever by itself."""

    def sleep(seconds: float) -> None:
        moves = stage.moves
        is_polling = stage.actor is not None and stage.actor.kind == "lookup"
        stage.step("sleep", lambda: is_polling and stage.moves <= moves + 1)
        frozen.advance(seconds)

    return sleep
