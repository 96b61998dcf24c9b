"""Does invalidate_item do what it was told to every ID it can, and does its exit code say what came of it?"""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from catalog_fallback import services
from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.management import item_lines
from catalog_fallback.management.commands import invalidate_item
from catalog_fallback.models import StoppedItem
from catalog_fallback.results import CacheStatus
from tests.admin.site import SwitchedCache
from tests.commands import Runner


def is_kept(item_id: str) -> bool:
    """Whether a lookup is answered from the cache."""
    return services.find_item(item_id).cache is CacheStatus.HIT


@contextmanager
def without_database(error: type[Exception]) -> Iterator[None]:
    """Every query raises."""

    def fail(*_: object) -> Any:
        raise error("no luck")

    with connection.execute_wrapper(fail):
        yield


def test_forgets(run: Runner) -> None:
    """The next lookup asks the sources again; other items stay."""
    for item_id in ("P001", "P002", "P404"):
        services.find_item(item_id)
    done = run("invalidate_item", "P001", "P404")
    assert (done.code, done.out, done.err) == (0, "Catalog default: 2 forgotten.\n", "")
    assert (is_kept("P001"), is_kept("P002")) == (False, True)


@pytest.mark.parametrize("reason", ["withdrawn", "legal", "quality", "other"])
def test_stop(run: Runner, reason: str) -> None:
    """The row says why and where from, and the item is gone."""
    services.find_item("P001")
    done = run("invalidate_item", "--stop", reason, "P001")
    row = StoppedItem.objects.get()
    assert (done.code, done.out) == (0, "Catalog default: 1 stopped.\n")
    assert (row.reason, row.origin, row.is_active) == (reason, "command", True)
    assert services.find_item("P001").is_stopped


def test_stop_with_an_unknown_reason(run: Runner) -> None:
    """Refused before anything happens."""
    done = run("invalidate_item", "--stop", "because", "P001")
    assert "invalid choice: 'because'" in done.message
    assert not StoppedItem.objects.exists()


def test_release(run: Runner) -> None:
    """The row stays, inactive, and the item is back."""
    services.stop_item("P001")
    done = run("invalidate_item", "P001", "--release")
    row = StoppedItem.objects.get()
    assert (done.code, done.out) == (0, "Catalog default: 1 released.\n")
    assert (row.is_active, row.origin) == (False, "command")
    assert services.find_item("P001").is_found


def test_releasing_what_was_not_stopped_says_so(run: Runner) -> None:
    """Nobody is told that an item was released which nobody had stopped; a later event is counted apart."""
    services.stop_item("P001")
    services.stop_item("P003", event_at=timezone.now() + timedelta(hours=1))
    done = run("invalidate_item", "P001", "P002", "P003", "--release")
    assert done.out == (
        "Catalog default: 2 released; 1 were not stopped: there was nothing to release; "
        "1 of them left as they are, because of a later event.\n"
    )
    done = run("invalidate_item", "P001", "P002", "--release")
    assert done.out == "Catalog default: 0 released; 2 were not stopped: there was nothing to release.\n"


def test_a_site_without_time_zones_releases(run: Runner, settings: Any) -> None:
    """The moment of a release is one that its columns take."""
    settings.USE_TZ = False
    assert run("invalidate_item", "P001", "--release").code == 0


def test_a_later_event_is_left(run: Runner) -> None:
    """What is known to have happened later stays, and the result says so."""
    services.stop_items(["P001", "P002"], event_at=timezone.now() - timedelta(hours=1))
    services.stop_item("P001", event_at=timezone.now() + timedelta(hours=1))
    done = run("invalidate_item", "P001", "P002", "--release")
    assert done.code == 0
    assert "1 of them left as they are, because of a later event" in done.out
    assert dict(StoppedItem.objects.values_list("item_id", "is_active")) == {"P001": True, "P002": False}


def test_stop_and_release_exclude_each_other(run: Runner) -> None:
    """One verb a call."""
    assert "not allowed with" in run("invalidate_item", "P001", "--release", "--stop", "legal").message


def test_catalog(run: Runner) -> None:
    """Another catalog has its own IDs and its own stop list."""
    assert run("invalidate_item", "--catalog", "other", "--stop", "legal", "123").code == 0
    assert StoppedItem.objects.get().catalog == "other"
    assert run("invalidate_item", "--catalog", "other", "P001").code == 1


