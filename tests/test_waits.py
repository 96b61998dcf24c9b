"""Is the worst case of a lookup what the settings come to, and can a lookup not exceed it?"""

from __future__ import annotations

from typing import Any

import pytest

from catalog_fallback import clock, conf
from catalog_fallback.results import NoReply
from catalog_fallback.waits import longest_call, sum_of_limits, waits_of
from tests.guard_scenes import no_jitter
from tests.scripted import PATH, Programmed
from tests.sites import MovableClock, Site


@pytest.mark.parametrize(
    ("primary", "secondary", "budget", "lookup", "is_cut"),
    [
        ({"TIMEOUT": 2}, {"TIMEOUT": 1}, 5, 3.0, False),
        ({"TIMEOUT": 2}, {"TIMEOUT": 4}, 5, 5.0, True),
        ({"TIMEOUT": 1, "ATTEMPTS": 3}, {"TIMEOUT": 1}, 10, 4.3, False),
        ({"TIMEOUT": 1}, {"ENABLED": False}, 5, 1.0, False),
    ],
    ids=["the sum", "the budget", "attempts and their pauses", "enabled ones only"],
)
def test_the_worst_case_is_the_budget_or_the_sum_of_all_calls(
    site: Site, primary: Any, secondary: Any, budget: float, lookup: float, is_cut: bool
) -> None:
    """Whichever is less."""
    site.configure(primary, secondary, BUDGET=budget)
    waits = waits_of(conf.catalog("default"))
    assert (waits.lookup, waits.is_cut) == (pytest.approx(lookup), is_cut)


@pytest.mark.parametrize(("outer", "fits"), [(5.1, True), (5.0, False), (3.0, False)])
def test_the_web_server_has_to_wait_longer(site: Site, outer: float, fits: bool) -> None:
    """As long is too short: it would end the request at the moment of the answer."""
    site.configure({"TIMEOUT": 9}, BUDGET=5, OUTER_TIMEOUT=outer)
    assert waits_of(conf.catalog("default")).fits is fits


def test_the_sum_of_limits_leaves_the_pauses_out(site: Site) -> None:
    """It is what the check compares with BUDGET."""
    site.configure({"TIMEOUT": 1, "ATTEMPTS": 3}, {"TIMEOUT": 1})
    config = conf.catalog("default")
    assert sum_of_limits(config) == 4.0
    assert longest_call(config.sources[0]) == pytest.approx(3.3)


def test_a_lookup_takes_no_longer(site: Site, moving: MovableClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the longest pauses, and sources that never answer."""
    no_jitter(monkeypatch)
    source = {"BACKEND": PATH + "Programmed", "TIMEOUT": 1, "ATTEMPTS": 3, "BREAKER": None}
    site.configure(source, source, BUDGET=60)

    def run(timeout: float) -> NoReply:
        moving.move(timeout)
        return NoReply("timeout")

    monkeypatch.setattr(Programmed, "program", staticmethod(run))
    started_at = clock.monotonic()
    site.find()
    assert clock.monotonic() - started_at == pytest.approx(waits_of(conf.catalog("default")).lookup, abs=0.5)
