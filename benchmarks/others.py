"""What do other libraries do in the same places: a hit, and many who ask for one item at once?

They promise less: one key and no stop list for a hit, and no invalidation that wins against a fetch in flight.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import herd_peers, hit, peer_hits, peers
from benchmarks.bars import GET_MANY
from benchmarks.measuring import Case, interleave
from benchmarks.report import Row
from benchmarks.stampede import Scene, Seen, play, rows_of
from benchmarks.surroundings import Surroundings

_OURS, _FLOOR = "hit, django-redis, beside the peers", "hit, django-redis, beside the peers: floor"
#: Rounds of the scenes, at most: who waits for a lock waits for a second.
_MOST_ROUNDS = 5


def _scenes(around: str, processes: int, callers: int) -> list[Scene]:
    kinds = [herd for herd, module in herd_peers.OF_THREADS.items() if peers.is_installed(module)]
    others = [Scene(f"{around}: {kind}", processes, callers, kind, has_gate=False) for kind in kinds]
    return [Scene(f"{around}: ours", processes, callers), *others]


def scenes() -> list[Scene]:
    """Ours beside those of the peers that are installed."""
    made = [*_scenes("1 × 50 threads", 1, 50), *_scenes("4 processes × 25 threads", 4, 25)]
    made.append(Scene("200 asyncio tasks: ours", 1, 200, "tasks"))
    if peers.is_installed("cashews") and peers.is_installed("httpx"):
        made.append(Scene(f"200 asyncio tasks: {herd_peers.CASHEWS}", 1, 200, herd_peers.CASHEWS, has_gate=False))
    return made


def row_names() -> list[str]:
    """The names of the rows of our own."""
    return [_FLOOR, _OURS]


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Measure hits in one process, then let the scenes happen."""
    seen = {scene.name: Seen() for scene in scenes()}
    play(scenes(), seen, min(rounds, _MOST_ROUNDS))
    return [*_hits(around, rounds), *(row for scene in scenes() for row in rows_of(scene, seen[scene.name]))]


def _hits(around: Surroundings, rounds: int) -> list[Row]:
    makers: dict[str, Callable[[Surroundings], Case]] = {
        name: make for name, (module, make) in peer_hits.HITS.items() if peers.is_installed(module)
    }
    ours = hit.hit_of("django-redis")
    cases = {_FLOOR: hit.floor("django-redis"), _OURS: ours}
    cases |= {name: make(around) for name, make in makers.items()}
    timings = interleave(cases, rounds)
    floor = timings[_FLOOR]
    rows = [Row(name, each.ratio_to(floor), GET_MANY, each.median) for name, each in timings.items()]
    return [*rows, *peers.missing([name for name in peer_hits.HITS if name not in makers])]
