"""Do batches of several processes share what they fetch, and go on when one of them is killed?"""

from __future__ import annotations

from typing import Any

import pytest

from catalog_fallback import leases
from tests import crew as crews
from tests import loopback as wire
from tests.crew import Crew, settle
from tests.sites import Site

pytestmark = pytest.mark.slow

IDS = [f"B{number:03}" for number in range(40)]
#: Seconds that a call may take whose process is killed.
CALL = 3.0


def script(item_id: str) -> wire.Script:
    """The item of an ID."""
    return wire.ok({"item": {"id": item_id, "name": f"Item {item_id}"}})


def test_every_item_is_fetched_once_for_all_processes(crew: Crew, site: Site) -> None:
    """Four batches of the same forty items at the same time: forty calls, and every process has them all."""
    barrier = wire.Barrier()
    for item_id in IDS:
        site.primary.on_id(item_id, script(item_id))
    body = {"item": {"id": IDS[0], "name": f"Item {IDS[0]}"}}
    site.primary.on_id(IDS[0], wire.paused(barrier, at="before the head", body=body))
    crew.start("look_up_many", item_ids=IDS)
    barrier.wait_until_reached(timeout=crews.PATIENCE)
    crew.waiting(len(crew.workers) - 1)
    barrier.release()
    for found in crew.results():
        assert list(found) == IDS
        assert {seen[:2] for seen in found.values()} == {("found", "ok")}
        assert [seen[3] for seen in found.values()] == [f"Item {item_id}" for item_id in IDS]
    assert {site.primary.calls(f"/items/{item_id}") for item_id in IDS} == {1}


def test_a_killed_batch_costs_its_lease_once_not_once_an_item(
    processes: Crew, site: Site, settings: Any, redis_url: str
) -> None:
    """What it was fetching is taken over together: one wait for all, and then side by side."""
    settle(site, processes, settings, redis_url, TIMEOUT=CALL)
    held, ids = wire.Barrier(), IDS[:8]
    for item_id in ids:
        body = {"item": {"id": item_id, "name": f"Item {item_id}"}}
        site.primary.on_id(item_id, wire.paused(held, at="in the body", body=body), script(item_id))
    victim, heir = processes.workers[:2]
    for worker in (victim, heir):
        worker.ask("look_up_many", item_ids=["WARM"], budget=30)
        worker.answer()
    victim.ask("look_up_many", item_ids=ids, budget=30)
    held.wait_until_reached(len(ids), timeout=crews.PATIENCE)
    heir.ask("look_up_many", item_ids=ids, budget=50)
    processes.waiting(1)
    victim.kill()
    held.release()
    found = heir.answer()
    assert {seen[:2] for seen in found.values()} == {("found", "ok")}
    assert {site.primary.calls(f"/items/{item_id}") for item_id in ids} == {2}
    lease, fetches_on_a_busy_machine = CALL + leases.MARGIN, 3.0
    assert max(seen[-1] for seen in found.values()) <= lease + 1 + fetches_on_a_busy_machine
