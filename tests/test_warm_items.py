"""Does warm_items fill the cache inside the sources' limits, say what it does, and go on where it was stopped?"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import DatabaseError, connections

from catalog_fallback import clock, services, warming
from catalog_fallback.conf import catalog
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.management import item_lines, progress
from catalog_fallback.management.interrupting import Interruption
from catalog_fallback.results import Attempt, CacheStatus, Lookup, Outcome, State
from catalog_fallback.warming import Counts, Warming, pace_of
from tests.commands import Run, Runner, runner
from tests.sites import SIMULATED, MovableClock
from tests.test_stop_events import StopListIn

ROOT = Path(__file__).parents[1]
IDS = [f"P{n:04}" for n in range(100)]


@pytest.fixture
def shop(settings: Any) -> Iterator[Callable[..., None]]:
    """A catalog that has everything but a few; its source and itself may be configured anew."""
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "LOCATION": uuid.uuid4().hex,
            "OPTIONS": {"MAX_ENTRIES": 1_000_000},
        }
    }
    options = {"items": dict.fromkeys(IDS, "Tea"), "failing": {"BUSY": 503}}

    def configure(source_keys: dict[str, Any] | None = None, **keys: Any) -> None:
        source = {"BACKEND": SIMULATED, "OPTIONS": options, "BREAKER": None, **(source_keys or {})}
        settings.CATALOG_FALLBACK = {
            "default": {"SOURCES": {"only": source}, "STOP_CHECK": "cache", "TTL": 600, **keys}
        }

    configure()
    yield configure
    cache.clear()


@pytest.fixture
def run(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run a command in this process, outside any transaction."""
    return runner(monkeypatch)


def is_kept(item_id: str) -> bool:
    """Whether a lookup is answered from the cache."""
    return services.find_item(item_id).cache is CacheStatus.HIT


def lines(ids: Sequence[str]) -> bytes:
    """A list on standard input."""
    return "\n".join(ids).encode()


# ------------------------------------------------------------------------------------------------ what it does


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_a_database_connection_that_is_ended_costs_no_more_than_a_slice(
    postgres: str, settings: Any, shop: Any
) -> None:
    """As a restart of the database does; a long run goes on with another one."""
    shop({"RATE_LIMIT": {"CALLS": 1000, "PER": 1}})
    settings.DATABASE_ROUTERS = [StopListIn(postgres)]
    slices: list[int] = []

    def end_it(counts: Counts) -> None:
        slices.append(counts.unavailable)
        if len(slices) == 1:
            with connections[postgres].cursor() as cursor, pytest.raises(DatabaseError):
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    warming = Warming(catalog("default"), limit_rate=200, after_slice=end_it)
    slice_size = warming.pace.at_once
    assert warming.run(IDS)
    assert len(slices) > 2
    assert warming.counts.unavailable <= slice_size
    assert slices[1:] == [slices[1]] * (len(slices) - 1)
    assert warming.counts.found == len(IDS) - warming.counts.unavailable


def test_it_fills_the_cache(run: Runner, shop: Any) -> None:
    """Found items are hits afterwards; the result is on standard output."""
    done = run("warm_items", "-", stdin=lines(IDS))
    assert (done.code, done.out) == (
        0,
        "Catalog default: 100 found, 0 fresh already, 0 not found, 0 unavailable, 0 stopped.\n",
    )
    assert all(is_kept(item_id) for item_id in IDS)


def test_it_says_that_nobody_else_sees_what_it_fetches(run: Runner, shop: Any, settings: Any, tmp_path: Path) -> None:
    """Where each process has a cache of its own, and only there."""
    assert "belongs to each process alone" in run("warm_items", "P001").err
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": str(tmp_path)}
    }
    assert "belongs to each process alone" not in run("warm_items", "P001").err


