"""Do the simulated catalogs answer as the real ones do, and fail as they are told to?"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from catalogs import recorded
from catalogs.answers import Answer
from catalogs.books import IN_OPEN_LIBRARY, IN_OPENBD, IN_PRIMARY, IN_SECONDARY
from catalogs.faults import FAULTS, Healthy
from catalogs.replies import CATALOGS, healthy_answer, other_id, route
from catalogs.server import CatalogServer, Switchboard

HEALTHY = Healthy(answer=Answer(200, b"asked"), nothing=Answer(200, b"nothing"), other=Answer(200, b"other"))


def get(url: str) -> tuple[int, bytes]:
    """Status and body of a GET."""
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def post(url: str, body: str) -> int:
    """Status of a POST."""
    try:
        with urllib.request.urlopen(url, data=body.encode(), timeout=5) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("/primary/items/P001", ("primary", ("P001",)), id="primary"),
        pytest.param("/secondary/items/P%2F1", ("secondary", ("P/1",)), id="encoded"),
        pytest.param("/v1/get?isbn=1,2", ("openbd", ("1", "2")), id="openbd-many"),
        pytest.param("/v1/get", ("openbd", ()), id="openbd-none"),
        pytest.param(
            "/api/books.json?bibkeys=ISBN:1,ISBN:2&jscmd=data", ("open_library", ("1", "2")), id="open-library-many"
        ),
        pytest.param("/api/v2/product/3017624010701?fields=code", ("open_food_facts", ("3017624010701",)), id="food"),
        pytest.param("/opf/api/v2/product/1", ("open_products_facts", ("1",)), id="no-food"),
        pytest.param("/works/10.1111%2F%28x%29?mailto=a", ("crossref", ("10.1111/(x)",)), id="crossref"),
        pytest.param("/dois/10.1111%2Fa%2Bb", ("datacite", ("10.1111/a+b",)), id="datacite"),
        pytest.param("/primary/items/", None, id="no-id"),
        pytest.param("/primary/items/a/b", None, id="too-deep"),
        pytest.param("/tertiary/items/P001", None, id="no-such-catalog"),
        pytest.param("/", None, id="root"),
    ],
)
def test_route(target: str, expected: object) -> None:
    """Each API's own address leads to its catalog and IDs, anything else nowhere."""
    assert route(target) == expected


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/primary/items/P001", {"item": {"id": "P001", "name": IN_PRIMARY["P001"]}}, id="primary"),
        pytest.param("/primary/items/P002", {"item": None}, id="primary-without"),
        pytest.param("/secondary/items/P002", {"item": {"id": "P002", "name": IN_SECONDARY["P002"]}}, id="secondary"),
        pytest.param("/v1/get?isbn=9780000000002", [None], id="openbd-without"),
        pytest.param("/api/books.json?bibkeys=ISBN:9780000000002&jscmd=data", {}, id="open-library-without"),
    ],
)
def test_a_healthy_catalog_answers_over_http(catalogs_url: str, path: str, body: object) -> None:
    """What a catalog has and lacks is said in its own form."""
    status, text = get(f"{catalogs_url}{path}")
    assert (status, json.loads(text)) == (200, body)


def test_openbd_answers_by_position() -> None:
    """Several ISBNs are answered in their order, null for an unknown one."""
    isbn = next(iter(IN_OPENBD))
    records = json.loads(healthy_answer("openbd", ("1", isbn)).body)
    assert records[0] is None
    assert records[1]["summary"]["isbn"] == isbn


def test_open_library_answers_by_key() -> None:
    """Several ISBNs are answered by their keys, unknown ones are left out."""
    isbn = next(iter(IN_OPEN_LIBRARY))
    assert list(json.loads(healthy_answer("open_library", ("1", isbn)).body)) == [f"ISBN:{isbn}"]


@pytest.mark.parametrize("catalog", CATALOGS)
def test_the_other_id_is_another_one_that_exists(catalog: str) -> None:
    """The fault "another item" sends an item that the catalog has, whatever was asked for."""
    nothing = healthy_answer(catalog, ("NO-SUCH-ITEM",))
    for asked in CATALOGS[catalog]:
        other = other_id(catalog, (asked,))
        assert other != asked
        assert healthy_answer(catalog, (other,)) != nothing


