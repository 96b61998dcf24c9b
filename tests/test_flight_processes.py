"""Does one fetch serve all processes on one real cache, whatever becomes of the one that fetches?"""

from __future__ import annotations

from typing import Any

import pytest
import redis

from catalog_fallback import leases, services
from catalog_fallback.waiting import POLL
from tests import crew as crews
from tests import loopback as wire
from tests.crew import DJANGO_REDIS, Crew, Seen, settle
from tests.sites import ITEM, NOT_FOUND, Site

pytestmark = pytest.mark.slow

PROCESSES, THREADS = 4, 25
CALLERS = PROCESSES * THREADS
#: Seconds that a call may take whose process is killed.
CALL = 3.0
BACKENDS = [DJANGO_REDIS, "django.core.cache.backends.redis.RedisCache"]
NEW = {"id": "P001", "name": "New"}


def together(crew: Crew, site: Site, barrier: wire.Barrier, **arguments: Any) -> list[Seen]:
    """All of them ask at the same moment; the upstream answers when all the others wait."""
    crew.start("look_up", item_id="P001", threads=THREADS, **arguments)
    barrier.wait_until_reached(timeout=crews.PATIENCE)
    crew.waiting(CALLERS - 1)
    barrier.release()
    return [seen for result in crew.results() for seen in result]


def answers(seen: list[Seen]) -> set[tuple[str, str]]:
    """The different states and reasons."""
    return {each[:2] for each in seen}


@pytest.mark.parametrize("backend", BACKENDS, ids=["django-redis", "Django's own"])
@pytest.mark.parametrize("has_gate", [False, True], ids=["no gate", "gate"])
def test_one_call_for_a_hundred_callers(
    processes: Crew, site: Site, settings: Any, redis_url: str, backend: str, has_gate: bool
) -> None:
    """Four processes with 25 threads each: the upstream is asked exactly once, and everybody has the item."""
    settle(site, processes, settings, redis_url, backend=backend)
    if has_gate:
        services.invalidate_item("P001")
    barrier = wire.Barrier()
    site.say(wire.paused(barrier, at="before the head", body={"item": ITEM}))
    seen = together(processes, site, barrier)
    assert (len(seen), answers(seen), site.calls) == (CALLERS, {("found", "ok")}, (1, 0))


ENDS: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "not found": ({"body": {"item": None}}, ("not_found", "all_not_found")),
    "temporary": ({"status": 503}, ("unavailable", "incomplete_search")),
    "stop": ({"status": 403}, ("unavailable", "http_403")),
}


@pytest.mark.parametrize("case", ENDS)
def test_rueidis_1014_an_end_that_is_not_kept_is_shared_too(crew: Crew, site: Site, case: str) -> None:
    """One call of each source for everybody, and the same reason everywhere: nobody fetches one after the other."""
    script, expected = ENDS[case]
    barrier = wire.Barrier()
    site.say(wire.paused(barrier, at="before the head", **script), NOT_FOUND)
    seen = together(crew, site, barrier)
    assert (len(seen), answers(seen)) == (CALLERS, {expected})
    assert site.calls[0] == 1


def test_what_may_not_be_stored_is_fetched_once_a_process(crew: Crew, site: Site) -> None:
    """Shared inside a process; the other processes fetch for themselves, all at the same time."""
    first, others = wire.Barrier(), wire.Barrier()
    no_store = {"body": {"item": ITEM}, "headers": {"Cache-Control": "no-store"}}
    scripts = (wire.paused(barrier, at="before the head", **no_store) for barrier in (first, others))
    site.primary.on_id("P001", *scripts)
    crew.start("look_up", item_id="P001", threads=THREADS)
    first.wait_until_reached(timeout=crews.PATIENCE)
    crew.waiting(CALLERS - 1)
    first.release()
    others.wait_until_reached(PROCESSES - 1, timeout=crews.PATIENCE)
    others.release()
    seen = [each for result in crew.results() for each in result]
    assert (len(seen), answers(seen), site.calls[0]) == (CALLERS, {("found", "ok")}, PROCESSES)


# --- the process that fetches is killed -----------------------------------------------------------------------------


