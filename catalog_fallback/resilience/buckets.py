"""Which part of a sliding window is it? Counters are kept in buckets, named by number."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Buckets:
    """Time cut into pieces of ``size`` seconds; ``back`` older ones and ``ahead`` newer ones belong to a window.

    Those ahead are of hosts whose clocks are ahead of ours.
    """

    size: float
    back: int
    ahead: int

    @property
    def span(self) -> float:
        """Seconds that all buckets of a window cover together."""
        return (self.back + 1 + self.ahead) * self.size

    def number(self, now: float) -> int:
        """Return the bucket of a moment."""
        return math.floor(now / self.size)

    def window(self, number: int) -> range:
        """Return the buckets that count in the bucket ``number``, oldest first."""
        return range(number - self.back, number + self.ahead + 1)

    def leaves_in(self, number: int, now: float) -> float:
        """Return the seconds until the bucket ``number`` no longer counts."""
        return max(0.0, (number + self.back + 1) * self.size - now)