@pytest.mark.parametrize(
    ("fault", "status", "begins"),
    [
        pytest.param("ok", 200, b"asked", id="ok"),
        pytest.param("empty", 200, b"nothing", id="empty"),
        pytest.param("wrong-id", 200, b"other", id="wrong-id"),
        pytest.param("404", 404, b"<!doctype html>", id="404"),
        pytest.param("429", 429, b"<!doctype html>", id="429"),
        pytest.param("503", 503, b"<!doctype html>", id="503"),
        pytest.param("503-wait", 503, b"<!doctype html>", id="503-wait"),
        pytest.param("500", 500, b"<!doctype html>", id="500"),
        pytest.param("401", 401, b"<!doctype html>", id="401"),
        pytest.param("login", 200, b"<!doctype html>", id="login"),
        pytest.param("no-store", 200, b"asked", id="no-store"),
        pytest.param("redirect", 302, b"<!doctype html>", id="redirect"),
        pytest.param("garbage", 200, b'{"item": \xff', id="garbage"),
        pytest.param("huge", 200, b"asked   ", id="huge"),
    ],
)
def test_a_fault_changes_what_is_sent(fault: str, status: int, begins: bytes) -> None:
    """Each fault makes another reply of the healthy one."""
    answer = FAULTS[fault](HEALTHY)
    assert answer.status == status
    assert answer.body.startswith(begins)


def test_faults_that_carry_headers_or_size() -> None:
    """Some say when to come back, a redirect where to go; one forbids keeping; the huge one is over the usual limit."""
    assert FAULTS["429"](HEALTHY).headers == {"Retry-After": "5"}
    assert FAULTS["503-wait"](HEALTHY).headers == {"Retry-After": "5"}
    assert FAULTS["503"](HEALTHY).headers == {}
    assert FAULTS["no-store"](HEALTHY).headers == {"Cache-Control": "no-store"}
    assert FAULTS["redirect"](HEALTHY).headers == {"Location": "/elsewhere"}
    assert len(FAULTS["huge"](HEALTHY).body) > 1_048_576


@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        ("lag", {"delay": 0.3}),
        ("slow", {"delay": 10.0}),
        ("drip", {"drip": 0.5}),
        ("down", {"hangs_up": True}),
        ("cut", {"cut_after": 2}),
    ],
    ids=["lag", "slow", "drip", "down", "cut"],
)
def test_a_fault_changes_how_it_is_sent(fault: str, changed: dict[str, object]) -> None:
    """Slow, dripping and dead catalogs send the healthy reply in another way."""
    answer = FAULTS[fault](HEALTHY)
    assert {name: getattr(answer, name) for name in changed} == changed
    assert answer.body == b"asked"


def test_down_closes_the_connection_without_a_word(catalogs: CatalogServer, catalogs_url: str) -> None:
    """A caller of a dead catalog sees the end of the connection, not a reply."""
    catalogs.switchboard.switch("primary", "down")
    with pytest.raises(http.client.RemoteDisconnected):
        get(f"{catalogs_url}/primary/items/P001")


def test_a_cut_body_is_shorter_than_its_head_says(catalogs: CatalogServer, catalogs_url: str) -> None:
    """The reply promises more bytes than come before the connection ends."""
    catalogs.switchboard.switch("primary", "cut")
    with pytest.raises(http.client.IncompleteRead):
        get(f"{catalogs_url}/primary/items/P001")


@pytest.mark.parametrize("fault", ["slow", "drip"])
def test_closing_ends_what_is_held_back(catalogs: CatalogServer, fault: str) -> None:
    """The server ends at once, even while it keeps callers waiting."""
    catalogs.switchboard.switch("primary", fault)
    with socket.create_connection(catalogs.server_address[:2], timeout=5) as caller:
        caller.sendall(b"GET /primary/items/P001 HTTP/1.1\r\nHost: x\r\n\r\n")
        if fault == "drip":
            assert caller.recv(9) == b"HTTP/1.1 "
        catalogs.closing.set()
        while caller.recv(65536):
            pass


