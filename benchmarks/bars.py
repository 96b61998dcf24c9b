"""Which figures do we promise? One table: what is measured, against which base, and what it may come to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure that a measurement may not exceed, or, ``is_exact``, that it has to meet."""

    limit: float
    is_exact: bool = False

    def allows(self, value: float) -> bool:
        """Whether the value is within the bar."""
        return value == self.limit if self.is_exact else value <= self.limit

    def __str__(self) -> str:
        return f"{'=' if self.is_exact else '≤'} {self.limit:g}"


#: Base of the ratios of a hit.
GET_MANY = "get_many of the same 2 keys"
#: Base of the ratios of a miss.
SESSION_GET = "requests.Session.get(timeout).json()"

#: What asks for one item at once → milliseconds that the slowest per cent may wait beyond the upstream.
STAMPEDES: dict[str, float | None] = {
    "1 × 50 threads": 40,
    "1 × 200 threads": None,
    "4 processes × 25 threads": 35,
    "4 processes × 25 threads, no gate": 35,
    "4 processes × 25 threads, failing after 500 ms": 30,
    "200 asyncio tasks": 10,
}

#: What never comes to an end, so that a lookup has to.
ENDLESS = (
    "head drip",
    "body drip",
    "trailers",
    "100-continue flood",
    "stalled TLS",
    "stalled DNS",
    "dead addresses",
)
_BEFORE = ("a hit before", "a miss before")

#: What the simulation's model says and its measurement has to confirm.
SIMULATED = (
    "hit ratio",
    "Redis commands/s",
    "calls of the primary/s",
    "entries in Redis",
    "outage, hit ratio",
    "outage, Redis commands/s",
    "outage, calls of the secondary/s",
)

#: Name of a row → its bar. Rows without one are there for comparison.
BARS: dict[str, Bar] = {
    "hit, django-redis": Bar(1.20),
    "hit, django-redis: commands": Bar(1, is_exact=True),
    "hit, Django's RedisCache": Bar(1.10),
    "hit, Django's RedisCache: commands": Bar(1, is_exact=True),
    "hit, LocMem, STOP_CHECK=cache": Bar(1.40),
    "hit, STOP_CHECK=cache: database queries": Bar(0, is_exact=True),
    "one source call, keep-alive": Bar(0.60),
    "miss, django-redis": Bar(1.60),
    "miss, django-redis: commands": Bar(5),
    "miss under a gate that stands, django-redis: commands": Bar(5),
    "miss, django-redis, plain operations: commands": Bar(9),
    "miss, LocMem": Bar(1.00),
    "hit, 10,000 stopped IDs": Bar(1.15),
    "hit, 1,000,000 stopped IDs": Bar(1.15),
    "hit that asks the database, 10,000 stopped IDs": Bar(1.25),
    "LocMem, over HTTP: blocks of memory gained": Bar(3000),
    "django-redis: blocks of memory gained": Bar(3000),
    "hit that asks the database, 1,000,000 stopped IDs": Bar(1.25),
    "all sources refused: cache commands": Bar(2, is_exact=True),
    "all sources refused: database queries": Bar(1, is_exact=True),
    "all sources refused: calls, threads and connections": Bar(0, is_exact=True),
    **{f"small site, {figure}: beside the model": Bar(1.2) for figure in SIMULATED},
    **{f"Redis refuses, {kind}: most extra of a first lookup, ms": Bar(5) for kind in _BEFORE},
    # One time-out of 250 ms, and what the lookup does besides.
    **{f"Redis hangs, {kind}: most extra of a first lookup, ms": Bar(280) for kind in _BEFORE},
    **{
        f"{trouble}, {kind}: extra of each lookup then, ms": Bar(0.1)
        for trouble in ("Redis refuses", "Redis hangs")
        for kind in _BEFORE
    },
    **{f"budget, {scene}: p99 beyond it, ms": Bar(50) for scene in ENDLESS},
    "forget 10,000 IDs: seconds": Bar(2),
    "stop 10,000 IDs: seconds": Bar(2),
    "forget 100,000 IDs from standard input: most MB resident": Bar(100),
    "forget 1,000,000 IDs from standard input: most MB resident": Bar(100),
    "import: threads started": Bar(0, is_exact=True),
    "import: sockets opened": Bar(0, is_exact=True),
    "import: settings of caches, catalogs and databases read": Bar(0, is_exact=True),
    "hit, 10 sources": Bar(1.15),
    "hit, 1,000 variants of the item": Bar(1.15),
    "hit, 10,000 entries in the cache": Bar(1.15),
    "100 warm items, django-redis": Bar(1.25),
    "100 warm items, django-redis: commands": Bar(1, is_exact=True),
    **{f"{scene}: upstream calls": Bar(1, is_exact=True) for scene in STAMPEDES},
    **{f"{scene}: p99 beyond the upstream, ms": Bar(most) for scene, most in STAMPEDES.items() if most is not None},
    "1 × 200 threads: p99": Bar(1.60),
    "4 processes × 25 threads: commands per caller": Bar(3),
    "4 processes × 25 threads, no gate: commands per caller": Bar(5),
}
