"""What happens when many ask for one item that nobody has? One call, and how long everybody waits beyond it."""

from __future__ import annotations

import multiprocessing
import statistics
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import counting, herd, servers
from benchmarks.measuring import percentile
from benchmarks.report import Row
from benchmarks.slow_catalog import item_id
from benchmarks.surroundings import Surroundings

#: Seconds between an order and the moment at which everybody asks: time to start the threads.
_LEAD = 0.3


@dataclass(frozen=True, slots=True)
class Scene:
    """So many processes with so many callers each, and an upstream that takes so long to say so."""

    name: str
    processes: int
    callers: int
    kind: str = "threads"
    delay_ms: int = 50
    status: int = 200
    has_gate: bool = True
    is_floor: bool = False

    @property
    def expected(self) -> str:
        """The state that every caller has to see."""
        return "found" if self.status == 200 else "unavailable"


SCENES = (
    Scene("1 × 50 threads", 1, 50),
    Scene("1 × 200 threads, an event alone", 1, 200, "event alone", is_floor=True),
    Scene("1 × 200 threads", 1, 200),
    Scene("4 processes × 25 threads", 4, 25),
    Scene("4 processes × 25 threads, no gate", 4, 25, has_gate=False),
    Scene("4 processes × 25 threads, failing after 500 ms", 4, 25, delay_ms=500, status=503),
    Scene("200 asyncio tasks", 1, 200, "tasks"),
)
#: The scene whose p99 is also shown as a ratio to the floor's.
_RATIO = "1 × 200 threads: p99"
_FLOOR = "p99 of an event alone"


@dataclass(slots=True)
class Seen:
    """What the rounds of one scene brought."""

    calls: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    commands: list[float] = field(default_factory=list)


def row_names() -> list[str]:
    """The names of the rows."""
    return [_RATIO, *(f"{scene.name}: {figure}" for scene in SCENES for figure in _FIGURES)]


_FIGURES = ("upstream calls", "p99 beyond the upstream, ms", "commands per caller")


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Let every scene happen in every round; figures are medians over the rounds, calls the most of any round."""
    seen = {scene.name: Seen() for scene in SCENES}
    play(SCENES, seen, rounds)
    floor, ours = seen["1 × 200 threads, an event alone"], seen["1 × 200 threads"]
    ratio = statistics.median(own / other for own, other in zip(ours.p99, floor.p99, strict=True))
    rows = [row for scene in SCENES for row in rows_of(scene, seen[scene.name])]
    return [*rows, Row(_RATIO, ratio, _FLOOR, statistics.median(ours.p99) * 1000)]


def play(scenes: Sequence[Scene], seen: Mapping[str, Seen], rounds: int) -> None:
    """Let these scenes happen on one stage, in every round, after one round that does not count."""
    with _stage(max(scene.processes for scene in scenes)) as stage:
        for number in range(rounds + 1):
            for at, scene in enumerate(scenes):
                stage.play(scene, 100 * number + at + 1, seen[scene.name] if number else Seen())


def rows_of(scene: Scene, seen: Seen) -> list[Row]:
    """What is told of one scene."""
    beyond = statistics.median(seen.p99) - scene.delay_ms
    note = f"p50 {statistics.median(seen.p50):.1f} ms, p99 {statistics.median(seen.p99):.1f} ms"
    rows = [
        Row(f"{scene.name}: upstream calls", max(seen.calls)),
        Row(f"{scene.name}: p99 beyond the upstream, ms", round(beyond, 1), note=note),
    ]
    if not scene.is_floor:
        rows.append(Row(f"{scene.name}: commands per caller", round(statistics.median(seen.commands), 2)))
    return rows


class Stage:
    """Processes that are ready to ask, and the servers that they ask."""

    def __init__(self, redis: str, url: str, pipes: list[Any]) -> None:
        self._redis = redis
        self._url = url
        self._pipes = pipes

    def play(self, scene: Scene, number: int, seen: Seen) -> None:
        """One round of one scene; the number is one that no item of this stage has had."""
        asked = item_id(scene.delay_ms, scene.status, number)
        if scene.has_gate:
            self._put_up_gate(asked)
        commands = self._commands()
        begin_at = time.time() + _LEAD
        pipes = self._pipes[: scene.processes]
        for pipe in pipes:
            pipe.send(herd.Order(scene.kind, scene.callers, asked, begin_at))
        reports = [pipe.recv() for pipe in pipes]
        waited = [each for report in reports for each in report.waited]
        states = {state for report in reports for state in report.states}
        assert states == {scene.expected}, (scene.name, states)
        seen.calls.append(self._calls(asked))
        seen.p50.append(percentile(waited, 50))
        seen.p99.append(percentile(waited, 99))
        seen.commands.append((self._commands() - commands) / len(waited))

    def _put_up_gate(self, asked: str) -> None:
        self._pipes[0].send(herd.Order("gate", 1, asked, 0.0))
        self._pipes[0].recv()

    def _calls(self, asked: str) -> float:
        with urllib.request.urlopen(f"{self._url}/calls/{asked}") as reply:
            return float(reply.read())

    def _commands(self) -> float:
        from redis import Redis  # noqa: PLC0415  # only needed by who measures

        with Redis.from_url(self._redis) as server:
            return sum(counting.per_action(server.info("commandstats"), 1).values())


@contextmanager
def _stage(processes: int) -> Iterator[Stage]:
    """Servers and processes of their own, free to run on every processor."""
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        stack.enter_context(servers.unpinned())
        redis = stack.enter_context(servers.valkey())
        url = stack.enter_context(servers.slow_catalog())
        pipes = []
        for _ in range(processes):
            ours, theirs = spawn.Pipe()
            directory = stack.enter_context(TemporaryDirectory())
            process = spawn.Process(target=herd.serve, args=(theirs, redis, url, directory), daemon=True)
            process.start()
            stack.callback(process.kill)
            pipes.append(ours)
        for pipe in pipes:
            pipe.recv()
        yield Stage(redis, url, pipes)
