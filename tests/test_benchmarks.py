"""Do the benchmarks measure and tell what they claim to? And how many commands does a lookup take?"""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import (
    batch,
    budget,
    catalog_server,
    counting,
    dripping_catalog,
    growth,
    guards,
    herd,
    hit,
    idle,
    invalidate,
    measuring,
    miss,
    others,
    outage,
    peers,
    report,
    simulation,
    site,
    slow_catalog,
    soak,
    stampede,
)
from benchmarks.bars import BARS, ENDLESS, Bar
from benchmarks.measuring import Timing
from benchmarks.report import Row
from benchmarks.site import STOP_LISTS
from benchmarks.surroundings import Surroundings
from catalog_fallback.cache import entries_of
from catalog_fallback.results import Reply
from catalog_fallback.services import find_item
from tests import loopback as wire
from tests import servers, sites

# ------------------------------------------------------------------------------------------------ measuring


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    """A round in which the machine was busy for both does not change it; the quotient of the medians would."""
    base = Timing((10.0, 100.0, 10.0, 20.0))
    case = Timing((20.0, 200.0, 20.0, 10.0))
    assert case.ratio_to(base) == 2.0
    assert case.median / base.median != 2.0


def test_every_case_runs_in_every_round_in_the_order_of_the_shuffle() -> None:
    """What runs first changes from round to round."""
    ran: list[str] = []
    ticks = (at * 1.0 for at in range(1000))
    timings = measuring.interleave(
        {"a": lambda: ran.append("a"), "b": lambda: ran.append("b")},
        3,
        seconds=1.0,
        shuffle=list.reverse,
        now=lambda: next(ticks),
    )
    loops = 3
    assert "".join(ran[-6 * loops :]) == "".join(name * loops for name in "baabba")
    assert {name: len(timing.rounds) for name, timing in timings.items()} == {"a": 3, "b": 3}


@pytest.mark.parametrize(
    ("call", "loops"), [(0.1, 10), (5.0, 1), (0.0, 100_000)], ids=["many fit", "one is too long", "too short to see"]
)
def test_a_case_runs_as_often_as_it_fits_into_a_second(call: float, loops: int) -> None:
    """But at least once, and within reason."""
    time = 0.0

    def case() -> None:
        nonlocal time
        time += call

    assert measuring.loops_for(case, 1.001, lambda: time) == loops


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (50, 5), (99, 10), (100, 10)])
def test_a_percentile_is_one_of_the_values(percent: float, value: int) -> None:
    """The nearest rank: no value is made up between two others."""
    assert measuring.percentile(range(1, 11), percent) == value


# ------------------------------------------------------------------------------------------------ bars and reports

MEASURED = (
    *(batch, budget, growth, guards, hit, idle, invalidate),
    *(miss, outage, simulation, soak, stampede),
)


@pytest.mark.parametrize(
    ("bar", "value", "is_allowed"),
    [
        (Bar(1.2), 1.2, True),
        (Bar(1.2), 1.21, False),
        (Bar(1, is_exact=True), 1, True),
        (Bar(1, is_exact=True), 0.5, False),
    ],
    ids=["at the limit", "above it", "exactly", "less than exactly"],
)
def test_a_bar_allows_what_it_says(bar: Bar, value: float, is_allowed: bool) -> None:
    """An exact one refuses less as well: no command at all would mean that nothing was measured."""
    assert bar.allows(value) is is_allowed


def test_every_bar_belongs_to_a_row() -> None:
    """A renamed row would otherwise lose its bar without a sound."""
    assert BARS.keys() <= {name for each in MEASURED for name in each.row_names()}


@pytest.mark.parametrize("measured", MEASURED, ids=lambda each: each.__name__.rpartition(".")[2])
def test_no_benchmark_is_without_a_bar(measured: Any) -> None:
    """Each answers a question to which something is promised."""
    assert BARS.keys() & set(measured.row_names())