def test_what_is_fresh_is_skipped(run: Runner, shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one round trip a chunk, and without a lookup."""
    run("warm_items", *IDS[:50])
    asked: list[str] = []
    find_items = services.find_items

    def watched(item_ids: list[str], **how: Any) -> Any:
        asked.extend(item_ids)
        return find_items(item_ids, **how)

    monkeypatch.setattr(services, "find_items", watched)
    done = run("warm_items", *IDS, "--json")
    assert asked == IDS[50:]
    assert json.loads(done.out) == {
        "catalog": "default",
        "fresh": 50,
        "found": 50,
        "not_found": 0,
        "unavailable": 0,
        "stopped": 0,
        "invalid": 0,
    }


def test_what_is_over_is_fetched_again(run: Runner, shop: Any, moving: MovableClock) -> None:
    """An expired entry is not fresh."""
    run("warm_items", "P0001")
    moving.move(601)
    assert "1 found, 0 fresh" in run("warm_items", "P0001").out


def test_what_was_found_out(run: Runner, shop: Any) -> None:
    """Not found and stopped are answers; unavailable is not, and an impossible ID is a mistake."""
    services.stop_item("P0002")
    done = run("warm_items", "-", stdin=b"P0001\nP0002\nNONE\nBUSY\nno good\n")
    assert done.code == 3
    assert "1 found, 0 fresh already, 1 not found, 1 unavailable, 1 stopped; 1 are no IDs" in done.out
    assert "line 5: 'no good' is no item ID" in done.err


@pytest.mark.parametrize("stdin", [b"", b"no good\n", b"BUSY\n"], ids=["empty", "only-bad", "only-unavailable"])
def test_nothing_done(run: Runner, shop: Any, stdin: bytes) -> None:
    """Exit code 1."""
    assert run("warm_items", "-", stdin=stdin).code == 1


def test_a_file_and_a_language(run: Runner, shop: Any, tmp_path: Path) -> None:
    """Each language has its own entry."""
    path = tmp_path / "ids.txt"
    path.write_text("P0001\nP0002\n")
    assert run("warm_items", "--file", str(path), "--language", "de").code == 0
    assert services.find_item("P0001", language="de").cache is CacheStatus.HIT
    assert services.find_item("P0001", language="fr").cache is CacheStatus.MISS


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("P0001", "--limit-rate", "0"),
        ("P0001", "--limit-rate", "x"),
        ("P0001", "--limit-rate", "inf"),
        ("P0001", "--tasks", "--limit-rate", "1"),
        ("P0001", "--language", "é"),
    ],
    ids=" ".join,
)
def test_usage(run: Runner, shop: Any, args: tuple[str, ...]) -> None:
    """Exit code 2, or the parser's own."""
    done = run("warm_items", *args)
    assert done.message
    assert done.code in {1, 2}
    assert not done.out


def test_a_missing_file(run: Runner, shop: Any) -> None:
    """Named."""
    assert "cannot be read: No such file" in run("warm_items", "--file", "/none").message


# ------------------------------------------------------------------------------------------------ pace


@pytest.mark.parametrize("parallel", [1, 4, 8, 1000])
@pytest.mark.parametrize(("calls", "per"), [(1, 1), (3, 1), (10, 60), (100, 60), (1000, 1), (77, 13.5)])
def test_no_window_sees_more_than_the_limit(shop: Any, calls: int, per: float, parallel: int) -> None:
    """Slices at their pace: whatever window of PER seconds one looks at, CALLS is kept."""
    shop({"RATE_LIMIT": {"CALLS": calls, "PER": per}}, MAX_PARALLEL=parallel)
    pace = pace_of(catalog("default"))
    starts = [n * pace.interval for n in range(3 * calls)]
    for begin in starts[:calls]:
        within = sum(pace.at_once for start in starts if begin <= start < begin + per)
        assert within <= calls
    assert pace.per_second <= calls / per


def test_a_pace_of_ones_own(shop: Any) -> None:
    """The slower one counts."""
    shop({"RATE_LIMIT": {"CALLS": 100, "PER": 10}})
    assert pace_of(catalog("default"), 2.5).per_second == pytest.approx(2.5)
    assert pace_of(catalog("default"), 1000).per_second == pytest.approx(7.2)
    assert pace_of(catalog("default"), 0.1).at_once == 1


def test_a_source_that_answers_many_in_one_call(shop: Any) -> None:
    """A call brings as many items as it takes."""
    shop(
        {
            "BACKEND": "catalog_fallback.sources.openbd.OpenBDSource",
            "OPTIONS": {},
            "RATE_LIMIT": {"CALLS": 10, "PER": 10},
        }
    )
    batch_size = _openbd_batch_size()
    pace = pace_of(catalog("default"))
    assert (pace.at_once, pace.per_second) == (batch_size, pytest.approx(0.72 * batch_size))


def _openbd_batch_size() -> int:
    from catalog_fallback.sources.openbd import OpenBDSource  # noqa: PLC0415  # only here

    return OpenBDSource.batch_size


def test_it_keeps_the_pace(run: Runner, shop: Any, moving: MovableClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 items at 6 a second take 17 seconds, in slices; no guard has to refuse a call."""
    shop({"RATE_LIMIT": {"CALLS": 10, "PER": 1}})
    find_items = services.find_items
    tries = 0

    def watched(item_ids: list[str], **how: Any) -> Any:
        nonlocal tries
        tries += len(item_ids)
        return find_items(item_ids, **how)

    monkeypatch.setattr(services, "find_items", watched)
    began = clock.monotonic()
    done = run("warm_items", "-", stdin=lines(IDS))
    assert tries == len(IDS)
    assert done.code == 0
    assert 16 < clock.monotonic() - began < 25
    assert "100 found" in done.out


def test_it_says_beforehand_how_long_it_will_take(
    run: Runner,
    shop: Any,
    tmp_path: Path,
    moving: MovableClock,
) -> None:
    """At the source's limit; without one, that there is none."""
    assert "only of catalog default has no RATE_LIMIT: as fast as it answers." in run("warm_items", "P0001").err
    shop({"RATE_LIMIT": {"CALLS": 60, "PER": 60}})
    path = tmp_path / "ids.txt"
    path.write_bytes(lines(IDS[:10]) + b"\n")
    told = run("warm_items", "--file", str(path)).err
    assert "At most 0.72 items a second, because of source only (RATE_LIMIT)" in told
    assert "10 that are not fresh take 14 s or more" in told
    assert "1,000 that are not fresh take 23 min 9 s or more" in run("warm_items", "P0001").err


def refused_lookup(item_id: str, reason: str = "rate_limited", retry_after: float | None = None) -> Lookup:
    """What a lookup says whose call a guard refused."""
    trace = (Attempt("only", Outcome.TEMPORARY, reason, 0.0, called=False),)
    return Lookup(item_id, "default", State.UNAVAILABLE, "incomplete_search", trace=trace, retry_after=retry_after)


def test_a_refused_call_is_tried_again(
    run: Runner,
    shop: Any,
    moving: MovableClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the time that the guard names; it is not counted as a failure."""
    find_items = services.find_items
    tries = []

    def sometimes(item_ids: list[str], **how: Any) -> Any:
        tries.append(clock.monotonic())
        if len(tries) < 3:
            return {item_id: refused_lookup(item_id, retry_after=30.0) for item_id in item_ids}
        return find_items(item_ids, **how)

    monkeypatch.setattr(services, "find_items", sometimes)
    done = run("warm_items", "P0001", "P0002")
    assert (done.code, "2 found" in done.out, len(tries)) == (0, True, 3)
    assert tries[1] - tries[0] > 29.9


def test_it_ends_when_nobody_can_be_called(
    run: Runner,
    shop: Any,
    moving: MovableClock,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A source that stays away is not a reason to run through a million IDs."""
    asked = 0

    def never(item_ids: list[str], **how: Any) -> Any:
        nonlocal asked
        asked += 1
        return {item_id: refused_lookup(item_id, "circuit_open") for item_id in item_ids}

    monkeypatch.setattr(services, "find_items", never)
    done = run("warm_items", "-", "--resume-file", str(tmp_path / "at"), stdin=lines(IDS * 100))
    assert done.code == 3
    assert asked == warming.TRIES * warming.DEAD_SLICES
    assert "No source can be called after line 0. Run the same command again: it goes on there" in done.message


def test_what_a_guard_refuses_for_real(run: Runner, shop: Any, moving: MovableClock) -> None:
    """The site's visitors have used the source's limit up: it waits until there is room again."""
    shop({"RATE_LIMIT": {"CALLS": 10, "PER": 5}})
    for item_id in IDS[:12]:
        services.find_item(item_id)
    done = run("warm_items", *IDS[:30])
    assert done.code == 0
    assert "0 unavailable" in done.out


# ------------------------------------------------------------------------------------------------ going on


def test_the_resume_file(run: Runner, shop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the last line that is done; a second run begins behind it; it goes when all is done."""
    at = tmp_path / "at.json"
    monkeypatch.setattr(item_lines, "CHUNK", 30)
    done = _stopped_after(70, run, monkeypatch, "--resume-file", str(at))
    assert done.code == 3
    assert "Interrupted after line 60. Run the same command again: it goes on there" in done.message
    assert json.loads(at.read_text()) == {"catalog": "default", "language": None, "lines": 60}
    again = run("warm_items", "-", "--resume-file", str(at), "--json", stdin=lines(IDS))
    assert json.loads(again.out)["found"] + json.loads(again.out)["fresh"] == 40
    assert not at.exists()


def _stopped_after(count: int, run: Runner, monkeypatch: pytest.MonkeyPatch, *args: str) -> Run:
    """Run until so many items are asked for; then SIGINT comes."""
    find_items = services.find_items
    asked = 0

    def watched(item_ids: list[str], **how: Any) -> Any:
        nonlocal asked
        asked += len(item_ids)
        found = find_items(item_ids, **how)
        if asked >= count:
            os.kill(os.getpid(), signal.SIGINT)
        return found

    with monkeypatch.context() as watching:
        watching.setattr(services, "find_items", watched)
        return run("warm_items", "-", *args, stdin=lines(IDS))


def test_sigint_finishes_the_batch(run: Runner, shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was asked for is kept, the result is printed, and how to go on."""
    before = signal.getsignal(signal.SIGINT)
    done = _stopped_after(1, run, monkeypatch, "--limit-rate", "10")
    assert done.code == 3
    assert "10 found" in done.out
    assert "what is fresh is skipped, or use --resume-file" in done.message
    assert is_kept("P0000")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_sigint_ends_it_at_once() -> None:
    """As without this package."""
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        assert interruption.is_asked()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_sigint_while_it_waits_for_input_ends_it() -> None:
    """There is nothing to finish."""
    with Interruption() as interruption, pytest.raises(KeyboardInterrupt), interruption.while_waiting():
        os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_while_it_waits_for_input(run: Runner, shop: Any) -> None:
    """A pipe that never ends is ended so; what was done is told."""

    class Pipe(io.RawIOBase):
        is_read = False
        waits_on = False

        def read1(self, size: int = -1, /) -> bytes:
            if self.is_read:
                os.kill(os.getpid(), signal.SIGINT)
                self.waits_on = True
            self.is_read = True
            return b"P0001\n"

    pipe = Pipe()
    done = run("warm_items", "-", stdin=pipe)
    assert not pipe.waits_on
    assert (done.code, "1 found" in done.out) == (3, True)
    assert "Interrupted after line 1." in done.message


def test_another_thread_takes_no_signals(shop: Any) -> None:
    """Only the main thread may; elsewhere Ctrl-C does what it does anyway."""
    found = []

    def enter() -> None:
        with Interruption() as interruption:
            found.append(interruption.is_asked())

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert (found, signal.getsignal(signal.SIGINT)) == ([False], before)


def test_text_in_place_of_bytes(run: Runner, shop: Any) -> None:
    """A stream of text has no bytes below it."""
    assert "2 found" in run("warm_items", "-", stdin=io.StringIO("P0001\n\n\nP0002")).out


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"\xff", b'{"catalog": "other", "language": null, "lines": 3}'], ids=str
)
def test_a_wrong_resume_file(run: Runner, shop: Any, tmp_path: Path, content: bytes) -> None:
    """Refused before anything is done: a typo must not skip half a list."""
    path = tmp_path / "at.json"
    path.write_bytes(content)
    done = run("warm_items", "P0001", "--resume-file", str(path))
    assert done.code == 1
    assert not is_kept("P0001")


def test_a_resume_file_that_cannot_be_written(run: Runner, shop: Any) -> None:
    """Named."""
    assert "/none/at cannot be written" in run("warm_items", "P0001", "--resume-file", "/none/at").message


def test_a_line_with_many_ids_is_done_or_not(shop: Any) -> None:
    """A chunk that ends within a line does not say that the line is done."""
    stream = io.BytesIO(b'P0001\n{"ids": ["P0002", "P0003", "P0004"]}\nP0005\n')
    given = [each for arrived in _arrived(stream) for each in arrived]
    chunks = list(item_lines._chunks(given, catalog("default"), 2, "line"))
    assert [(list(chunk.item_ids), chunk.until) for chunk in chunks] == [
        (["P0001", "P0002"], 1),
        (["P0003", "P0004"], 2),
        (["P0005"], 3),
    ]


def _arrived(stream: io.BytesIO) -> Iterator[list[item_lines.Given]]:
    for number, line in enumerate(next(item_lines._arrivals(stream)), 1):
        yield item_lines._of_line(number, line, takes_notices=False)


# ------------------------------------------------------------------------------------------------ progress


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_progress_on_a_terminal_renews_one_line(moving: MovableClock) -> None:
    """With rate and what is left; nothing stays of it at the end."""
    from django.core.management.base import OutputWrapper  # noqa: PLC0415  # only here

    screen = Screen()
    shown = progress.Progress(OutputWrapper(screen), 1000)
    moving.move(10)
    shown.show(100, "99 found")
    shown.show(101, "too soon")
    shown.end()
    text = screen.getvalue()
    assert "\r\x1b[K100 of 1,000 lines, 10.0 a second, 1 min 30 s left; 99 found" in text
    assert ("too soon" not in text, "\n" not in text, text.endswith("\r\x1b[K")) == (True, True, True)


def test_progress_elsewhere_is_plain_lines(moving: MovableClock) -> None:
    """Now and then, for a log."""
    from django.core.management.base import OutputWrapper  # noqa: PLC0415  # only here

    log = io.StringIO()
    shown = progress.Progress(OutputWrapper(log), None, done=50)
    for done in (60, 70, 80):
        moving.move(20)
        shown.show(done, "fine")
    shown.end()
    assert log.getvalue() == "70 lines, 0.5 a second; fine\n"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (6660, "1 h 51 min"), (90_000, "1 d 1 h")],
)
def test_durations(seconds: float, words: str) -> None:
    """As people say them."""
    assert progress.duration(seconds) == words


