"""Is the address found that answers, inside one limit for all of them?"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from catalog_fallback.sources import connecting
from catalog_fallback.sources.resolver import Address

DEAD_HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")


@pytest.fixture
def dead() -> Iterator[list[Address]]:
    """Four addresses at which nobody ever answers a connection (their queue is full)."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("", 0), backlog=1))
        port = listener.getsockname()[1]
        for host in DEAD_HOSTS * 4:
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex((host, port))
        probe = stack.enter_context(socket.socket())
        probe.settimeout(0.1)
        with pytest.raises(TimeoutError):
            probe.connect((DEAD_HOSTS[0], port))
        yield [(socket.AF_INET, (host, port)) for host in DEAD_HOSTS]


@pytest.fixture
def alive() -> Iterator[Address]:
    """An address that answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield socket.AF_INET, listener.getsockname()


@pytest.fixture
def refusing() -> Address:
    """An address that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return socket.AF_INET, listener.getsockname()


class Limit:
    """What is left of a number of seconds from now on."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    def __call__(self) -> float:
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def test_f3_urllib3_2055_requests_5450_four_dead_addresses_share_one_limit(dead: list[Address]) -> None:
    """The limit is not multiplied by the number of addresses."""
    elapsed = []
    for _ in range(3):
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            connecting.connect(dead, Limit(0.3))
        elapsed.append(time.monotonic() - started)
    assert 0.3 <= min(elapsed) < 0.35


def test_h50_requests_5773_the_live_address_behind_dead_ones_is_reached(dead: list[Address], alive: Address) -> None:
    """Each dead address delays the next one by a fraction of a second only."""
    started = time.monotonic()
    with connecting.connect([*dead, alive], Limit(5)) as connected:
        assert connected.getpeername() == alive[1]
    assert time.monotonic() - started < len(dead) * connecting.STAGGER + 1


def test_a_refusing_address_delays_nobody(refusing: Address, alive: Address) -> None:
    """After a refusal the next address is tried at once."""
    with connecting.connect([refusing] * 20 + [alive], Limit(connecting.STAGGER * 5)) as connected:
        assert connected.getpeername() == alive[1]


def test_a_slow_address_may_still_win(dead: list[Address], refusing: Address) -> None:
    """The earlier attempts go on while later ones fail, until the limit."""
    with pytest.raises(TimeoutError):
        connecting.connect([dead[0], refusing], Limit(0.3))


def test_only_refusals_end_at_once(refusing: Address) -> None:
    """Nobody waits for a limit when every address has said no."""
    with pytest.raises(ConnectionRefusedError):
        connecting.connect([refusing, refusing], Limit(60))


def test_an_impossible_address_is_passed_over(alive: Address) -> None:
    """A family without support and an address without a route are no reason to give up."""
    impossible: list[Address] = [
        (socket.AF_INET, ("255.255.255.255", 80)),
        (socket.AF_INET6, ("not an address", 80)),
        (9999, ("x", 80)),  # type: ignore[list-item]  # a family that this machine does not have
    ]
    with connecting.connect([*impossible, alive], Limit(5)) as connected:
        assert connected.getpeername() == alive[1]
    with pytest.raises(OSError, match=r"."):
        connecting.connect(impossible, Limit(5))


def test_no_address_at_all_is_an_error() -> None:
    """An empty list does not wait."""
    with pytest.raises(OSError, match="no address"):
        connecting.connect([], Limit(60))


def test_the_losers_are_closed(dead: list[Address], alive: Address) -> None:
    """A won race leaves one socket open (an open one left behind would warn, and warnings are errors)."""
    connecting.connect([dead[0], alive], Limit(5)).close()


def test_options_are_set_before_connecting(alive: Address) -> None:
    """The options of urllib3 (no delay) reach the socket, which ends up with a timeout."""
    with connecting.connect([alive], Limit(5), [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]) as connected:
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert 0 < (connected.gettimeout() or 0) <= 5
