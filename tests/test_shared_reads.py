"""Is what one thread reads for others as good as a read of their own?"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from catalog_fallback import turns
from catalog_fallback.shared_reads import AT_ONCE, LOTS, SharedReads, Values
from catalog_fallback.turns import Turns

KEYS = ("gate", "entry")
PATIENCE = 10.0


class Server:
    """Answers with the number of the read; each waits until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.count = 0
        self.ends: dict[int, Values | BaseException] = {}

    def ask(self, keys: tuple[str, ...]) -> Values:
        """Begin a read, and end it as ``ends`` says."""
        self.count += 1
        number = self.count
        self.begun.release()
        assert self.go.acquire(timeout=PATIENCE)
        end = self.ends.get(number, [str(number).encode()])
        if isinstance(end, BaseException):
            raise end
        return end


class Torn(BaseException):
    """What tears a thread out of its work."""


class Readers:
    """Threads that read the same keys."""

    def __init__(self, reads: SharedReads, server: Server) -> None:
        self.reads, self.server = reads, server
        self.threads: list[threading.Thread] = []
        self.found: dict[str, Any] = {}

    def start(self, *names: str, keys: tuple[str, ...] = KEYS) -> None:
        """Let one thread for each name begin."""

        def read(name: str) -> None:
            try:
                self.found[name] = self.reads.read(keys, self.server.ask)
            except Torn as error:
                self.found[name] = error

        for name in names:
            thread = threading.Thread(target=read, args=(name,))
            thread.start()
            self.threads.append(thread)

    def wait_for(self, count: int) -> None:
        """Wait until so many reads have begun since this was last asked."""
        for _ in range(count):
            assert self.server.begun.acquire(timeout=PATIENCE)

    def wait_until_waiting(self, count: int) -> None:
        """Wait until so many wait: for a turn, or for one who waits for a turn."""
        end = time.monotonic() + PATIENCE
        while sum(_waits(frame) for frame in sys._current_frames().values()) < count:
            assert time.monotonic() < end
            time.sleep(0.001)

    def end(self, reads: int) -> None:
        """Let so many reads end, and wait for everybody."""
        for _ in range(reads):
            self.server.go.release()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def _waits(frame: FrameType | None) -> bool:
    """Whether a thread stands in one of the two waits, and reads nothing."""
    names = []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return ("_follow" in names or "take" in names) and "ask" not in names


@pytest.fixture
def readers() -> Iterator[Readers]:
    """Nobody reads yet."""
    them = Readers(SharedReads(), Server())
    yield them
    them.end(100)


def busy(readers: Readers) -> None:
    """As many read these keys as may at once."""
    readers.start(*(f"busy{number}" for number in range(AT_ONCE)))
    readers.wait_for(AT_ONCE)


def test_who_waits_is_served_by_one_read(readers: Readers) -> None:
    """Five threads that come while the keys are being read cost one read, and it begins after all of them came."""
    busy(readers)
    readers.start(*"abcde")
    readers.wait_until_waiting(5)
    readers.end(AT_ONCE + 1)
    assert readers.server.count == AT_ONCE + 1
    assert {name: readers.found[name] for name in "abcde"} == {name: [b"3"] for name in "abcde"}


def test_a_read_that_has_begun_serves_nobody_who_comes_later(readers: Readers) -> None:
    """Who asks while the others' read is under way gets a read of his own."""
    busy(readers)
    readers.start("a", "b")
    readers.wait_until_waiting(2)
    readers.server.go.release()  # one of the busy ones ends, the read of "a" and "b" begins
    readers.wait_for(1)
    readers.start("late")
    readers.wait_until_waiting(2)  # it, and "a" or "b", for whom the other one reads
    readers.end(3)
    assert readers.server.count == AT_ONCE + 2
    assert readers.found["a"] == readers.found["b"] == [b"3"]
    assert readers.found["late"] == [b"4"]


def test_other_keys_are_another_read(readers: Readers) -> None:
    """Nobody is told what stands under somebody else's keys."""
    lot_of = {("gate", str(number)): hash(("gate", str(number))) % LOTS for number in range(1000)}
    other = next(keys for keys, lot in lot_of.items() if lot == hash(KEYS) % LOTS)
    busy(readers)
    readers.start("a")
    readers.start("b", keys=other)
    readers.wait_until_waiting(2)
    readers.end(AT_ONCE + 2)
    assert sorted([readers.found["a"], readers.found["b"]]) == [[b"3"], [b"4"]]