def test_every_benchmark_is_in_the_command_and_here() -> None:
    """One that nobody can start, or whose bars nobody looks at, would be lost."""
    measured = {each.__name__.rpartition(".")[2] for each in MEASURED}
    assert command.BENCHMARKS.keys() - {"peers"} == measured


def test_the_scenes_of_the_peers_have_ours_beside_them() -> None:
    """In as many processes, with as many callers; each name is another."""
    pytest.importorskip("dogpile.cache", reason="the peers: pip install --group bench")
    scenes = others.scenes()
    assert len({scene.name for scene in scenes}) == len(scenes)
    ours = {(scene.processes, scene.callers) for scene in scenes if scene.name.endswith(": ours")}
    assert {(scene.processes, scene.callers) for scene in scenes} == ours == {(1, 50), (4, 25), (1, 200)}


def test_a_table_shows_figures_bars_and_what_was_missed() -> None:
    """One line a row, in columns of one width."""
    rows = [
        Row("hit, django-redis", 1.5, "the floor", 90.0),
        Row("hit, django-redis: commands", 1, note="1 mget"),
        Row("a peer", note="not installed"),
    ]
    lines = report.table(rows).splitlines()
    assert len({len(line) for line in lines}) == 1
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[2:] == [
        ["hit, django-redis", "90.0", "1.50 ×", "≤ 1.2", "MISSED", "of the floor"],
        ["hit, django-redis: commands", "", "1", "= 1", "holds", "1 mget"],
        ["a peer", "", "–", "", "SKIPPED", "not installed"],
    ]


def test_the_files_hold_facts_and_rows(tmp_path: Path) -> None:
    """Markdown for people, JSON for programs, and what the machine was like in both."""
    facts = report.facts(3, None)
    tables = {"A hit": [Row("hit, django-redis", 1.0, "the floor", 90.0)]}
    report.write(tmp_path / "new" / "it.json", report.as_json(tables, facts))
    kept = json.loads((tmp_path / "new" / "it.json").read_text(encoding="utf-8"))
    assert kept["tables"]["A hit"][0]["verdict"] == "holds"
    assert kept["facts"]["Python"]
    assert "- Python: " in report.markdown(tables, facts)
    assert "## A hit" in report.markdown(tables, facts)


def test_a_missing_peer_is_a_row_that_says_so() -> None:
    """It is not left out without a word, and misses no bar."""
    (row,) = peers.missing(["a peer"])
    assert (row.verdict(), row.is_missed) == ("SKIPPED", False)


# ------------------------------------------------------------------------------------------------ the command


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[tuple[list[str], int, bool]]]:
    """What the command was told to measure; the figure that comes out misses its bar."""
    calls: list[tuple[list[str], int, bool]] = []

    def measure(names: list[str], rounds: int, *, is_large: bool) -> dict[str, list[Row]]:
        calls.append((list(names), rounds, is_large))
        return {"A hit": [Row("hit, django-redis", 9.0, "the floor", 900.0)]}

    monkeypatch.setattr(command, "_measure", measure)
    monkeypatch.setattr(command.servers, "pin", lambda: None)
    monkeypatch.setattr(command.report, "RESULTS", tmp_path)
    yield calls
    assert (tmp_path / "latest.md").exists() is bool(calls)


def test_without_names_everything_is_measured(measured: list[Any]) -> None:
    """And a missed bar alone is no failure."""
    assert command.main(["--rounds", "3", "--large"]) == 0
    assert measured == [(list(command.BENCHMARKS), 3, True)]


def test_what_takes_minutes_is_measured_by_name_only(measured: list[Any]) -> None:
    """Nobody waits for the locks of others who did not ask for it."""
    assert command.main(["--rounds", "3"]) == 0
    assert command.main(["peers", "--rounds", "3"]) == 0
    (everything, _, _), (named, _, _) = measured
    assert (set(command.BENCHMARKS) - set(everything), named) == ({"peers"}, ["peers"])


