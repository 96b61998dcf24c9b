"""How much does a site of a given size ask of Redis and of its catalogs? A model on paper, without a clock or a server.

Requests for an item come at random (Poisson), and items are wanted as Zipf says: the item of rank *i* gets a share
proportional to ``1 / i ** exponent``. An answer is kept for TTL from its fetch and not prolonged by hits, so that an
item wanted at the rate *r* is fetched ``r / (1 + r × TTL)`` times a second. Processes share the cache, and one flight
serves them all, so that their number does not matter to the catalogs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

#: The most wanted ranks are counted one by one, the others in groups that end at a rank so many times the last one.
_SINGLE, _GROWTH = 1000, 1.02


@dataclass(frozen=True, slots=True)
class Commands:
    """Redis commands that one lookup takes: the simulation counts them on the real package; this is one such count."""

    hit: float = 1.0
    #: A miss that the primary answers; one for which the secondary had to be asked, too.
    one_call: float = 9.0
    two_calls: float = 10.0
    #: A miss whose primary is refused by its breaker: the secondary has the item, or says that it has not.
    refused_found: float = 10.0
    refused_unanswered: float = 8.0


@dataclass(frozen=True, slots=True)
class SiteModel:
    """A site with two catalogs. Times are seconds, rates are per second, sizes are bytes."""

    rate: float
    items: int
    exponent: float
    ttl: float
    stale: float = 0.0
    processes: int = 1
    #: Share of the items that the primary has; the secondary has all others, and this share of the primary's, too.
    in_primary: float = 1.0
    in_both: float = 1.0
    #: The primary's breaker.
    open_for: float = 30.0
    max_open_for: float = 300.0
    failures_to_open: int = 5
    #: What one gate and one entry of a 200-byte item take in Redis, key, value and bookkeeping.
    gate_bytes: float = 120.0
    entry_bytes: float = 470.0
    commands: Commands = field(default_factory=Commands)
    #: Commands that each process sends whatever is asked: figures of calls, and successes, once a second.
    housekeeping: float = 3.0

    def popularity(self) -> Iterator[tuple[float, float]]:
        """Yield the rate at which an item of a group is wanted, and how many items the group has."""
        groups = list(_groups(self.items, self.exponent))
        total = sum(weight * count for weight, count in groups)
        for weight, count in groups:
            yield self.rate * weight / total, count

    def misses(self) -> float:
        """Return the fetches a second while all is well."""
        return sum(count * rate / (1 + rate * self.ttl) for rate, count in self.popularity())

    def steady(self) -> Load:
        """Return the load while all is well."""
        misses = self.misses()
        asked_twice = misses * (1 - self.in_primary)
        cost = self.commands
        commands = (
            (self.rate - misses) * cost.hit
            + (misses - asked_twice) * cost.one_call
            + asked_twice * cost.two_calls
            + self.processes * self.housekeeping
        )
        return Load(1 - misses / self.rate, commands, misses, asked_twice)

    def outage(self) -> Load:
        """Return the load while the primary is down and its breaker open, once what was kept has expired.

        An item that the secondary has is kept as ever. Of one that only the primary has nobody can say anything: that
        is not kept, so that every request asks the secondary again. The primary itself is left alone but for probes.
        """
        answered = self.misses() * (1 - self.only_primary)
        unanswered = self.rate * self.only_primary
        cost = self.commands
        hits = self.rate - answered - unanswered
        commands = (
            hits * cost.hit
            + answered * cost.refused_found
            + unanswered * cost.refused_unanswered
            + self.processes * self.housekeeping
        )
        return Load(hits / self.rate, commands, 1 / self.max_open_for, answered + unanswered)

    @property
    def only_primary(self) -> float:
        """The share of the items that only the primary has."""
        return self.in_primary * (1 - self.in_both)

    def probes(self, outage: float) -> Iterator[float]:
        """Yield the seconds after the opening at which a probe may go, up to the first one after the outage."""
        at, wait = 0.0, self.open_for
        while at <= outage:
            at, wait = at + wait, min(2 * wait, self.max_open_for)
            yield at

    def calls_during(self, outage: float) -> float:
        """Return the calls that reach the primary in an outage of so many seconds: failures that open, and probes."""
        return self.failures_to_open + sum(1 for at in self.probes(outage) if at <= outage)

    def recovery(self, outage: float) -> float:
        """Return the seconds from the primary's return to its first good answer; whoever asks next is the probe."""
        first = next(at for at in self.probes(outage) if at > outage)
        return first - outage + 1 / self.misses()

    def keys(self) -> float:
        """Return the gates that are in Redis at the same time."""
        return self._alive(self.ttl + self.stale + _MARGIN)

    def entries(self) -> float:
        """Return the entries that are."""
        return self._alive(self.ttl + self.stale)

    def memory(self) -> float:
        """Return the bytes that gates and entries take."""
        return self.keys() * self.gate_bytes + self.entries() * self.entry_bytes

    def _alive(self, life: float) -> float:
        """An item is fetched anew when it is wanted after its TTL; its key is there for ``life`` from each fetch."""
        return sum(count * self._share_of_time(rate, life) for rate, count in self.popularity())

    def _share_of_time(self, rate: float, life: float) -> float:
        beyond = max(0.0, life - self.ttl)
        return (self.ttl + -math.expm1(-rate * beyond) / rate) / (self.ttl + 1 / rate)


@dataclass(frozen=True, slots=True)
class Load:
    """What the site does in a second: share of hits, Redis commands, calls of the primary and of the secondary."""

    hit_ratio: float
    commands: float
    primary_calls: float
    secondary_calls: float


#: Seconds that a gate outlives what was made under it.
_MARGIN = 60.0


def _groups(items: int, exponent: float) -> Iterator[tuple[float, float]]:
    """Yield weight and number of the items of each group of ranks; the weights are not normalised."""
    first = 1
    while first <= items:
        last = first if first <= _SINGLE else min(items, max(first, int(first * _GROWTH)))
        count = last - first + 1
        yield (_integral(first - 0.5, last + 0.5, exponent) / count if count > 1 else first**-exponent), count
        first = last + 1


def _integral(low: float, high: float, exponent: float) -> float:
    """Of ``x ** -exponent``."""
    if math.isclose(exponent, 1.0):
        return math.log(high / low)
    return float((high ** (1 - exponent) - low ** (1 - exponent)) / (1 - exponent))