def test_an_unknown_catalog_is_named(run: Runner) -> None:
    """Exit code 1, and what there is."""
    done = run("invalidate_item", "--catalog", "othr", "123")
    assert done.code == 1
    assert 'There is no catalog "othr"' in done.message
    assert "other" in done.message


def test_wrong_settings_are_named(run: Runner, settings: object) -> None:
    """Exit code 1 and the same text that the system check has."""
    settings.CATALOG_FALLBACK = {"default": {}}  # type: ignore[attr-defined]
    done = run("invalidate_item", "P001")
    assert done.code == 1
    assert "CATALOG_FALLBACK" in done.message


@pytest.mark.parametrize(
    "args", [(), ("P001", "--file", "x"), ("P001", "-"), ("-", "P001"), ("-", "--file", "x")], ids=" ".join
)
def test_usage(run: Runner, args: tuple[str, ...]) -> None:
    """No IDs, or two kinds of them."""
    assert run("invalidate_item", *args).code == 2


def test_standard_input(run: Runner) -> None:
    """One ID a line; blanks, empty lines, Windows line ends and a BOM do no harm."""
    services.find_item("P001")
    services.find_item("P002")
    done = run("invalidate_item", "-", stdin=b"\xef\xbb\xbfP001\r\n\n  P002  ")
    assert (done.code, done.out) == (0, "Catalog default: 2 forgotten.\n")
    assert (is_kept("P001"), is_kept("P002")) == (False, False)


def test_file(run: Runner, tmp_path: Path) -> None:
    """The same from a file."""
    path = tmp_path / "ids.txt"
    path.write_text("P001\nP002\n")
    assert run("invalidate_item", "--file", str(path), "--stop", "quality").code == 0
    assert StoppedItem.objects.count() == 2


def test_a_missing_file_is_named(run: Runner, tmp_path: Path) -> None:
    """Exit code 1 and the name."""
    done = run("invalidate_item", "--file", str(tmp_path / "ids.txt"))
    assert done.code == 1
    assert "ids.txt cannot be read: No such file or directory" in done.message


@pytest.mark.parametrize(
    ("line", "text"),
    [
        pytest.param(b"no good", "line 2: 'no good' is no item ID", id="pattern"),
        pytest.param(b"\xff\xfe", "line 2: no UTF-8 text", id="no-text"),
        pytest.param(b"A" * 33, "line 2: 'AAA", id="long"),
        pytest.param(b"A" * 5000, "line 2: no UTF-8 text, or longer than", id="too-long"),
        pytest.param(b"A" * 4096, "line 2: no UTF-8 text, or longer than", id="as-long-as-the-buffer"),
        pytest.param(b"..", "line 2: '..' is no item ID", id="dots"),
        pytest.param(b"\x1b[31m", r"line 2: '\x1b[31m' is no item ID", id="terminal-codes"),
    ],
)
def test_bad_lines_are_reported_and_the_others_done(run: Runner, line: bytes, text: str) -> None:
    """With the line's number, on standard error; exit code 3."""
    done = run("invalidate_item", "-", "--stop", "legal", stdin=b"P001\n" + line + b"\nP002\n")
    assert done.code == 3
    assert done.err.startswith(text)
    assert done.err.count("\n") == 1
    assert done.out == "Catalog default: 2 stopped; 1 are no IDs of this catalog.\n"
    assert StoppedItem.objects.count() == 2


def test_bad_arguments_are_numbered(run: Runner) -> None:
    """The same for IDs of the command line."""
    done = run("invalidate_item", "P001", "no good")
    assert done.code == 3
    assert done.err.startswith("argument 2: ")


@pytest.mark.parametrize("stdin", [b"", b"\n\n", b"no good\n"], ids=["empty", "empty-lines", "only-bad"])
def test_nothing_done(run: Runner, stdin: bytes) -> None:
    """Exit code 1."""
    done = run("invalidate_item", "-", stdin=stdin)
    assert done.code == 1
    assert "Nothing was done" in done.message