def test_check_fails_when_a_bar_is_missed(measured: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """The last line says which."""
    assert command.main(["hit", "--check"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "MISSED: hit, django-redis: 9.000, bar ≤ 1.2"


def test_list_measures_nothing(measured: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """It names what could be measured."""
    assert command.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(command.BENCHMARKS)
    assert measured == []


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """As any other wrong argument."""
    with pytest.raises(SystemExit) as error:
        command.main(["hits"])
    assert error.value.code == 2
    assert "hits" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ servers


def test_the_catalog_answers_with_the_item_that_was_asked_for() -> None:
    """In the default envelope, and in about 300 bytes."""
    assert catalog_server.item_id_in(b"GET /items/P001?x=1 HTTP/1.1\r\nHost: x\r\n\r\n") == "P001"
    head, body = catalog_server.reply("P001").split(b"\r\n\r\n")
    assert json.loads(body)["item"]["id"] == "P001"
    assert f"Content-Length: {len(body)}".encode() in head
    assert 250 <= len(body) <= 350


def test_the_same_item_without_the_catalog() -> None:
    """The peers' hits carry what ours carry, and no ID is fresh twice."""
    around = Surroundings("redis://x", "http://x")
    assert around.an_item("P001") == json.loads(catalog_server.reply("P001").split(b"\r\n\r\n")[1])["item"]
    assert around.fresh_id() != around.fresh_id()


# ------------------------------------------------------------------------------------------------ counting


def test_commands_of_connecting_are_not_counted() -> None:
    """What is left is said per action."""
    stats = {"cmdstat_mget": {"calls": 20}, "cmdstat_hello": {"calls": 1}, "cmdstat_client|setinfo": {"calls": 2}}
    assert counting.per_action(stats, 20) == {"mget": 1.0}
    assert counting.as_note({"set": 2.0, "mget": 1.0}) == "1 mget, 2 set"


BACKENDS = {"django-redis": "django_redis.cache.RedisCache", "django": "django.core.cache.backends.redis.RedisCache"}


@pytest.fixture
def counted_site(settings: Any, valkey: servers.Valkey) -> Any:
    """A function that puts a catalog, whose source has every item that is asked for here, over one of the backends."""
    pytest.importorskip("django_redis")

    def use(backend: str, stop_check: str = "cache") -> str:
        cache = {"BACKEND": BACKENDS[backend], "LOCATION": valkey.url, "KEY_PREFIX": uuid.uuid4().hex}
        items = {f"P{number}": "Tea" for number in range(30)}
        source = {"BACKEND": sites.SIMULATED, "OPTIONS": {"items": items}}
        settings.CACHES = {"default": cache}
        settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"primary": source}, "TTL": 3600, "STOP_CHECK": stop_check}}
        return valkey.url

    return use


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hit_is_one_command(counted_site: Any, backend: str) -> None:
    """Gate and entry come in one read."""
    url = counted_site(backend)
    find_item("P1")
    assert counting.commands(url, lambda: find_item("P1")) == {"mget": 1.0}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_miss_is_at_most_five_commands(counted_site: Any, backend: str) -> None:
    """With scripts, the flight across processes included."""
    url, numbers = counted_site(backend), iter(range(30))
    counts = counting.commands(url, lambda: find_item(f"P{next(numbers)}"))
    assert sum(counts.values()) <= 5, counts


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_miss_is_at_most_nine_plain_commands(counted_site: Any, backend: str) -> None:
    """Where the server runs no scripts."""
    url, numbers = counted_site(backend), iter(range(30))
    find_item("P30")
    scripts = entries_of["default"].store.scripts
    assert scripts is not None
    scripts.are_refused = True
    counts = counting.commands(url, lambda: find_item(f"P{next(numbers)}"))
    assert sum(counts.values()) <= 9, counts
    assert "evalsha" not in counts


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("stop_check", "queries"), [("cache", 0), ("database", 1)], ids=["the cache decides", "the database decides"]
)
def test_queries_of_a_hit(counted_site: Any, stop_check: str, queries: int) -> None:
    """Only STOP_CHECK="database" asks on every hit."""
    counted_site("django-redis", stop_check)
    find_item("P1")
    with counting.queries() as counted:
        assert find_item("P1").cache == "hit"
    assert counted.count == queries


