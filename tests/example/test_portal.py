"""Do the pages of the example say plainly what happened, in all four states, without JavaScript?"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from django.test import Client

from catalog_fallback.results import Outcome, State
from catalog_fallback.services import stop_item
from catalogs.server import CatalogServer
from portal import environment, wording
from tests.example.pages import text_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_first_page_explains_itself(site: Client) -> None:
    """Without a question there is a form, something to try, and the four answers."""
    page = site.get("/")
    assert page.status_code == 200
    shown = text_of(page.content)
    assert all(words in shown for words in ("Try these", "P001", "Four answers", "unavailable", "stopped"))


@pytest.mark.parametrize(
    ("item_id", "fault", "expected"),
    [
        pytest.param("P001", "ok", ["Found: Blue teapot", "primary", "answered"], id="found"),
        pytest.param("P002", "ok", ["Found: Red kettle", "secondary", "has no such item"], id="fall-through"),
        pytest.param("P404", "ok", ["No such item", "every one said that it has no such item"], id="not-found"),
        pytest.param("P404", "down", ["Could not find out", "does not mean that the item is missing"], id="down"),
        pytest.param("P001", "garbage", ["Could not find out", "the answer is not JSON"], id="garbage"),
        pytest.param("P001", "404", ["Could not find out", "answered with status 404"], id="status"),
    ],
)
def test_the_answer_in_plain_words(
    site: Client, catalogs: CatalogServer, item_id: str, fault: str, expected: list[str]
) -> None:
    """The page says what the lookup said, with the trace."""
    catalogs.switchboard.switch("primary", fault)
    shown = text_of(site.get("/", {"catalog": "default", "id": item_id}).content)
    for words in expected:
        assert words in shown


def test_unavailable_never_says_that_there_is_no_such_item(site: Client, catalogs: CatalogServer) -> None:
    """The headline of "could not find out" is not that of "not found"."""
    catalogs.switchboard.switch("primary", "down")
    page = site.get("/", {"catalog": "default", "id": "P404"}).content.decode()
    assert '<h2 id="headline" data-announce>Could not find out</h2>' in page
    assert str(wording.STATES[State.NOT_FOUND].meaning) not in page


def test_a_stopped_item_is_not_shown(site: Client) -> None:
    """After a stop the page names neither the item nor a source."""
    site.get("/", {"catalog": "default", "id": "P001"})
    stop_item("P001", reason="legal")
    shown = text_of(site.get("/", {"catalog": "default", "id": "P001"}).content)
    assert "Withdrawn" in shown
    assert "teapot" not in shown


def test_a_hit_says_that_nobody_was_called(site: Client, catalogs: CatalogServer) -> None:
    """The second answer comes from the cache, unless the visitor wants it anew."""
    question = {"catalog": "default", "id": "P001"}
    site.get("/", question)
    assert "no catalog was called" in text_of(site.get("/", question).content)
    assert catalogs.switchboard.as_dict()["primary"]["calls"] == 1
    site.get("/", {**question, "refresh": "on"})
    assert catalogs.switchboard.as_dict()["primary"]["calls"] == 2


@pytest.mark.parametrize(
    ("question", "error"),
    [
        pytest.param({"catalog": "default", "id": "not an ID"}, "This cannot be an ID of that catalog", id="bad-id"),
        pytest.param({"catalog": "default", "id": ""}, "This field is required", id="empty"),
        pytest.param({"catalog": "nowhere", "id": "P001"}, "Select a valid choice", id="bad-catalog"),
    ],
)
def test_a_bad_question_is_a_form_error(
    site: Client, catalogs: CatalogServer, question: dict[str, str], error: str
) -> None:
    """Nobody is asked, and the form says why; a program gets a 400."""
    page = site.get("/", question)
    assert page.status_code == 200
    assert error in text_of(page.content)
    assert site.get("/look-up.json", question).status_code == 400
    assert catalogs.switchboard.as_dict()["primary"]["calls"] == 0


def test_what_a_catalog_sends_is_escaped(site: Client, catalogs: CatalogServer) -> None:
    """Names are untrusted text."""
    page = site.get("/", {"catalog": "default", "id": '"><script>alert(1)</script>'}).content
    assert b"<script>alert" not in page


def test_a_program_gets_the_lookup_with_its_trace(site: Client) -> None:
    """The JSON page is the lookup itself."""
    reply = site.get("/look-up.json", {"catalog": "default", "id": "P002"})
    lookup = json.loads(reply.content)
    assert (lookup["state"], lookup["source"]) == ("found", "secondary")
    assert [attempt["outcome"] for attempt in lookup["trace"]] == ["not_found", "found"]


# ------------------------------------------------------------------------------------------------ words, environment


def test_every_state_and_outcome_has_words() -> None:
    """No state or outcome is shown by its bare name."""
    assert set(wording.STATES) == set(State)
    assert set(wording.OUTCOMES) == set(Outcome)


@pytest.mark.parametrize(
    ("reason", "words"),
    [("http_503", "answered with status 503"), ("timeout", wording.REASONS["timeout"]), ("odd_reason", "odd reason")],
    ids=["status", "known", "unknown"],
)
def test_reason_words(reason: str, words: str) -> None:
    """A reason without words of its own is still readable."""
    assert wording.reason_words(reason) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0012, "1.2 ms"),
        (0.25, "250 ms"),
        (1.0, "1 s"),
        (1.04, "1 s"),
        (2.5, "2.5 s"),
        (42.4, "42 s"),
        (600.0, "10 min"),
        (86_400.0, "24 h"),
    ],
)
def test_seconds_in_words(seconds: float, words: str) -> None:
    """A span of time is shown in the unit that suits it."""
    assert wording.seconds_words(seconds) == words


@pytest.mark.parametrize(
    ("item_id", "catalog", "command"),
    [
        ("P001", "default", "invalidate_item P001 --release"),
        ("10.1/(a)", "papers", "invalidate_item '10.1/(a)' --catalog papers --release"),
    ],
    ids=["default", "quoted"],
)
def test_the_undo_command(item_id: str, catalog: str, command: str) -> None:
    """It can be pasted into a terminal as it is."""
    assert wording.undo_command(item_id, catalog) == f".venv/bin/python example_project/manage.py {command}"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(None, {}, id="no-demo"),
        pytest.param("{", {}, id="cut-off"),
        pytest.param("[]", {}, id="other-type"),
        pytest.param('{"PID": "x"}', {}, id="no-process"),
        pytest.param('{"PID": 4194305, "REDIS_URL": "redis://x"}', {}, id="ended"),
        pytest.param('{"PID": %d, "REDIS_URL": "redis://x"}', {"REDIS_URL": "redis://x"}, id="running"),
    ],
)
def test_commands_join_a_running_demo(tmp_path: Path, content: str | None, expected: dict[str, str]) -> None:
    """The variables of a demo count while it runs, and only then."""

    path = tmp_path / "running.json"
    if content is not None:
        path.write_text(content % os.getpid() if "%d" in content else content)
    assert environment.running_demo(path) == expected


def test_the_secret_key_is_made_once(tmp_path: Path) -> None:
    """It survives a restart, differs from site to site, and nobody else may read it."""
    key = environment.secret_key(tmp_path / "a")
    assert environment.secret_key(tmp_path / "a") == key
    assert environment.secret_key(tmp_path / "b") != key
    assert (tmp_path / "a" / "secret_key").stat().st_mode & 0o077 == 0
