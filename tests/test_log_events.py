"""Does each change write one line, with the fields that docs/how-to/logs-and-metrics.md promises to programs?"""

from __future__ import annotations

import ast
import io
import json
import logging
import logging.config
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError, transaction

from catalog_fallback import calling, isolation, log_events, notices, operating, publishing, services, stop_list
from catalog_fallback.cache import store_of
from catalog_fallback.conf import catalog as config_of
from catalog_fallback.fallback import chain_of
from catalog_fallback.log_events import EVENTS
from catalog_fallback.results import Outcome, Reply
from tests import loopback as wire
from tests import posting, stores
from tests.scripted import GOOD, PATH, Programmed
from tests.sites import FOUND, MovableClock, Site

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to" / "logs-and-metrics.md"
PLAIN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime"}

Scene = Callable[[Site, MovableClock], None]


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """What a record has beside what every record has."""
    return {name: value for name, value in vars(record).items() if name not in PLAIN}


def on_page() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Event → level and fields, as the page says."""
    rows = re.findall(r"^\| `(\w+)` \| ([A-Z].*?) \| (`.*?`) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    return {event: (level, tuple(re.findall(r"`(\w+)`", fields))) for event, level, fields in rows}


# --- scenes: how each of them comes about ---------------------------------------------------------------------------


def opens(site: Site, moving: MovableClock) -> None:
    """Five failures in a row."""
    site.simulate("timeout")
    for n in range(6):
        site.find(f"P{n:03}")


def loses_the_breaker(site: Site, moving: MovableClock) -> None:
    """It was open, and the cache is restarted empty."""
    opens(site, moving)
    store_of["default"].backend.clear()
    for n in range(2):
        site.find(f"P{n:03}")


def cools_down(site: Site, moving: MovableClock) -> None:
    """The source asks for it, and is asked again and again."""
    site.say(wire.reply(429, headers={"Retry-After": "60"}))
    for n in range(3):
        site.find(f"P{n:03}")


def isolates(site: Site, moving: MovableClock) -> None:
    """An operator does."""
    operating.isolate_source("default", "primary", "maintenance")


def restores(site: Site, moving: MovableClock) -> None:
    """And lets it in again, twice."""
    isolates(site, moving)
    operating.restore_source("default", "primary")
    operating.restore_source("default", "primary")


def pauses_the_cache(site: Site, moving: MovableClock) -> None:
    """It does not answer any more."""
    site.cache_in("tests.stores.RaisingCache")
    for _ in range(3):
        site.find()


def resumes_the_cache(site: Site, moving: MovableClock) -> None:
    """It was down, and is not."""
    site.cache_in("tests.stores.MemoryCache", LOCATION="log-events")
    shelf = stores.shelf("log-events")
    shelf.fault = stores.raising(ConnectionError("refused"))
    for _ in range(3):
        site.find()
    shelf.fault = None
    moving.move(10)
    site.find()
    site.find()


def fails_to_publish(site: Site, moving: MovableClock) -> None:
    """A stop is committed, and the cache does not take it."""
    site.cache_in("tests.stores.RaisingCache")
    with transaction.atomic():
        services.stop_items(["P001", "P002"], reason="legal")


def cannot_read_the_stop_list(site: Site, moving: MovableClock) -> None:
    """The database is down."""
    site.say(FOUND)
    with mock.patch.object(stop_list.stop_query, "is_stopped", side_effect=OperationalError("secret of the database")):
        site.find()


def cannot_read_isolation(site: Site, moving: MovableClock) -> None:
    """The database is down, and no copy is in the cache."""
    with mock.patch.object(isolation.Isolation, "ask", side_effect=OperationalError("secret of the database")):
        site.find()


def refuses_a_notice(site: Site, moving: MovableClock) -> None:
    """It is not signed."""
    site.simulate(None, NOTICE_SECRETS=[posting.SECRET])
    notices.take(config_of("default"), {}, posting.payload())


def fails_to_apply_a_notice(site: Site, moving: MovableClock) -> None:
    """The database is down."""
    site.simulate(None, NOTICE_SECRETS=[posting.SECRET])
    body = posting.payload()
    headers = posting.signed(body)
    with mock.patch.object(publishing, "publish", side_effect=OperationalError("secret of the database")):
        notices.take(config_of("default"), headers, body)


def raises(site: Site, moving: MovableClock) -> None:
    """An adapter has a bug."""
    site.simulate(None)
    with mock.patch.object(calling.Caller, "_fetch", side_effect=KeyError("secret of the adapter")):
        site.find()


def overruns(site: Site, moving: MovableClock) -> None:
    """An adapter takes no notice of its limit; its answer counts, for the budget is not used up (Polly 340, 907)."""

    def deaf(timeout: float) -> Reply:
        moving.move(timeout + calling.OVERRUN / 2 if Programmed.timeouts[1:] else 20)
        return Reply(200, {}, GOOD)

    with mock.patch.object(Programmed, "program", staticmethod(deaf)), mock.patch.object(Programmed, "timeouts", []):
        site.configure({"BACKEND": PATH + "Programmed", "TIMEOUT": 3}, {"ENABLED": False}, BUDGET=60)
        assert site.find().is_found
        assert site.find(refresh=True).is_found


SCENES: dict[str, tuple[Scene, dict[str, Any]]] = {
    "breaker_changed": (
        opens,
        {
            "catalog": "default",
            "source": "primary",
            "kind": "source",
            "old": "closed",
            "new": "open",
            "reason": "consecutive_failures",
        },
    ),
    "breaker_lost": (
        loses_the_breaker,
        {
            "catalog": "default",
            "source": "primary",
            "kind": "source",
            "old": "open",
            "new": "closed",
            "reason": "lost_by_the_store",
        },
    ),
    "cool_down_started": (
        cools_down,
        {
            "catalog": "default",
            "source": "primary",
            "kind": "source",
            "old": "ready",
            "new": "cooling_down",
            "reason": "http_429",
            "seconds": pytest.approx(60),
        },
    ),
    "source_isolated": (
        isolates,
        {"catalog": "default", "source": "primary", "old": "in_use", "new": "isolated", "reason": "maintenance"},
    ),
    "source_restored": (
        restores,
        {"catalog": "default", "source": "primary", "old": "isolated", "new": "in_use", "reason": ""},
    ),
    "cache_paused": (
        pauses_the_cache,
        {"cache": "default", "old": "ready", "new": "paused", "reason": "ConnectionError", "seconds": 5.0},
    ),
    "cache_resumed": (
        resumes_the_cache,
        {"cache": "default", "old": "paused", "new": "ready", "reason": "answered"},
    ),
    "invalidation_failed": (fails_to_publish, {"catalog": "default", "reason": "legal", "items": 2}),
    "stop_list_unreadable": (cannot_read_the_stop_list, {"catalog": "default", "reason": "OperationalError"}),
    "isolation_unreadable": (cannot_read_isolation, {"catalog": "default", "reason": "OperationalError"}),
    "notice_refused": (refuses_a_notice, {"catalog": "default", "reason": "it is not signed"}),
    "notice_failed": (fails_to_apply_a_notice, {"catalog": "default", "reason": "OperationalError"}),
    "source_raised": (raises, {"catalog": "default", "source": "primary", "reason": "KeyError"}),
    "call_overran": (overruns, {"catalog": "default", "source": "primary", "seconds": pytest.approx(20, abs=1)}),
}


@pytest.mark.parametrize("event", SCENES)
def test_one_line_with_its_fields(
    site: Site, moving: MovableClock, caplog: pytest.LogCaptureFixture, event: str
) -> None:
    """However often the same goes on; level and fields are those of the page; no message of an exception."""
    caplog.set_level(logging.DEBUG, "catalog_fallback")
    scene, told = SCENES[event]
    scene(site, moving)
    (record,) = [each for each in caplog.records if extras(each).get("event") == event]
    assert extras(record) == {"event": event, **told}
    level, fields = on_page()[event]
    assert level.startswith(record.levelname)
    assert set(fields) == set(told)
    assert "secret of" not in caplog.text


def test_the_page_names_all_events() -> None:
    """With their fields, in the order of the code."""
    assert {event: fields for event, (_, fields) in on_page().items()} == dict(EVENTS)
    assert set(SCENES) == set(EVENTS)


def test_an_opened_breaker_is_a_warning_and_a_closed_one_is_none(
    site: Site, moving: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever is on call need not read good news."""
    caplog.set_level(logging.INFO, "catalog_fallback")
    opens(site, moving)
    operating.reset_source("default", "primary")
    changes = [each for each in caplog.records if extras(each).get("event") == "breaker_changed"]
    assert [(each.levelname, each.new) for each in changes] == [("WARNING", "open"), ("INFO", "closed")]  # type: ignore[attr-defined]
    assert all(type(each.new) is str for each in changes)  # type: ignore[attr-defined]


