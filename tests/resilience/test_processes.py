"""Does it hold with real processes and a real server? Herds at half-open, killed probers, boots, hammered limits."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from catalog_fallback.configuration import BreakerConfig, RateLimitConfig
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.resilience.refusal import Refusal
from tests.resilience import crowd
from tests.resilience.redis_store import RedisStore

spawn = multiprocessing.get_context("spawn")
Start = Callable[..., BaseProcess]


@pytest.fixture
def alias() -> str:
    """A guard that no other test knows."""
    return uuid.uuid4().hex


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process that ends with the test at the latest."""
    running: list[BaseProcess] = []

    def begin(target: Callable[..., None], *args: Any) -> BaseProcess:
        process = spawn.Process(target=target, args=args, daemon=True)
        process.start()
        running.append(process)
        return process

    yield begin
    for process in running:
        process.join(0 if process.exitcode is None else crowd.PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()


def let_it_open(redis_url: str, alias: str, config: BreakerConfig) -> None:
    """One failure opens it."""
    permit = crowd.guard_over(redis_url, alias, breaker=config).take()
    assert isinstance(permit, Permit)
    permit.fail()


def wait_until_its_time_is_over(redis_url: str, alias: str, config: BreakerConfig) -> None:
    """Look until it is no longer refused; looking takes nothing."""
    guarded = crowd.guard_over(redis_url, alias, breaker=config)
    while guarded.look(guarded.stores.read((guarded,))) is not None:
        time.sleep(0.02)


def keys_of(redis_url: str, alias: str) -> dict[bytes, tuple[Any, int]]:
    """What the server holds for a guard, with the milliseconds that each key has to live."""
    client = RedisStore(redis_url).client
    keys = client.keys(f"*{alias}*")
    return {key: (client.get(key), client.pttl(key)) for key in keys}


@pytest.mark.slow
@pytest.mark.parametrize("half_open_calls", [1, 3])
def test_zealphp_255_a_herd_at_half_open(redis_url: str, alias: str, start: Start, half_open_calls: int) -> None:
    """4 processes × 25 threads at the same moment: exactly HALF_OPEN_CALLS get through."""
    config = BreakerConfig(1, None, open_for=1, half_open_calls=half_open_calls, successes_to_close=half_open_calls)
    alias = alias[:30]
    together, leave, admitted = spawn.Barrier(5), spawn.Event(), spawn.Queue()
    processes = [start(crowd.probing, redis_url, alias, config, together, leave, admitted) for _ in range(4)]
    let_it_open(redis_url, alias, config)
    wait_until_its_time_is_over(redis_url, alias, config)
    together.wait(crowd.PATIENCE)
    answers = [admitted.get(timeout=crowd.PATIENCE) for _ in range(100)]
    leave.set()
    for process in processes:
        process.join(crowd.PATIENCE)
    assert sum(answers) == half_open_calls
    guarded = crowd.guard_over(redis_url, alias, breaker=config)
    assert guarded.status(guarded.stores.read((guarded,))).state == "closed"


@pytest.mark.slow
def test_pyfailsafe_31_a_killed_prober(redis_url: str, alias: str, start: Start) -> None:
    """SIGKILL within the probe: the next one gets through when the slot has expired, not before, not never."""
    config = BreakerConfig(1, None, open_for=1)
    has_probe = spawn.Event()
    let_it_open(redis_url, alias, config)
    wait_until_its_time_is_over(redis_url, alias, config)
    prober = start(crowd.probe_for_ever, redis_url, alias, config, 0.001, has_probe)
    assert has_probe.wait(crowd.PATIENCE)
    assert prober.pid is not None
    os.kill(prober.pid, signal.SIGKILL)
    prober.join()
    guarded = crowd.guard_over(redis_url, alias, breaker=config)
    refusal = guarded.take()
    assert isinstance(refusal, Refusal)
    (slot,) = [life for key, (_, life) in keys_of(redis_url, alias).items() if b":slot:" in key]
    assert 0 < slot <= 6000
    time.sleep(slot / 1000 + 0.05)
    permit = guarded.take()
    assert isinstance(permit, Permit)
    permit.succeed()


@pytest.mark.slow
def test_pybreaker_24_processes_that_start_while_it_is_open(redis_url: str, alias: str, start: Start) -> None:
    """Thirty-two new processes see it open, and neither a key nor the end of its time changes."""
    config = BreakerConfig(1, None, open_for=300)
    let_it_open(redis_url, alias, config)
    refused = spawn.Queue()
    before, began = keys_of(redis_url, alias), time.monotonic()
    for _ in range(8):
        batch = [start(crowd.boot, redis_url, alias, config, refused) for _ in range(4)]
        for process in batch:
            process.join(crowd.PATIENCE)
    assert [refused.get(timeout=crowd.PATIENCE) for _ in range(32)] == [(True, "open")] * 32
    after, passed = keys_of(redis_url, alias), (time.monotonic() - began) * 1000
    assert {key: value for key, (value, _) in after.items()} == {key: value for key, (value, _) in before.items()}
    assert all(before[key][1] - passed - 500 <= life <= before[key][1] for key, (_, life) in after.items())


@pytest.mark.slow
def test_pybreaker_44_failures_of_processes_at_once(redis_url: str, alias: str, start: Start) -> None:
    """Four processes pass the threshold together: it opens once, and one listener is told."""
    config = BreakerConfig(10, None, open_for=300)
    together, told = spawn.Barrier(4), spawn.Queue()
    for _ in range(4):
        start(crowd.fail, redis_url, alias, config, 16, together, told)
    changes = [change for _ in range(4) for change in told.get(timeout=crowd.PATIENCE)]
    assert changes == [("closed", "open", "consecutive_failures")]
    assert all(life > 0 for _, life in keys_of(redis_url, alias).values())


@pytest.mark.slow
def test_limits_120_a_hammered_limit(redis_url: str, alias: str, start: Start) -> None:
    """Eight processes ask as fast as they can: no window of PER, wherever it begins, sees more than CALLS starts."""
    limit = RateLimitConfig(calls=15, per=1.0)
    together, starts = spawn.Barrier(8), spawn.Queue()
    for _ in range(8):
        start(crowd.hammer, redis_url, alias, limit, 6.0, together, starts)
    moments = sorted(moment for _ in range(8) for moment in starts.get(timeout=crowd.PATIENCE))
    most = max(sum(first <= moment <= first + limit.per for moment in moments) for first in moments)
    assert most <= limit.calls
    assert len(moments) >= 2 * limit.calls
    assert all(life > 0 for _, life in keys_of(redis_url, alias).values())