def test_dry_run(run: Runner) -> None:
    """Checks the IDs and changes nothing."""
    services.find_item("P001")
    done = run("invalidate_item", "P001", "no good", "--dry-run", "--stop", "legal")
    assert (done.code, done.out) == (3, "Catalog default: 1 would be stopped; 1 are no IDs of this catalog.\n")
    assert is_kept("P001")
    assert not StoppedItem.objects.exists()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param((), {"action": "forget", "done": 2, "changed": None}, id="forget"),
        pytest.param(("--stop", "legal"), {"action": "stop", "done": 2, "changed": 2}, id="stop"),
        pytest.param(("--release",), {"action": "release", "done": 2, "changed": 0, "not_stopped": 2}, id="release"),
        pytest.param(("--dry-run",), {"action": "forget", "done": 2, "dry_run": True}, id="dry-run"),
    ],
)
def test_json(run: Runner, args: tuple[str, ...], expected: dict[str, object]) -> None:
    """One object on standard output, whatever else is said on standard error."""
    done = run("invalidate_item", "P001", "P002", "no good", "--json", *args)
    whole = {"catalog": "default", "dry_run": False, "changed": None, "not_stopped": 0, "invalid": 1}
    whole |= {"not_confirmed": 0, "not_confirmed_by": [], **expected}
    assert json.loads(done.out) == whole


