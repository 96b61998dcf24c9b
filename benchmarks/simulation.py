"""What does a large site ask of Redis and of its catalogs, and is the model that says so right for a small one?

The model of :mod:`benchmarks.site_model` is worked out for a site of 10,000 requests a second. For a site that fits on
this machine it is worked out, too, and beside it the real package is measured: several processes, a real Valkey, random
visitors, an outage of the primary and its end.
"""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import counting, traffic
from benchmarks.report import Row
from benchmarks.site_model import Commands, Load, SiteModel
from benchmarks.surroundings import Surroundings

#: 50 processes on 20 hosts behind one Redis, and two catalogs.
LARGE = SiteModel(rate=10_000, items=10_000_000, exponent=1.0, ttl=3600, processes=50, in_primary=0.9, in_both=0.8)
#: What this machine can do beside other work. The shares are those that :data:`OPTIONS` give to the sources.
SMALL = SiteModel(
    rate=300,
    items=3000,
    exponent=0.6,
    ttl=4,
    processes=4,
    in_primary=0.9,
    in_both=0.8 / 0.9,
    open_for=1,
    max_open_for=2,
)
#: Which hundredths of the items each source has: 80 in both, 10 only in the primary, 10 only in the secondary.
OPTIONS: Mapping[str, dict[str, Any]] = {"primary": {"has": (0, 90)}, "secondary": {"has": (10, 100)}}
#: A figure may be so many times the model's, or the model's so many times the figure.
TOLERANCE = 1.2
HOUR = 3600.0
_LEAD = 0.3
#: So many keys of each kind are weighed.
_WEIGHED = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """Seconds of each part of the measurement."""

    warm: float
    steady: float
    fading: float
    outage: float


def plan_for(model: SiteModel, measured: float = 8.0) -> Plan:
    """Return how long to wait until what is measured has settled: TTL governs it."""
    return Plan(2 * model.ttl, measured, 1.5 * model.ttl, measured)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a real site did: while all was well, in an outage, and after it."""

    steady: Load
    outage: Load
    recovery: float
    entries: int
    constants: Mapping[str, Any]
    plain: SiteModel

    @property
    def model(self) -> SiteModel:
        """The model of this very site, with what was counted and weighed."""
        return dataclasses.replace(self.plain, **self.constants)


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Measure a small site once, beside its model, and work the large one out with what was counted and weighed."""
    seen = measure(around, SMALL, plan_for(SMALL))
    return [*compare(seen), *forecast(dataclasses.replace(LARGE, **seen.constants))]


def row_names() -> list[str]:
    """The names of the rows with a bar."""
    return [f"small site, {figure}: beside the model" for figure in _FIGURES]


_FIGURES: Mapping[str, Callable[[Measured], tuple[float, float]]] = {
    "hit ratio": lambda seen: (seen.steady.hit_ratio, seen.model.steady().hit_ratio),
    "Redis commands/s": lambda seen: (seen.steady.commands, seen.model.steady().commands),
    "calls of the primary/s": lambda seen: (seen.steady.primary_calls, seen.model.steady().primary_calls),
    "entries in Redis": lambda seen: (seen.entries, seen.model.entries()),
    "outage, hit ratio": lambda seen: (seen.outage.hit_ratio, seen.model.outage().hit_ratio),
    "outage, Redis commands/s": lambda seen: (seen.outage.commands, seen.model.outage().commands),
    "outage, calls of the secondary/s": lambda seen: (
        seen.outage.secondary_calls,
        seen.model.outage().secondary_calls,
    ),
}


def compare(seen: Measured) -> list[Row]:
    """Return how far each figure is from the model's, the larger by the smaller; and what is no rate."""
    rows = []
    for (figure, values), name in zip(_FIGURES.items(), row_names(), strict=True):
        measured, expected = values(seen)
        apart = max(measured, expected) / max(min(measured, expected), 1e-9)
        rows.append(Row(name, apart, f"the other, {figure}", note=f"(measured {measured:.4g}, model {expected:.4g})"))
    cost = dataclasses.asdict(seen.model.commands)
    down, most = seen.outage.primary_calls, seen.model.max_open_for
    return [
        *rows,
        Row("small site, outage: calls of the primary/s", round(down, 2), note=f"a probe at least every {most:g} s"),
        Row("small site: bytes of a gate", round(seen.model.gate_bytes), note="in Redis, with key and bookkeeping"),
        Row("small site: bytes of an entry", round(seen.model.entry_bytes), note="the same"),
        Row("small site: commands of a miss", round(cost.pop("one_call"), 1), note=counting.as_note(cost)),
        Row(
            "small site: seconds to recover", round(seen.recovery, 2), note=f"the model: at most {most:g} and one miss"
        ),
    ]


def forecast(model: SiteModel) -> list[Row]:
    """Return what the model says of a site."""
    return [Row(f"large site, {name}", value, note="model") for name, value in figures(model).items()]


def figures(model: SiteModel) -> dict[str, float]:
    """Return what the model says of a site, rounded for people."""
    steady, outage = model.steady(), model.outage()
    return {
        "hit ratio": round(steady.hit_ratio, 2),
        "Redis commands/s": round(steady.commands, -2),
        "calls of the primary/s": round(steady.primary_calls),
        "calls of the secondary/s": round(steady.secondary_calls),
        "MiB in Redis": round(model.memory() / 2**20, -1),
        "hit ratio in an outage": round(outage.hit_ratio, 2),
        "Redis commands/s in an outage": round(outage.commands, -2),
        "calls of the secondary/s in an outage": round(outage.secondary_calls),
        "calls of the primary in an hour of outage": model.calls_during(HOUR),
        "seconds to recover after it, at most": model.max_open_for + math.ceil(1 / model.misses()),
    }