@pytest.mark.django_db(transaction=True)
def test_a_miss_asks_the_database_once(counted_site: Any) -> None:
    """Before the search; afterwards the gate says whether anything has changed. (Isolation is asked once a minute.)"""
    counted_site("django-redis")
    find_item("P2")
    with counting.queries() as counted:
        assert find_item("P1").cache == "miss"
    assert counted.count == 1


def test_the_sizes_of_stop_lists_grow_from_small_to_large() -> None:
    """A ratio to the smallest is what ``growth`` shows."""
    assert list(STOP_LISTS.values()) == sorted(STOP_LISTS.values()) == [100, 10_000, 1_000_000]


@pytest.mark.django_db(transaction=True)
def test_commands_that_travel_together_are_one_round_trip(counted_site: Any) -> None:
    """It is the waiting that costs, so it is the waiting that is counted."""
    counted_site("django-redis")
    from django_redis import get_redis_connection  # noqa: PLC0415  # optional

    client = get_redis_connection("default")

    def together() -> None:
        with client.pipeline(transaction=False) as pipeline:
            pipeline.get("a").get("b").execute()

    one, two = counting.round_trips(together), counting.round_trips(lambda: (client.get("a"), client.get("b")))
    assert (one.count, two.count) == (1, 2)
    assert one.waited > 0


# ------------------------------------------------------------------------------------------------ endless, gone, idle


def test_every_endless_scene_has_a_bar_and_a_server() -> None:
    """And a catalog of its own in the settings."""
    assert set(budget.SCENES) == set(ENDLESS)
    scripted = {url.split("/")[1] for url in budget.SCENES.values() if url.startswith("{")}
    assert scripted == set(dripping_catalog.DRIPS)
    assert {budget.catalog_of(scene) for scene in ENDLESS} == budget.catalogs("http://x").keys()


