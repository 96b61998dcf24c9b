"""Can a newcomer read what lookup_item says, and a script its exit code?"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from catalog_fallback import services
from catalog_fallback.management.printing import aligned, harmless_pipe, plain
from catalog_fallback.results import Attempt, Lookup, Outcome, State
from tests.commands import Runner

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("item_ids", "code", "text"),
    [
        pytest.param(["P001"], 0, "state        found", id="found"),
        pytest.param(["P404"], 4, "not found: every source says", id="not-found"),
        pytest.param(["BUSY"], 5, "unavailable: it could not be found out", id="unavailable"),
        pytest.param(["P002"], 6, "stopped: the item is on the stop list", id="stopped"),
        pytest.param(["P001", "P404"], 4, "P404 in catalog default", id="found-and-not-found"),
        pytest.param(["BUSY", "P404", "P001"], 5, "P001 in catalog default", id="highest-first"),
        pytest.param(["P001", "P002", "BUSY"], 6, "BUSY in catalog default", id="highest-in-the-middle"),
    ],
)
def test_exit_codes(run: Runner, item_ids: list[str], code: int, text: str) -> None:
    """Each state has its own; of several IDs the highest counts, and all are shown."""
    services.stop_item("P002")
    done = run("lookup_item", *item_ids)
    assert (done.code, done.err) == (code, "")
    assert text in done.out


def test_what_is_shown(run: Runner) -> None:
    """The answer first, then the item, then who was asked; columns are aligned."""
    out = run("lookup_item", "P001").out
    out = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "MOMENT", out)
    assert re.sub(r"\d+\.\d ms", "TIME ms", out) == (
        "P001 in catalog default\n"
        "  state        found\n"
        "  reason       ok\n"
        "  cache        miss: the cache had no answer\n"
        "  source       only\n"
        "  fetched      MOMENT\n"
        "  fresh until  MOMENT\n"
        "\n"
        "  Item\n"
        "    id    P001\n"
        "    name  Tea\n"
        "\n"
        "  Asked, in this order\n"
        "    SOURCE  OUTCOME  REASON  TIME\n"
        "    only    found    ok      TIME ms\n"
    )


def test_a_hit_and_refresh(run: Runner) -> None:
    """A kept answer says that nobody was asked; --refresh asks."""
    run("lookup_item", "P001")
    assert "hit: kept from an earlier answer, nobody was asked" in run("lookup_item", "P001").out
    assert "Asked, in this order" in run("lookup_item", "P001", "--refresh").out


def test_the_cache_is_not_blamed_for_a_stop(run: Runner) -> None:
    """Whether it had the item or not: the stop list decides; kept as "stopped" it is a hit."""
    run("lookup_item", "P001")
    services.stop_item("P001")
    first, second = run("lookup_item", "P001").out, run("lookup_item", "P001").out
    assert "  cache   not used: the stop list in the database says so, and nobody was asked\n" in first
    assert "  cache        hit: kept from an earlier answer, nobody was asked\n" in second
    assert "Tea" not in first + second


def test_json(run: Runner) -> None:
    """One object a line, with the field names of Lookup."""
    done = run("lookup_item", "P001", "P404", "--json")
    found, missing = (json.loads(line) for line in done.out.splitlines())
    assert done.code == 4
    assert (found["state"], found["item"]["name"], found["trace"][0]["source"]) == ("found", "Tea", "only")
    assert (missing["state"], missing["item"]) == ("not_found", None)


def test_explain_asks_nobody(run: Runner) -> None:
    """What a lookup would meet; afterwards nothing is kept."""
    done = run("lookup_item", "P001", "--explain")
    assert done.code == 0
    assert done.out == (
        "P001 in catalog default\n"
        "  on the stop list  no\n"
        "  in the cache      nothing\n"
        "\n"
        "  The sources, in the order in which they are asked\n"
        "    SOURCE  MAY BE CALLED  REASON  TRY AGAIN IN\n"
        "    only    yes            ok      -\n"
    )
    assert services.find_item("P001").trace != ()


def test_explain_names_what_is_kept(run: Runner) -> None:
    """Entry and stop list."""
    services.find_item("P001")
    assert "in the cache      found, from only, fresh until 2" in run("lookup_item", "P001", "--explain").out
    services.stop_item("P001")
    done = run("lookup_item", "P001", "--explain")
    assert done.code == 0
    assert "on the stop list  yes" in done.out


def test_explain_as_json(run: Runner) -> None:
    """The same as data."""
    services.find_item("P001")
    explained = json.loads(run("lookup_item", "P001", "--explain", "--json").out)
    assert explained["is_stopped"] is False
    assert explained["entry"]["item"]["name"] == "Tea"
    assert explained["sources"] == [{"source": "only", "may_call": True, "reason": "ok", "retry_after": None}]


def test_explain_and_refresh_exclude_each_other(run: Runner) -> None:
    """Refused."""
    assert "not allowed with" in run("lookup_item", "P001", "--explain", "--refresh").message


def test_language(run: Runner) -> None:
    """Answers of each language are kept apart; an impossible one is a usage error."""
    run("lookup_item", "P001", "--language", "ja")
    assert "miss" in run("lookup_item", "P001").out
    assert "hit" in run("lookup_item", "P001", "--language", "ja").out
    done = run("lookup_item", "P001", "--language", "日本語")
    assert done.code == 2
    assert "language=" in done.message


def test_vary(run: Runner, settings: Any) -> None:
    """Names of the URLs' own have values here too; what is no pair, or no name of theirs, is a usage error."""
    source = {"URL": "http://127.0.0.1:1/{shop}/{id}", "TIMEOUT": 0.2, "CONNECT_TIMEOUT": 0.2}
    settings.CATALOG_FALLBACK = {**settings.CATALOG_FALLBACK, "shops": {"SOURCES": {"only": source}}}
    asked = ("lookup_item", "P001", "--catalog", "shops")
    assert "vary has to give" in run(*asked).message
    assert run(*asked, "--vary", "shop=a=b").code == 5
    assert run(*asked, "--vary", "shop=", "--explain").code == 2
    assert run(*asked, "--vary", "shp=1").code == 2
    assert "'shop' has to be NAME=VALUE" in run(*asked, "--vary", "shop").message