# ------------------------------------------------------------------------------------------------ measuring


def measure(around: Surroundings, model: SiteModel, plan: Plan) -> Measured:
    """Let visitors come to a real site: in good times, in an outage, and after it."""
    redis = f"{around.redis}/7"
    commands = count_commands(redis)
    with _visitors(around, model) as visitors:
        visitors.come(plan.warm)
        steady = _load(visitors, redis, plan.steady)
        entries, sizes = _weigh(redis)
        visitors.is_down.value = 1
        visitors.come(plan.fading)
        outage = _load(visitors, redis, plan.outage)
        visitors.is_down.value = 0
        back_at = time.time()
        reports = visitors.come(2 * model.max_open_for + 1)
        answered = [report.answered_at for report in reports if report.answered_at]
        recovery = min(answered) - back_at if answered else float("inf")
    return Measured(steady, outage, recovery, entries, {"commands": commands, **sizes}, model)


class _Visitors:
    """Processes that visit the site when they are told to."""

    def __init__(self, pipes: list[Any], rate: float, is_down: Any) -> None:
        self._pipes, self._rate = pipes, rate
        self._seed = 0
        self.is_down = is_down

    def come(self, seconds: float) -> list[traffic.Report]:
        """Let them visit for so long, all together at the site's rate."""
        begin_at = time.time() + _LEAD
        for pipe in self._pipes:
            self._seed += 1
            pipe.send(traffic.Order(begin_at, begin_at + seconds, self._rate / len(self._pipes), self._seed))
        return [pipe.recv() for pipe in self._pipes]


@contextmanager
def _visitors(around: Surroundings, model: SiteModel) -> Iterator[_Visitors]:
    spawn = multiprocessing.get_context("spawn")
    is_down = spawn.Value("b", 0)
    with ExitStack() as stack:
        pipes = []
        for _ in range(model.processes):
            ours, theirs = spawn.Pipe()
            directory = stack.enter_context(TemporaryDirectory())
            place = (around.redis, around.catalog, directory)
            arguments = (theirs, *place, is_down, model.items, model.exponent)
            process = spawn.Process(target=traffic.serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            stack.callback(process.kill)
            pipes.append(ours)
        for pipe in pipes:
            pipe.recv()
        yield _Visitors(pipes, model.rate, is_down)


def _load(visitors: _Visitors, redis: str, seconds: float) -> Load:
    from redis import Redis  # noqa: PLC0415  # only needed by who measures

    with Redis.from_url(redis) as server:
        server.config_resetstat()
        reports = visitors.come(seconds)
        commands = sum(counting.per_action(server.info("commandstats"), 1).values())
    lookups = sum(report.lookups for report in reports)
    calls = {name: sum(report.calls.get(name, 0) for report in reports) for name in OPTIONS}
    return Load(
        sum(report.hits for report in reports) / lookups,
        commands / seconds,
        calls["primary"] / seconds,
        calls["secondary"] / seconds,
    )


def _weigh(redis: str) -> tuple[int, dict[str, float]]:
    """Return how many entries there are at this moment, and what a gate and an entry take on average."""
    from redis import Redis  # noqa: PLC0415  # only needed by who measures

    with Redis.from_url(redis) as server:
        keys = {kind: _alive(server, f"*:{kind}:*{traffic.CATALOG}:Z*") for kind in ("e", "g")}
        mean = {kind: _mean_size(server, found[:_WEIGHED]) for kind, found in keys.items()}
    return len(keys["e"]), {"gate_bytes": mean["g"], "entry_bytes": mean["e"]}


def _alive(server: Any, pattern: str) -> list[bytes]:
    """The keys that have some life left: a server takes its time to remove the others."""
    keys = list(server.scan_iter(pattern, count=10_000))
    together = server.pipeline(transaction=False)
    for key in keys:
        together.pttl(key)
    return [key for key, life in zip(keys, together.execute(), strict=True) if life > 0]


def _mean_size(server: Any, keys: list[bytes]) -> float:
    sizes: list[int] = [size for key in keys if (size := server.memory_usage(key))]
    return sum(sizes) / max(len(sizes), 1)


def count_commands(redis: str) -> Commands:
    """Count the commands of each kind of lookup, one lookup at a time."""
    from catalog_fallback.services import find_item  # noqa: PLC0415  # needs settings

    numbers = iter(range(10_000_000, 100_000_000))

    def asking(catalog: str, part: tuple[int, int]) -> Callable[[], object]:
        """Ask for an item that nobody has asked for, of that part of each hundred."""
        return lambda: find_item(_fresh(numbers, part), catalog=catalog)

    def commands(catalog: str, part: tuple[int, int]) -> float:
        return sum(counting.run_by_server(redis, asking(catalog, part)).values())

    hit = counting.run_by_server(redis, lambda: find_item("Z99999999", catalog=traffic.CATALOG))
    down = f"{traffic.CATALOG}-down"
    for _ in range(LARGE.failures_to_open + 1):  # its breaker opens
        asking(down, (10, 90))()
    return Commands(
        hit=sum(hit.values()),
        one_call=commands(traffic.CATALOG, (0, 90)),
        two_calls=commands(traffic.CATALOG, (90, 100)),
        refused_found=commands(down, (10, 100)),
        refused_unanswered=commands(down, (0, 10)),
    )


def _fresh(numbers: Iterator[int], part: tuple[int, int]) -> str:
    return next(f"Z{number:08d}" for number in numbers if traffic.place_of(number) in range(*part))