# ------------------------------------------------------------------------------------------------ size


def test_a_million_ids_from_standard_input_take_little_memory(tmp_path: Path) -> None:
    """Under 100 MB for the whole process; all of them are fresh here, so that it takes seconds and not hours."""
    code = textwrap.dedent(
        """
        import os, re
        from django.conf import settings
        import django
        settings.configure(
            INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "catalog_fallback"], USE_TZ=True,
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
            CATALOG_FALLBACK={"default": {"SOURCES": {"only": {"BACKEND": BACKEND}}}},
        )
        django.setup()
        from django.core.management import call_command
        from catalog_fallback import warming
        warming._is_fresh = lambda kept, now: True
        call_command("warm_items", "-", "--json")
        status = open("/proc/self/status").read() if os.path.exists("/proc/self/status") else ""
        print((re.findall(r"VmHWM:\\s+(\\d+) kB", status) or ["0"])[0])
        """
    ).replace("BACKEND}", f'"{SIMULATED}"}}')
    path = tmp_path / "ids"
    with path.open("w") as file:
        file.writelines(f"P{n:09}\n" for n in range(1_000_000))
    with path.open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=stdin, capture_output=True, check=True, cwd=ROOT, timeout=110
        )
    result, kilobytes = done.stdout.decode().split("\n")[:2]
    assert json.loads(result)["fresh"] == 1_000_000
    assert int(kilobytes) < 100_000


