"""Is the model of a large site sound, right for a small one, and what docs/explanation/scale.md says?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import simulation, traffic
from benchmarks.bars import BARS, SIMULATED, Bar
from benchmarks.simulation import LARGE, SMALL, Measured
from benchmarks.site_model import Load, SiteModel

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "scale.md"


def table(head: str) -> dict[str, list[str]]:
    """The rows below a line of the page: name and cells."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(head)
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    return {name: cells for name, *cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)}


# ------------------------------------------------------------------------------------------------ the model


def exactly(model: SiteModel) -> float:
    """The fetches a second, item by item."""
    weights = [rank**-model.exponent for rank in range(1, model.items + 1)]
    total = sum(weights)
    rates = [model.rate * weight / total for weight in weights]
    return sum(rate / (1 + rate * model.ttl) for rate in rates)


@pytest.mark.parametrize("exponent", [0.6, 1.0, 1.3])
def test_groups_of_ranks_are_as_good_as_single_ones(exponent: float) -> None:
    """Summed up item by item it comes to the same, to a thousandth."""
    model = SiteModel(rate=100, items=30_000, exponent=exponent, ttl=60)
    assert model.misses() == pytest.approx(exactly(model), rel=1e-3)
    assert sum(rate * count for rate, count in model.popularity()) == pytest.approx(100)
    assert sum(count for _, count in model.popularity()) == 30_000


def test_one_item() -> None:
    """Wanted once a second and kept for nine: fetched every ten seconds, there for nine of ten."""
    model = SiteModel(rate=1, items=1, exponent=1, ttl=9)
    assert (model.misses(), model.steady().hit_ratio, model.entries()) == pytest.approx((0.1, 0.9, 0.9))


def test_stale_entries_live_longer_and_save_no_call() -> None:
    """Memory grows, calls do not change."""
    model = SiteModel(rate=10, items=1000, exponent=1, ttl=10)
    longer = replace(model, stale=100)
    assert longer.steady() == model.steady()
    assert model.entries() < longer.entries() < model.items


def test_without_an_item_of_its_own_an_outage_of_the_primary_costs_no_hit() -> None:
    """Where the secondary has everything, it is asked instead."""
    model = SiteModel(rate=100, items=1000, exponent=1, ttl=10, in_primary=0.9, in_both=1.0)
    assert model.outage().hit_ratio == pytest.approx(model.steady().hit_ratio)
    assert model.outage().secondary_calls == pytest.approx(model.misses())


def test_a_breaker_waits_twice_as_long_each_time() -> None:
    """Up to its longest: probes after 30, 90, 210, 450, 750 … seconds."""
    model = SiteModel(rate=1, items=1, exponent=1, ttl=0)
    assert list(model.probes(700)) == [30, 90, 210, 450, 750]
    assert model.calls_during(700) == 5 + 4
    assert model.recovery(700) == pytest.approx(50 + 1)


@pytest.mark.parametrize("outage", [1, 29, 31, 200, 3600, 100_000])
def test_recovery_never_takes_longer_than_the_longest_break(outage: float) -> None:
    """And the wait for whoever misses next."""
    assert 0 < LARGE.recovery(outage) <= LARGE.max_open_for + 1 / LARGE.misses()


# ------------------------------------------------------------------------------------------------ beside the real thing


def seen(model: SiteModel, factor: float = 1.0) -> Measured:
    """What a site would do that does so many times what the model says."""
    steady, outage = (
        Load(each.hit_ratio * factor, each.commands, each.primary_calls, each.secondary_calls)
        for each in (model.steady(), model.outage())
    )
    return Measured(steady, outage, 0.5, round(model.entries()), {}, model)


def test_a_site_like_the_model_holds_every_bar_and_another_one_does_not() -> None:
    """Too little misses a bar as too much does."""
    assert [row.name for row in simulation.compare(seen(SMALL)) if row.is_missed] == []
    for factor in (0.7, 1.4):
        missed = [row.name for row in simulation.compare(seen(SMALL, factor)) if row.is_missed]
        assert missed == [name for name in simulation.row_names() if "hit ratio" in name]


def test_every_figure_has_a_bar() -> None:
    """The tolerance that the page names."""
    assert simulation.row_names() == [f"small site, {figure}: beside the model" for figure in SIMULATED]
    assert {BARS[name] for name in simulation.row_names()} == {Bar(simulation.TOLERANCE)}


def test_the_sources_have_the_shares_of_the_model() -> None:
    """Of a hundred items 80 are in both, 10 in one only, 10 in the other only, wherever they are in the ranks."""
    primary, secondary = (range(*simulation.OPTIONS[name]["has"]) for name in ("primary", "secondary"))
    places = [traffic.place_of(rank) for rank in range(1, 101)]
    assert sorted(places) == list(range(100))
    assert sum(place in primary for place in places) == 100 * SMALL.in_primary
    assert sum(place in primary and place in secondary for place in places) == pytest.approx(
        100 * SMALL.in_primary * SMALL.in_both
    )


# ------------------------------------------------------------------------------------------------ the page


COLUMNS = (LARGE, replace(LARGE, ttl=86_400), replace(LARGE, exponent=0.8), replace(LARGE, stale=86_400))


def test_the_page_says_what_the_model_says() -> None:
    """Every figure of the table, for all of its sites."""
    rows = table("| 10,000 requests/s, 10,000,000 items |")
    expected = [simulation.figures(model) for model in COLUMNS]
    assert rows == {name: [as_written(each[name]) for each in expected] for name in expected[0]}


def as_written(figure: float) -> str:
    """A share as it is, everything else as a whole number."""
    return f"{figure:g}" if figure < 1 else f"{figure:,.0f}"


def test_the_page_names_the_settings_of_both_sites() -> None:
    """The large one of the model, and the small one that is measured."""
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for text in (
        f"{LARGE.processes} processes on 20 hosts",
        "three commands a second",
        f"four processes on a real Valkey, {SMALL.rate:g} random visits a second to {SMALL.items:,} items "
        f"(exponent {SMALL.exponent}), `TTL` {SMALL.ttl:g} s",
        "more than a fifth apart",
    ):
        assert text in page
    assert (SMALL.processes, LARGE.housekeeping, simulation.TOLERANCE) == (4, 3, 1.2)
    usual, outage = LARGE.steady().secondary_calls, LARGE.outage().secondary_calls
    assert f"{outage / usual:.0f} times its usual calls" in page


def test_the_measured_figures_of_the_page_are_near_the_model() -> None:
    """What was measured once, beside what the model says of it: within the tolerance."""
    for name, (measured, model) in table("| measured beside the model |").items():
        if not model.startswith("at most"):
            one, other = (float(cell.replace(",", "")) for cell in (measured, model))
            assert max(one, other) / min(one, other) <= simulation.TOLERANCE, name