@pytest.mark.parametrize("args", [(), ("--stop", "legal")], ids=["forget", "stop"])
def test_a_cache_that_is_off_is_no_success(run: Runner, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, where it happened, and no traceback; stops are saved all the same."""
    monkeypatch.setattr(SwitchedCache, "is_on", False)
    done = run("invalidate_item", "P001", "P002", *args)
    assert done.code == 1
    assert "argument 1 to argument 2: not confirmed: " in done.err
    assert "2 not confirmed by the cache" in done.out
    assert StoppedItem.objects.filter(published_at=None).count() == (2 if args else 0)


@pytest.mark.parametrize("error", [OperationalError, InterfaceError], ids=["down", "connection-closed"])
@pytest.mark.parametrize(
    ("args", "told"),
    [
        pytest.param((), "the stop list could not be read ({error}).", id="forget"),
        pytest.param(("--stop", "legal"), "the database raised {error}: no luck", id="stop"),
        pytest.param(("--release",), "the database raised {error}: no luck", id="release"),
    ],
)
def test_a_database_that_is_off_is_not_blamed_on_the_cache(
    run: Runner, args: tuple[str, ...], told: str, error: type[Exception]
) -> None:
    """Each message names the database, and it alone; a program can tell, too."""
    with without_database(error):
        done, as_json = run("invalidate_item", "P001", "P002", *args), run("invalidate_item", "P001", "--json", *args)
    assert done.code == 1
    assert "argument 1 to argument 2: not confirmed: " in done.err
    assert told.format(error=error.__name__) in done.err
    assert "2 not confirmed by the database." in done.out
    assert "cache" not in f"{done.out}{done.err}{done.message}"
    assert json.loads(as_json.out)["not_confirmed_by"] == ["database"]


@pytest.mark.parametrize("kind", ["item.deleted", "item.stopped"])
def test_a_notice_names_what_failed(run: Runner, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database for one, the cache for the other."""
    notice = (NOTICE % (kind, "2024-01-02T00:00:00Z")).encode()
    with without_database(OperationalError):
        done = run("invalidate_item", "-", stdin=notice)
    assert (done.code, done.out) == (1, "Catalog default: 0 forgotten; 2 not confirmed by the database.\n")
    assert f"{kind}: not confirmed: " in done.err
    monkeypatch.setattr(SwitchedCache, "is_on", False)
    done = run("invalidate_item", "-", stdin=notice)
    assert (done.code, done.out) == (1, "Catalog default: 0 forgotten; 2 not confirmed by the cache.\n")
    assert f"{kind}: not confirmed: Catalog 'default': the cache 'default' did not confirm" in done.err


def test_both_are_named_where_both_failed(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each for some of the lines."""
    errors = [InvalidationFailed("cache is off"), OperationalError("down")]
    monkeypatch.setattr(services, "invalidate_items", Mock(side_effect=errors))
    monkeypatch.setattr(item_lines.read, "__defaults__", (1,))
    done = run("invalidate_item", "P001", "P002")
    assert done.out == "Catalog default: 0 forgotten; 2 not confirmed by the cache and the database.\n"


def test_one_chunk_that_fails_does_not_end_the_others(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3, and the lines of the chunk that has to be repeated."""

    def sometimes(item_ids: list[str], **arguments: object) -> int:
        if "P2" in item_ids:
            raise InvalidationFailed("cache is off")
        return len(item_ids)

    monkeypatch.setattr(services, "invalidate_items", sometimes)
    monkeypatch.setattr(item_lines.read, "__defaults__", (2,))
    done = run("invalidate_item", "-", stdin=b"P0\nP1\nP2\nP3\nP4\n")
    assert done.code == 3
    assert done.err == "line 3 to line 4: not confirmed: cache is off\n"
    assert done.out == "Catalog default: 3 forgotten; 2 not confirmed by the cache.\n"


class Endless(io.RawIOBase):
    """A stream of so many IDs that is nowhere kept as a whole."""

    def __init__(self, count: int) -> None:
        self.left = count

    def read1(self, size: int | None = -1, /) -> bytes:
        """Make the next lines."""
        count = min(self.left, 5_000)
        self.left -= count
        return b"".join(b"P%09d\n" % (self.left + n) for n in range(count))


def test_a_long_stream_takes_little_memory(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 IDs are never in memory together; progress goes to standard error."""
    largest = 0

    def forget(item_ids: list[str], **arguments: object) -> int:
        nonlocal largest
        largest = max(largest, len(item_ids))
        return len(item_ids)

    monkeypatch.setattr(services, "invalidate_items", forget)
    monkeypatch.setattr(invalidate_item, "PROGRESS", 50_000)
    tracemalloc.start()
    try:
        done = run("invalidate_item", "-", stdin=Endless(100_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (done.code, done.out) == (0, "Catalog default: 100000 forgotten.\n")
    assert done.err == "50000 IDs …\n100000 IDs …\n"
    assert largest == item_lines.CHUNK
    assert peak < 5_000_000


def test_a_line_without_end_takes_little_memory(run: Runner) -> None:
    """A file that is no list of IDs is not read into memory as one line."""

    class Blob(io.RawIOBase):
        left = 1_000

        def read1(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert 0 < size < 1_000_000
            self.left -= 1
            return b"x" * size if self.left > 0 else b""

    tracemalloc.start()
    try:
        done = run("invalidate_item", "-", stdin=Blob())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert done.code == 1
    assert done.err == "line 1: no UTF-8 text, or longer than 4096 bytes.\n"
    assert peak < 5_000_000


# ------------------------------------------------------------------------------------------------ JSON


@pytest.mark.parametrize(
    "line",
    [
        b'"P001"',
        b'{"id": "P001"}',
        b'{"ids": ["P001"], "more": 1}',
        b'{"data": {"id": "P001"}}',
        b'\xef\xbb\xbf  {"id":"P001"}\r',
        b'{"type": "item.deleted", "timestamp": "2024-01-01T00:00:00Z", "data": {"ids": ["P001"]}}',
    ],
    ids=["text", "id", "ids", "data", "blanks", "notice"],
)
def test_lines_of_json(run: Runner, line: bytes) -> None:
    """Whatever a queue holds."""
    services.find_item("P001")
    done = run("invalidate_item", "-", stdin=line + b"\nP002\n")
    assert (done.code, done.out) == (0, "Catalog default: 2 forgotten.\n")
    assert not is_kept("P001")


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"{}",
        b'{"id": 7}',
        b'{"ids": "P001"}',
        b'{"ids": ["P001", 7]}',
        b'{"type": "item.deleted"}',
        b'{"ids": ' + b'["P"' + b', "P"' * 10_000 + b"]}",
    ],
    ids=["broken", "empty", "number", "text-as-list", "numbers", "notice", "too-many"],
)
def test_lines_of_wrong_json(run: Runner, line: bytes) -> None:
    """Reported with their numbers; the others are done."""
    done = run("invalidate_item", "-", stdin=line + b"\nP002\n")
    assert (done.code, done.err[:8], done.err.count("\n")) == (3, "line 1: ", 1)
    assert done.out.startswith("Catalog default: 1 forgotten; 1 are no IDs")


NOTICE = '{"type": "%s", "timestamp": "%s", "data": {"ids": ["P001", "P002"], "reason": "legal"}}\n'


def test_a_whole_notice_says_itself_what_to_do(run: Runner) -> None:
    """In the order of the events, whatever the order of the lines."""
    lines = NOTICE % ("item.released", "2024-01-02T00:00:00Z") + NOTICE % ("item.stopped", "2024-01-01T00:00:00Z")
    lines += NOTICE.replace("P001", "P009") % ("item.stopped", "2024-01-03T00:00:00Z")
    assert run("invalidate_item", "-", stdin=lines.encode()).code == 0
    rows = {row.item_id: (row.is_active, row.origin) for row in StoppedItem.objects.all()}
    assert rows == {"P001": (False, "notice"), "P002": (True, "notice"), "P009": (True, "notice")}


def test_an_option_wins_over_the_type(run: Runner) -> None:
    """``--stop`` stops, whatever the line says of itself."""
    line = NOTICE % ("item.released", "2024-01-02T00:00:00Z")
    assert run("invalidate_item", "-", "--stop", "quality", stdin=line.encode()).code == 0
    assert set(StoppedItem.objects.values_list("is_active", "reason")) == {(True, "quality")}


def test_notices_that_are_not_taken(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown types are named, impossible IDs counted; a cache that is off is no success."""
    lines = NOTICE % ("price.changed", "x") + NOTICE.replace("P002", "no good") % (
        "item.deleted",
        "2024-01-02T00:00:00Z",
    )
    done = run("invalidate_item", "-", stdin=lines.encode())
    assert (done.code, done.out) == (3, "Catalog default: 1 forgotten; 1 are no IDs of this catalog.\n")
    assert "price.changed: ignored" in done.err
    monkeypatch.setattr(SwitchedCache, "is_on", False)
    done = run("invalidate_item", "-", stdin=(NOTICE % ("item.deleted", "2024-01-02T00:00:00Z")).encode())
    assert (done.code, "2 not confirmed by the cache" in done.out) == (1, True)


def test_a_dry_run_of_a_notice(run: Runner) -> None:
    """Counts, and changes nothing."""
    done = run("invalidate_item", "-", "--dry-run", stdin=(NOTICE % ("item.stopped", "2024-01-02T00:00:00Z")).encode())
    assert (done.code, done.out) == (0, "Catalog default: 2 would be forgotten.\n")
    assert not StoppedItem.objects.exists()


def test_ctrl_c_ends_a_pipe_that_never_ends(run: Runner) -> None:
    """What was done is told; no traceback."""

    class Pipe(io.RawIOBase):
        is_read = False

        def read1(self, size: int | None = -1, /) -> bytes:
            if self.is_read:
                raise KeyboardInterrupt
            self.is_read = True
            return b"P001\n"

    done = run("invalidate_item", "-", stdin=Pipe())
    assert (done.code, done.out, done.message) == (3, "Catalog default: 1 forgotten.\n", "Interrupted.")


def test_a_blank_piece_of_a_pipe_is_nothing(run: Runner) -> None:
    """Line ends alone, and a last line without an end."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.pieces = [b"\n\n", b"P0", b"01\nP002"]

        def read1(self, size: int | None = -1, /) -> bytes:
            return self.pieces.pop(0) if self.pieces else b""

    assert run("invalidate_item", "-", stdin=Pipe()).out == "Catalog default: 2 forgotten.\n"


def test_what_follows_a_line_that_is_far_too_long_is_done(run: Runner) -> None:
    """Its end is found, and the numbers stay right."""
    done = run("invalidate_item", "-", stdin=b"P001\n" + b"x" * 200_000 + b"\nP002\nno good\n")
    assert done.out == "Catalog default: 2 forgotten; 2 are no IDs of this catalog.\n"
    assert [line.split(":")[0] for line in done.err.splitlines()] == ["line 2", "line 4"]


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "pipe"])
def test_a_person_is_told_that_the_cache_is_not_shared(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, transactional_db: None
) -> None:
    """With a local-memory cache this command forgets for itself alone; a pipe is not disturbed by saying so."""
    errors = io.StringIO()
    monkeypatch.setattr(errors, "isatty", lambda: is_terminal)
    call_command("invalidate_item", "P001", stdout=io.StringIO(), stderr=errors)
    assert ("belongs to each process alone" in errors.getvalue()) is is_terminal