def test_what_comes_in_is_done_as_it_comes(shop: Any, transactional_db: None) -> None:
    """A pipe that never ends: a line is handled when it is there, not when a thousand are."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as stream, os.fdopen(write_end, "wb", buffering=0) as pipe:
        arrivals = item_lines._arrivals(stream)
        for line in (b"P0001\n", b"P0002\nP0003\nP00"):
            pipe.write(line)
            whole = next(arrivals)
            assert whole == line.rpartition(b"\n")[0].split(b"\n")
        pipe.write(b"04\n")
        assert next(arrivals) == [b"P0004"]


def test_counts() -> None:
    """All states add up."""
    counts = Counts()
    for state in State:
        counts.add(Lookup("P1", "default", state, "x"))
    assert counts.total == len(State)


def test_a_refresh_asks_for_everything(shop: Any, transactional_db: None) -> None:
    """Fresh or not."""
    services.find_item("P0001")
    fresh_at = services.find_item("P0001").fetched_at
    time.sleep(0)
    run_of_it = Warming(catalog("default"), is_refresh=True)
    assert run_of_it.run(["P0001"])
    again = services.find_item("P0001").fetched_at
    assert (run_of_it.counts.found, run_of_it.counts.fresh) == (1, 0)
    assert fresh_at is not None
    assert again is not None
    assert again > fresh_at


def test_ids_in_another_spelling_are_one(run: Runner, shop: Any) -> None:
    """The catalog's normal form counts."""
    shop(NORMALIZE_ID=str.upper)
    assert "1 found" in run("warm_items", "p0001", "P0001").out
    with pytest.raises(InvalidItemID):
        catalog("default").clean_id("no good")