def test_catalog(run: Runner) -> None:
    """Another catalog has its own pattern; an unknown one is named."""
    assert run("lookup_item", "--catalog", "other", "123").code == 4
    done = run("lookup_item", "--catalog", "nope", "123")
    assert done.code == 1
    assert 'There is no catalog "nope"' in done.message


def test_a_bad_id_is_refused_before_any_lookup(run: Runner) -> None:
    """Exit code 2, and nothing on standard output."""
    done = run("lookup_item", "P001", "no good")
    assert (done.code, done.out) == (2, "")
    assert "'no good' is no item ID of catalog 'default'" in done.message


def test_duplicates_are_shown_once(run: Runner) -> None:
    """Like find_items()."""
    assert run("lookup_item", "P001", "P001").out.count("P001 in catalog default") == 1


def test_what_a_catalog_says_cannot_command_the_terminal(run: Runner) -> None:
    """Escape sequences and line ends of an item are shown, not obeyed."""
    out = run("lookup_item", "ESC").out
    assert "\x1b" not in out
    assert r"name  \x1b[31mred\n" in out


def test_fallback_data_is_labelled(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Degraded data is not taken for an answer of a source; the wait that a source asked for is shown."""
    item = {"id": "P001", "name": "later"}
    lookup = Lookup("P001", "default", State.UNAVAILABLE, "http_429", item, degraded=True, retry_after=29.7)
    monkeypatch.setattr(services, "find_item", lambda *args, **kwargs: lookup)
    done = run("lookup_item", "P001")
    assert done.code == 5
    assert "Item (fallback data of this site)" in done.out
    assert "try again in  30 s" in done.out


def test_a_refused_call_is_told(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that a guard did not let us call took no time."""
    trace = (Attempt("only", Outcome.TEMPORARY, "circuit_open", 0.0, called=False),)
    lookup = Lookup("P001", "default", State.UNAVAILABLE, "incomplete_search", trace=trace)
    monkeypatch.setattr(services, "find_item", lambda *args, **kwargs: lookup)
    assert re.search(r"only +temporary +circuit_open +- +not called", run("lookup_item", "P001").out)


def test_several_ids_are_set_apart(run: Runner) -> None:
    """A blank line between two answers, none at the end."""
    assert run("lookup_item", "P404", "P405").out.split("\n\n")[2].startswith("P405 in catalog default\n")


def test_a_long_or_empty_item_stays_readable(run: Runner) -> None:
    """Long values are cut, nested ones written as JSON, and an item without fields is not nothing."""
    out = run("lookup_item", "LONG").out
    assert "…" in out
    assert max(map(len, out.splitlines())) < 230
    assert 'tags  ["a", "緑"]' in out


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "緑茶"),
        ("ascii", r"\u7dd1\u8336"),
        ("latin-1", r"\u7dd1\u8336"),
        ("shift_jis", "緑茶"),
        (None, "緑茶"),
    ],
)
def test_no_encoding_refuses_the_text(monkeypatch: pytest.MonkeyPatch, encoding: str | None, expected: str) -> None:
    """What standard output cannot show is written as an escape."""

    class Out:
        pass

    out = Out()
    out.encoding = encoding  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stdout", out)
    assert plain("緑茶") == expected


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    """And no line ends in blanks."""
    assert aligned([("a", "bb"), ("ccc", "")], indent="") == "a    bb\nccc"


