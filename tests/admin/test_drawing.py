"""Do lines and bars stay in their pictures, whatever they show?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback.admin.drawing import LINE_WIDTH, SPARK_HEIGHT, SPARK_WIDTH, sparkline, timeline

SECONDS = st.floats(0, 1e6)


def test_gaps_split_a_line() -> None:
    """A value without neighbours is a dot."""
    drawn = sparkline([1.0, 2.0, None, 3.0])
    assert (drawn.lines, drawn.dots) == (("3.0,15.0 33.0,9.0",), (("93.0", "3.0"),))


@given(st.lists(st.none() | SECONDS, max_size=20))
def test_a_sparkline_stays_inside(values: list[float | None]) -> None:
    """Every value has its point, and no gap has one."""
    drawn = sparkline(values)
    points = [point for line in drawn.lines for point in line.split()] + [",".join(dot) for dot in drawn.dots]
    assert len(points) == sum(value is not None for value in values)
    for point in points:
        x, y = map(float, point.split(","))
        assert 0 <= x <= SPARK_WIDTH
        assert 0 <= y <= SPARK_HEIGHT


@given(st.lists(SECONDS, max_size=20), st.floats(0.001, 1e6))
def test_bars_stay_inside(durations: list[float], budget: float) -> None:
    """One for each call, none too thin to be seen, one row each."""
    drawn = timeline(durations, budget)
    assert len(drawn.bars) == len(durations)
    assert 0 <= float(drawn.budget_x) <= LINE_WIDTH
    for bar in drawn.bars:
        assert float(bar.width) >= 2.0
        assert 0 <= float(bar.x) <= float(bar.x) + float(bar.width) <= LINE_WIDTH + 0.1
        assert int(bar.y) < drawn.height