def test_faults_are_switched_over_http(catalogs: CatalogServer, catalogs_url: str) -> None:
    """A POST gives one catalog a fault and leaves the others alone; a reset heals all and clears the counters."""
    assert post(f"{catalogs_url}/_faults/secondary", "fault=503") == 200
    assert get(f"{catalogs_url}/secondary/items/P002")[0] == 503
    assert get(f"{catalogs_url}/primary/items/P001")[0] == 200
    assert json.loads(get(f"{catalogs_url}/_faults")[1])["secondary"] == {"fault": "503", "calls": 1}
    assert post(f"{catalogs_url}/_reset", "") == 200
    assert catalogs.switchboard.as_dict() == {name: {"fault": "ok", "calls": 0} for name in CATALOGS}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param("/_faults/tertiary", "fault=ok", 400, id="no-such-catalog"),
        pytest.param("/_faults/primary", "fault=rain", 400, id="no-such-fault"),
        pytest.param("/_faults/primary", "", 400, id="no-fault"),
        pytest.param("/_faults/primary", "fault=" + "x" * 2000, 400, id="too-long"),
        pytest.param("/primary/items/P001", "", 404, id="no-such-route"),
    ],
)
def test_nonsense_switches_nothing(
    catalogs: CatalogServer, catalogs_url: str, path: str, body: str, status: int
) -> None:
    """A wrong name is refused and changes nothing."""
    before = catalogs.switchboard.as_dict()
    assert post(f"{catalogs_url}{path}", body) == status
    assert catalogs.switchboard.as_dict() == before


def test_calls_of_many_threads_are_counted() -> None:
    """No call is lost when many ask at once."""
    switchboard = Switchboard()
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        for _ in range(200):
            switchboard.answer("primary", ("P001",))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert switchboard.as_dict()["primary"]["calls"] == 1600


# ------------------------------------------------------------------------------------------------ recorded replies


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """A directory of recorded replies: a found one, one of another item, one with a status, one of another API."""
    files = {"a.json": b'[{"recorded": 1}]', "b.html": b"<p>no</p>", "c.json": b"{}"}
    for name, body in files.items():
        (tmp_path / name).write_bytes(body)
    index = [
        {"file": "a.json", "status": 200, "headers": {"content-type": "application/json", "x-limit": "5"}},
        {"file": "b.html", "status": "403", "headers": {"content-type": "text/html"}},
        {"file": "c.json", "status": 200, "headers": {}},
    ]
    checks = [
        {"file": "b.html", "adapter": "openbd", "asked": "9784063879179", "expect": "stop"},
        {"file": "a.json", "adapter": "openbd", "asked": "978-4-06-387917-9", "expect": "found"},
        {"file": "b.html", "adapter": "openlibrary", "asked": "2070464237", "expect": "stop"},
        {"file": "a.json", "adapter": "openbd", "asked": ["9784063879179", "9780000000002"], "expect": ["found"]},
        {"file": "missing.json", "adapter": "openbd", "asked": "9784535585744", "expect": "found"},
        {"file": "c.json", "adapter": "musicbrainz", "asked": "4582515778491", "expect": "stop"},
    ]
    (tmp_path / "index.json").write_text(json.dumps(index))
    (tmp_path / "checks.json").write_text(json.dumps(checks))
    return tmp_path


def test_recorded_replies_are_sent_unchanged(recordings: Path) -> None:
    """Body, status and headers are those of the record; a found one wins; an ISBN-10 is filed under its ISBN-13."""
    assert recorded.load(recordings) == {
        ("openbd", "9784063879179"): Answer(200, b'[{"recorded": 1}]', "application/json", {"X-Limit": "5"}),
        ("open_library", "9782070464234"): Answer(403, b"<p>no</p>", "text/html", {}),
    }


@pytest.mark.parametrize(
    ("catalog", "asked", "filed"),
    [
        ("openbd", "978-4-06-387917-9", "9784063879179"),
        ("open_food_facts", "3017624010701", "03017624010701"),
        ("crossref", "https://doi.org/10.3892/IJO_00000353", "10.3892/ijo_00000353"),
        ("datacite", "10.2312/GEO", "10.2312/geo"),
    ],
)
def test_recorded_replies_are_filed_under_the_normal_form(catalog: str, asked: str, filed: str) -> None:
    """The ID as the adapters ask for it."""
    assert recorded.filed_as(catalog, asked) == filed


def test_recorded_replies_replace_the_written_ones(recordings: Path) -> None:
    """A recorded ISBN answers with the record, any other one as usual, and faults still work."""
    switchboard = Switchboard(recorded.load(recordings))
    assert switchboard.answer("openbd", ("9784063879179",)).body == b'[{"recorded": 1}]'
    assert json.loads(switchboard.answer("openbd", ("9780000000002",)).body) == [None]
    switchboard.switch("openbd", "empty")
    assert json.loads(switchboard.answer("openbd", ("9784063879179",)).body) == [None]