@pytest.mark.parametrize("scene", dripping_catalog.DRIPS)
def test_the_dripping_catalog_speaks_and_never_ends(scene: str) -> None:
    """Its first words are those of the scene, and after some pieces there are more."""

    async def hear() -> bytes:
        server = await asyncio.start_server(dripping_catalog.converse, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.write(f"GET /{scene}/P001 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head, piece = dripping_catalog.DRIPS[scene]
        said = await reader.readexactly(len(head + piece * 3))
        writer.close()
        server.close()
        return said

    head, piece = dripping_catalog.DRIPS[scene]
    assert asyncio.run(hear()) == head + piece * 3


def test_what_was_meant_to_end_a_lookup_has_to_have_done_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lookup that is answered, or refused before its time, is no figure."""
    monkeypatch.setattr("catalog_fallback.services.find_item", lambda *_args, **_kwargs: found())
    with pytest.raises(RuntimeError, match="not what was meant"):
        budget._beyond("head drip", 1)


def found() -> Any:
    """A lookup that found its item."""

    class Found:
        is_unavailable = False
        is_found = True
        cache = "hit"

    return Found()


def test_a_hit_in_an_outage_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would mean that Redis was there."""
    monkeypatch.setattr("catalog_fallback.services.find_item", lambda *_args, **_kwargs: found())
    with pytest.raises(RuntimeError, match="not what was meant"):
        outage._look_up("outage-0", outage.BEFORE[0], Surroundings("redis://x", "http://x"))


def test_each_cache_of_the_outage_has_a_pool_and_time_outs_of_its_own() -> None:
    """django-redis keeps one pool for each address."""
    caches = site.caches("redis://x")
    addresses = {caches[alias]["LOCATION"] for alias in site.OUTAGES}
    assert len(addresses) == len(site.OUTAGES)
    assert {caches[alias]["OPTIONS"]["SOCKET_TIMEOUT"] for alias in site.OUTAGES} == {site.SOCKET_TIMEOUT}


def test_importing_starts_nothing_and_reads_no_settings_of_ours() -> None:
    """An interpreter of its own says so; the one without us reads what Django reads."""
    floor, ours = idle.start("without"), idle.start("with")
    assert (ours["threads"], ours["sockets"]) == (0, 0)
    assert set(ours["settings"]) <= set(floor["settings"])
    assert "CATALOG_FALLBACK" not in ours["settings"]


def test_the_idle_interpreter_would_have_noticed() -> None:
    """The same program, with an import that does all of it."""
    bad = "import socket, threading; socket.socket().close(); threading.Thread(target=int).start(); settings.CACHES"
    program = idle.PROGRAM.replace("import catalog_fallback.services", bad)
    assert program != idle.PROGRAM
    said = idle.start("with", program)
    assert (said["threads"], said["sockets"], "CACHES" in said["settings"]) == (1, 1, True)


def test_the_most_resident_is_at_least_what_is_resident() -> None:
    """In bytes, of this process."""
    held = bytearray(b"x" * 2**24)
    assert invalidate.most_resident() > len(held)
    assert invalidate.most_resident() >= soak.weigh(0).resident * 0.9


# ------------------------------------------------------------------------------------------------ many at once


def test_the_slow_catalog_does_what_the_id_says() -> None:
    """The status and the delay are in it, and calls are counted for each."""
    asked = slow_catalog.item_id(0, 503, 7)
    status, body = asyncio.run(slow_catalog.answer(f"/items/{asked}"))
    assert (status, body) == (503, {"item": {"id": asked, "name": "Blue ceramic mug 330 ml"}})
    assert asyncio.run(slow_catalog.answer(f"/calls/{asked}")) == (200, 1)


def test_every_stampede_expects_the_state_of_its_upstream() -> None:
    """A scene that fails is one in which everybody has to be told so."""
    assert {scene.expected for scene in stampede.SCENES if scene.status == 200} == {"found"}
    assert {scene.expected for scene in stampede.SCENES if scene.status != 200} == {"unavailable"}


def test_an_event_alone_shares_one_call(loopback: wire.Loopback) -> None:
    """The floor is a floor only if it does what it is the floor of."""
    barrier = wire.Barrier()
    loopback.otherwise(wire.paused(barrier, at="before the head", body={"item": None}))
    order = herd.Order("event alone", 5, "D0S200N1", 0.0)
    done: list[herd.Report] = []
    thread = threading.Thread(target=lambda: done.append(herd._threads(order, herd.EventAlone(loopback.origin).ask)))
    thread.start()
    barrier.wait_until_reached()
    barrier.release()
    thread.join(20)
    assert (done[0].states, len(done[0].waited), loopback.calls()) == (("found",) * 5, 5, 1)


# ------------------------------------------------------------------------------------------------ soaking


def test_a_soak_tells_what_was_gained_and_what_it_weighs() -> None:
    """One row with a bar, and one for each mark."""
    rows = soak._rows("django-redis", [soak.Weight(1000, 5000, 2**20), soak.Weight(10_000, 5100, 2**21)])
    assert [(row.value, row.note) for row in rows] == [
        (100, "from 1,000 to 10,000 IDs"),
        (1.0, "5,000 blocks"),
        (2.0, "5,100 blocks"),
    ]
    assert rows[0].bar is not None


def test_the_endless_source_has_every_item() -> None:
    """As the catalog server has it."""
    reply = soak.Endless.fetch(None, "P001", "", {}, timeout=1)  # type: ignore[arg-type]
    assert isinstance(reply, Reply)
    assert json.loads(reply.body) == json.loads(catalog_server.reply("P001").split(b"\r\n\r\n")[1])


def test_this_process_weighs_something() -> None:
    """More than a megabyte, in more than a thousand blocks."""
    weight = soak.weigh(3)
    assert weight.ids == 3
    assert weight.blocks > 1000
    assert weight.resident > 2**20