def test_what_could_not_be_read_is_nothing_for_all_who_waited(readers: Readers) -> None:
    """One time-out, and not one for each of them."""
    readers.server.ends[AT_ONCE + 1] = None
    busy(readers)
    readers.start(*"abc")
    readers.wait_until_waiting(3)
    readers.end(AT_ONCE + 1)
    assert readers.server.count == AT_ONCE + 1
    assert [readers.found[name] for name in "abc"] == [None] * 3


def test_who_was_to_be_served_by_one_who_is_torn_away_reads_for_himself(readers: Readers) -> None:
    """An exception from outside hits the reader; the others do not take that for an answer of the cache."""
    readers.server.ends[AT_ONCE + 1] = Torn()
    busy(readers)
    readers.start(*"abc")
    readers.wait_until_waiting(3)
    readers.end(AT_ONCE + 3)
    ends = [readers.found[name] for name in "abc"]
    assert sum(isinstance(end, Torn) for end in ends) == 1
    assert sorted(end for end in ends if not isinstance(end, Torn)) == [[b"4"], [b"5"]]
    assert readers.reads._groups == {}


def test_nobody_waits_for_ever(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that is gone without a word costs one patience, and later ones nothing."""
    monkeypatch.setattr(turns, "PATIENCE", 0.05)
    busy(readers)
    gone = threading.Event()
    readers.reads._lots = (_Gone(gone, 0.3),) * LOTS
    readers.start("a")
    assert gone.wait(PATIENCE)
    readers.start("b")
    readers.wait_for(1)
    assert readers.reads._groups == {}
    readers.end(AT_ONCE + 1)
    assert readers.found["b"] == [b"3"]
    assert isinstance(readers.found["a"], Torn)


def test_who_is_torn_away_while_waiting_leaves_nobody_behind(readers: Readers) -> None:
    """Who comes next leads a group of his own."""
    readers.reads._lots = (_Gone(threading.Event(), 0.0),) * LOTS
    readers.start("a")
    readers.end(0)
    assert isinstance(readers.found["a"], Torn)
    assert readers.reads._groups == {}


class _Gone(Turns):
    """Turns of which none is free; whoever waits for one is torn away in the end."""

    def __init__(self, gone: threading.Event, seconds: float) -> None:
        self._gone, self._seconds = gone, seconds

    def take_free(self) -> None:
        """None is."""

    def take(self) -> int:
        """Hang."""
        self._gone.set()
        time.sleep(self._seconds)
        raise Torn


@pytest.mark.parametrize("busy_parent", [False, True])
def test_a_forked_child_reads_whatever_its_parent_was_in(readers: Readers, busy_parent: bool) -> None:
    """It waits for no thread of its parent's."""
    if busy_parent:
        busy(readers)
        readers.start("a", "b")
        readers.wait_until_waiting(2)

    def read_in_child() -> bool:
        lot, began = readers.reads._lots[hash(KEYS) % LOTS], time.monotonic()
        while lot.take_free() is not None:
            pass
        answers = [readers.reads.read(KEYS, lambda keys: [b"child"]) for _ in range(3)]
        return answers == [[b"child"]] * 3 and time.monotonic() - began < turns.PATIENCE / 2

    assert _in_child(read_in_child)


def _in_child(is_right: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if is_right() else 1)
    end = time.monotonic() + PATIENCE
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        assert time.monotonic() < end, "the child waits for somebody"
        time.sleep(0.01)


class Moving:
    """A server whose content changes all the time."""

    def __init__(self) -> None:
        self.version = self.reads = 0
        self.is_over = threading.Event()

    def change(self) -> None:
        """Go on until it is over."""
        while not self.is_over.is_set():
            self.version += 1
            time.sleep(0.0001)

    def ask(self, keys: tuple[str, ...]) -> Values:
        """What is there now; the reply takes its time."""
        self.reads += 1
        found = str(self.version).encode()
        time.sleep(0.0002)
        return [found]


def test_nobody_is_shown_what_was_over_before_he_asked() -> None:
    """Forty threads at three keys while a writer goes on: no answer is older than its question."""
    reads, server = SharedReads(), Moving()
    pairs: list[tuple[int, Values]] = []

    def read(number: int) -> None:
        for _ in range(50):
            before = server.version
            pairs.append((before, reads.read(("gate", str(number % 3)), server.ask)))

    writer = threading.Thread(target=server.change)
    threads = [threading.Thread(target=read, args=(number,)) for number in range(40)]
    for thread in [writer, *threads]:
        thread.start()
    for thread in threads:
        thread.join(60)
    server.is_over.set()
    writer.join()
    assert len(pairs) == 40 * 50 > server.reads
    assert [(before, values) for before, values in pairs if int(values[0]) < before] == []
    assert reads._groups == {}