def kill_in_body(crew: Crew, site: Site) -> None:
    """The first process is killed while the body of its call is under way, and the others wait for it."""
    barrier = wire.Barrier()
    body = {"item": ITEM}
    site.primary.on_id("P001", wire.paused(barrier, at="in the body", body=body), wire.ok(body))
    crew.workers[0].ask("look_up", item_id="P001")
    barrier.wait_until_reached(timeout=crews.PATIENCE)
    crew.workers[1].ask("look_up", item_id="P001", threads=5)
    crew.waiting(5)
    crew.workers[0].kill()
    barrier.release()


def test_symfony_59191_a_killed_owner_costs_what_its_lease_had_to_live(
    processes: Crew, site: Site, settings: Any, redis_url: str
) -> None:
    """Then one of those who wait takes over: one poll, one fetch, and everybody has the item (H12)."""
    settle(site, processes, settings, redis_url, TIMEOUT=CALL)
    kill_in_body(processes, site)
    seen = processes.workers[1].answer()
    assert (len(seen), answers(seen), site.calls[0]) == (5, {("found", "ok")}, 2)
    lease, poll, fetch_on_a_busy_machine = CALL + leases.MARGIN, POLL[1], 3.0
    assert max(each[-1] for each in seen) <= lease + 1 + poll + fetch_on_a_busy_machine


def test_who_has_less_time_than_that_ends_with_his_budget(
    processes: Crew, site: Site, settings: Any, redis_url: str
) -> None:
    """Unavailable, neither a hang nor "not found"; and nobody else was called for it."""
    settle(site, processes, settings, redis_url, BUDGET=1.5)
    kill_in_body(processes, site)
    seen = processes.workers[1].answer()
    assert (answers(seen), site.calls[0]) == ({("unavailable", "deadline")}, 1)
    assert min(each[-1] for each in seen) < 2.5


def test_b10_a_killed_process_leaves_nothing_that_lives_for_ever(
    processes: Crew, site: Site, settings: Any, redis_url: str
) -> None:
    """Lease, gate and entry all have an expiry (laravel flexible, redbeat 212)."""
    settle(site, processes, settings, redis_url, TIMEOUT=CALL)
    kill_in_body(processes, site)
    server = redis.Redis.from_url(redis_url)
    prefix = settings.CACHES["default"]["KEY_PREFIX"]
    keys = server.keys(f"{prefix}:*")
    assert any(b":l:" in key for key in keys), "the lease of the killed process"
    assert [key for key in keys if server.pttl(key) < 0] == []
    processes.workers[1].answer()


# --- an invalidation meanwhile --------------------------------------------------------------------------------------


def test_hindsight_2315_nobody_joins_a_flight_from_before_an_invalidation(crew: Crew, site: Site) -> None:
    """It is another flight, with another lease; what the old one brings is its caller's and is not kept (H23, D1)."""
    barrier = wire.Barrier()
    old = wire.paused(barrier, at="before the head", body={"item": ITEM})
    site.primary.on_id("P001", old, wire.ok({"item": NEW}))
    crew.workers[0].ask("look_up", item_id="P001")
    barrier.wait_until_reached(timeout=crews.PATIENCE)
    services.invalidate_item("P001")
    crew.workers[1].ask("look_up", item_id="P001")
    assert [each[3] for each in crew.workers[1].answer()] == ["New"]
    barrier.release()
    assert [each[3] for each in crew.workers[0].answer()] == ["Tea"]
    crew.workers[2].ask("look_up", item_id="P001")
    (seen,) = crew.workers[2].answer()
    assert (seen[2], seen[3], site.calls[0]) == ("hit", "New", 2)


def test_b14_a_stop_meanwhile_wins(crew: Crew, site: Site) -> None:
    """Whoever waited reads the cache again, and finds the item stopped."""
    barrier = wire.Barrier()
    site.say(wire.paused(barrier, at="before the head", body={"item": ITEM}))
    crew.workers[0].ask("look_up", item_id="P001")
    barrier.wait_until_reached(timeout=crews.PATIENCE)
    crew.workers[1].ask("look_up", item_id="P001", threads=5)
    crew.waiting(5)
    services.stop_item("P001")
    assert answers(crew.workers[1].answer()) == {("stopped", "stopped")}
    barrier.release()
    assert answers(crew.workers[0].answer()) == {("stopped", "stopped")}
    assert site.calls[0] == 1
