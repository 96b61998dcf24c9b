"""Does name resolution end in time, and does a dead name server cost a bounded number of threads?"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from catalog_fallback import clock
from catalog_fallback.sources import resolver
from catalog_fallback.sources.resolver import Resolver

ANSWER = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 80))]


class NameServer:
    """Stands for ``getaddrinfo``: counts questions, and holds them while it is stalled."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.asked = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.go_on.set()
        self.answer: Callable[[], Any] = lambda: ANSWER

    def __call__(self, host: str, *args: Any, **kwargs: Any) -> Any:
        self.questions.append(host)
        self.asked.release()
        self.go_on.wait(10)
        return self.answer()


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    """A name server that the test can stall."""
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server)
    yield server
    server.go_on.set()
    for thread in threading.enumerate():
        if thread.name.startswith("catalog-fallback-resolve"):
            thread.join(10)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, for the test to move."""
    moment = [1000.0]
    monkeypatch.setattr(clock, "monotonic", lambda: moment[0])
    return moment


def seconds(value: float) -> Callable[[], float]:
    """What is left for a call."""
    return lambda: value


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", (socket.AF_INET, ("127.0.0.1", 80))),
        ("::1", (socket.AF_INET6, ("::1", 80, 0, 0))),
    ],
)
def test_ip_addresses_never_reach_the_name_server(name_server: NameServer, host: str, address: Any) -> None:
    """A stalled name server cannot block a source that is configured by its address."""
    assert Resolver().resolve(host, 80, seconds(1)) == (address,)
    assert name_server.questions == []


def test_addresses_are_kept_for_a_short_while(name_server: NameServer, now: list[float]) -> None:
    """A new connection asks the name server only when the last answer is old."""
    resolve = Resolver().resolve
    assert resolve("h.example", 80, seconds(1)) == ((socket.AF_INET, ("192.0.2.1", 80)),)
    now[0] += resolver.KEEP_FOR - 1
    resolve("h.example", 80, seconds(1))
    assert len(name_server.questions) == 1
    now[0] += 2
    resolve("h.example", 80, seconds(1))
    assert len(name_server.questions) == 2


def test_forgotten_addresses_are_asked_for_again(name_server: NameServer) -> None:
    """Addresses that did not answer may have moved."""
    names = Resolver()
    names.resolve("h.example", 80, seconds(1))
    names.forget("h.example", 80)
    names.resolve("h.example", 80, seconds(1))
    assert len(name_server.questions) == 2


@pytest.mark.parametrize(
    "answer",
    [socket.gaierror(socket.EAI_NONAME, "no such host"), UnicodeError("label too long"), OSError("broken")],
    ids=lambda error: type(error).__name__,
)
def test_whatever_goes_wrong_is_a_gaierror_and_is_not_kept(name_server: NameServer, answer: Exception) -> None:
    """A name without an address is asked for anew by the next call."""

    def fail() -> Any:
        raise answer

    names = Resolver()
    name_server.answer = fail
    with pytest.raises(socket.gaierror):
        names.resolve("h.example", 80, seconds(1))
    name_server.answer = lambda: ANSWER
    assert names.resolve("h.example", 80, seconds(1))


def test_an_empty_answer_is_an_error(name_server: NameServer) -> None:
    """There is always an address to connect to."""
    name_server.answer = list
    with pytest.raises(socket.gaierror):
        Resolver().resolve("h.example", 80, seconds(1))


def test_a_stalled_name_server_costs_a_bounded_number_of_slots(name_server: NameServer, now: list[float]) -> None:
    """Each stuck resolution keeps a slot; with all of them busy the next caller is refused at once."""
    names = Resolver()
    name_server.go_on.clear()
    for busy in range(1, resolver.SLOTS_PER_HOST + 1):
        with pytest.raises(TimeoutError):
            names.resolve("dead.example", 80, seconds(0.01))
        assert names.busy_slots() == {"dead.example": busy}
        now[0] += resolver.JOIN_FOR
    with pytest.raises(socket.gaierror, match="busy"):
        names.resolve("dead.example", 80, seconds(60))
    assert len(name_server.questions) == resolver.SLOTS_PER_HOST


def test_one_dead_host_leaves_the_others_alone(name_server: NameServer, now: list[float]) -> None:
    """Slots belong to a host."""
    names = Resolver()
    name_server.go_on.clear()
    for _ in range(resolver.SLOTS_PER_HOST):
        with pytest.raises(TimeoutError):
            names.resolve("dead.example", 80, seconds(0.01))
        now[0] += resolver.JOIN_FOR
    name_server.go_on.set()
    assert names.resolve("alive.example", 80, seconds(5))


def test_slots_come_back_and_a_late_answer_is_used(name_server: NameServer) -> None:
    """What was stuck and answers after all serves the next caller."""
    names = Resolver()
    name_server.go_on.clear()
    with pytest.raises(TimeoutError):
        names.resolve("slow.example", 80, seconds(0.01))
    name_server.go_on.set()
    assert names.resolve("slow.example", 80, seconds(5))
    assert len(name_server.questions) == 1
    assert names.busy_slots() == {}


def test_callers_share_a_resolution_that_has_just_begun(name_server: NameServer) -> None:
    """Many threads that start together need one slot, and none of them is refused."""
    names = Resolver()
    name_server.go_on.clear()
    with ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(names.resolve, "h.example", 80, seconds(5)) for _ in range(16)]
        assert name_server.asked.acquire(timeout=5)
        name_server.go_on.set()
        assert {answer.result() for answer in answers} == {((socket.AF_INET, ("192.0.2.1", 80)),)}
    assert len(name_server.questions) == 1


def test_no_thread_is_left_behind(name_server: NameServer) -> None:
    """The thread of a resolution ends with it."""
    Resolver().resolve("h.example", 80, seconds(5))
    for thread in threading.enumerate():
        if thread.name.startswith("catalog-fallback-resolve"):
            thread.join(5)
            assert not thread.is_alive()


def test_a_process_without_threads_to_spare_refuses(name_server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """That no thread can be started is "could not find out", not a crash, and leaves no slot busy."""

    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    names = Resolver()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(socket.gaierror):
            names.resolve("h.example", 80, seconds(1))
    assert names.busy_slots() == {}


def test_the_number_of_known_hosts_is_bounded(name_server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that asks many hosts does not grow with them."""
    monkeypatch.setattr(resolver, "_MAX_HOSTS", 3)
    names = Resolver()
    for number in range(10):
        names.resolve(f"h{number}.example", 80, seconds(1))
    assert len(names._known) == 3


def test_a_process_has_one_resolver_and_its_child_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks and threads of the parent are of no use after a fork."""
    ours = resolver.of_this_process()
    assert resolver.of_this_process() is ours
    monkeypatch.setattr(resolver, "_resolvers", dict(resolver._resolvers))
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert resolver.of_this_process() is not ours
