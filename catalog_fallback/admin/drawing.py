"""Where do the lines and bars of a small picture go? Numbers for attributes of inline SVG; no style, no script.

Every number is a text with a point, whatever the language of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

#: Size of a sparkline and of a timeline, in units of their view boxes.
SPARK_WIDTH, SPARK_HEIGHT = 96, 24
LINE_WIDTH, ROW_HEIGHT = 600, 26
_EDGE = 3
_THINNEST_BAR = 2.0


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Polylines as their ``points``, and the centres of the values that have no neighbour."""

    lines: tuple[str, ...]
    dots: tuple[tuple[str, str], ...]
    width: int = SPARK_WIDTH
    height: int = SPARK_HEIGHT


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a timeline: its left edge, its width, and the top of its row."""

    x: str
    width: str
    y: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Bars one below the other, and where the budget ends."""

    bars: tuple[Bar, ...]
    budget_x: str
    height: int
    width: int = LINE_WIDTH
    row_height: int = ROW_HEIGHT


def sparkline(values: Sequence[float | None]) -> Sparkline:
    """Return how these values look, from left to right; None is a gap."""
    highest = max((value for value in values if value is not None), default=0.0) or 1.0
    step = (SPARK_WIDTH - 2 * _EDGE) / max(1, len(values) - 1)
    usable = SPARK_HEIGHT - 2 * _EDGE
    places = [
        None if value is None else (_text(_EDGE + number * step), _text(_EDGE + usable * (1 - value / highest)))
        for number, value in enumerate(values)
    ]
    runs = [[place for place in run if place is not None] for is_gap, run in groupby(places, _is_gap) if not is_gap]
    lines = tuple(" ".join(f"{x},{y}" for x, y in run) for run in runs if len(run) > 1)
    return Sparkline(lines, tuple(run[0] for run in runs if len(run) == 1))


def timeline(durations: Sequence[float], budget: float) -> Timeline:
    """Return how calls look that were made one after the other, in the same unit of time as the budget."""
    whole = max(budget, sum(durations)) or 1.0
    scale = LINE_WIDTH / whole
    bars, begun = [], 0.0
    for number, duration in enumerate(durations):
        width = max(duration * scale, _THINNEST_BAR)
        left = min(begun * scale, LINE_WIDTH - width)
        bars.append(Bar(_text(left), _text(width), str(number * ROW_HEIGHT)))
        begun += duration
    return Timeline(tuple(bars), _text(budget * scale), max(1, len(bars)) * ROW_HEIGHT)


def _is_gap(place: tuple[str, str] | None) -> bool:
    return place is None


def _text(number: float) -> str:
    return f"{number:.1f}"