PROGRAM = """
import django
from django.conf import settings
source = {"BACKEND": "catalog_fallback.sources.simulated.SimulatedSource", "OPTIONS": {"items": {"P001": "緑茶"}}}
settings.configure(
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "catalog_fallback"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    CATALOG_FALLBACK={"default": {"SOURCES": {"only": source}}},
    USE_TZ=True,
)
django.setup()
from django.core.management import call_command, execute_from_command_line
call_command("migrate", verbosity=0)
import sys
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


def program(*args: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, as a person does."""
    return subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", PROGRAM, *args],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.mark.parametrize(
    ("args", "code"),
    [
        pytest.param(("lookup_item", "P001"), 0, id="found"),
        pytest.param(("lookup_item", "P404"), 4, id="not-found"),
        pytest.param(("lookup_item", "no good"), 2, id="bad-id"),
        pytest.param(("lookup_item",), 2, id="usage"),
        pytest.param(("invalidate_item", "P001", "no good"), 3, id="partly"),
        pytest.param(("invalidate_item", "P001", "--stop", "x"), 2, id="wrong-choice"),
        pytest.param(("invalidate_item", "P001", "--catalog", "x"), 1, id="unknown-catalog"),
    ],
)
def test_exit_codes_of_the_process(args: tuple[str, ...], code: int) -> None:
    """What a shell sees, on a terminal that knows only ASCII; errors are told without a traceback."""
    done = program(*args, PYTHONIOENCODING="ascii")
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) == (code in {1, 2, 3})


def test_a_broken_pipe_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is still to be written goes nowhere, and nothing is raised."""
    path = tmp_path / "out"
    with path.open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with harmless_pipe():
            raise BrokenPipeError
        out.write("too late")
    assert path.read_text() == ""


def test_a_reader_that_leaves_is_no_error() -> None:
    """``lookup_item … | head -1`` ends quietly."""
    script = f'"{sys.executable}" -c "$0" lookup_item $(seq 1 3000) | head -1'
    done = subprocess.run(
        ["/bin/sh", "-c", script, PROGRAM],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "1 in catalog default\n"
    assert done.stderr == ""