def test_a_longer_cool_down_is_no_new_one(site: Site, moving: MovableClock, caplog: pytest.LogCaptureFixture) -> None:
    """Replies that were under way extend it; the next one after its end is told again."""
    guard = chain_of["default"].callers[0].guard
    cool_down = guard.patterns(guard.stores.shared).cool_down
    for seconds in (10, 60, 120):
        cool_down.start(seconds, Outcome.TEMPORARY, "http_503")
    moving.move(130)
    store_of["default"].backend.clear()  # its keys live by a clock that the test cannot move
    cool_down.start(10, Outcome.STOP, "http_429")
    told = [(each.reason, round(each.seconds)) for each in caplog.records if hasattr(each, "seconds")]  # type: ignore[attr-defined]
    assert told == [("http_503", 10), ("http_429", 10)]


def calls_of_fields() -> Iterator[tuple[str, ast.Call]]:
    """All calls of ``fields("…", …)`` in the package, each with its event."""
    for path in sorted((ROOT / "catalog_fallback").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fields"
            if is_call and node.args and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value, node


def test_every_line_of_the_code_has_the_fields_of_its_event() -> None:
    """Each of the code's lines names an event that is known, with the right fields; no event is without a line."""
    names_of = {"catalog", "source", "kind"}
    seen = set()
    for event, call in calls_of_fields():
        given = {each.arg for each in call.keywords if each.arg is not None}
        if any(each.arg is None for each in call.keywords):  # **names.as_fields()
            given |= names_of
        assert given == set(EVENTS[event]), event
        seen.add(event)
    assert set(EVENTS) - seen == {"breaker_changed", "breaker_lost"}  # through one method, which the scenes show


def test_values_are_plain() -> None:
    """A formatter needs to know nothing of our enums."""
    made = log_events.fields("source_raised", catalog="default", source="primary", reason="KeyError")
    assert json.loads(json.dumps(made)) == made


# --- the page's example ---------------------------------------------------------------------------------------------


@pytest.fixture
def page_blocks() -> dict[str, str]:
    """The page's own formatter and settings."""
    found = re.findall(
        r"^```python\n# (your_site/json_log|settings)\.py\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S
    )
    return {name: code for name, code in reversed(found) if "LOGGING" in code or "JSONFormatter" in code}


@pytest.fixture
def untouched_logging() -> Iterator[None]:
    """What the example sets is put back."""
    logger = logging.getLogger("catalog_fallback")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = before


def test_the_logging_example_writes_json(
    site: Site,
    moving: MovableClock,
    page_blocks: dict[str, str],
    untouched_logging: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The line of the page is the line that is written."""
    module = ModuleType("your_site.json_log")
    monkeypatch.setitem(sys.modules, "your_site", ModuleType("your_site"))
    sys.modules["your_site"].json_log = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "your_site.json_log", module)
    exec(compile(page_blocks["your_site/json_log"], str(PAGE), "exec"), vars(module))  # noqa: S102 - our own page
    settings: dict[str, Any] = {}
    exec(compile(page_blocks["settings"], str(PAGE), "exec"), settings)  # noqa: S102
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    logging.config.dictConfig(settings["LOGGING"])
    raises(site, moving)
    opens(site, moving)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    (example,) = re.findall(r"^```json\n(.*?)\n```$", PAGE.read_text("utf-8"), re.M)
    (changed,) = [line for line in lines if line["event"] == "breaker_changed"]
    assert {**changed, "time": ""} == {**json.loads(example), "time": ""}
    assert [*changed] == [*json.loads(example)]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}", changed["time"])
    (raised,) = [line for line in lines if line["event"] == "source_raised"]
    assert "Traceback" in raised["traceback"]
    assert set(module.FIELDS) == {"event"} | {field for fields in EVENTS.values() for field in fields}  # type: ignore[attr-defined]
