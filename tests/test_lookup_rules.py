"""Are the rules of a lookup kept: clear errors before anything happens, one budget, one key a question, only GET?"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from catalog_fallback import services
from catalog_fallback.exceptions import CatalogError, InvalidItemID, UnknownCatalog
from catalog_fallback.results import NoReply
from catalog_fallback.services import explain_item, find_item
from catalog_fallback.sources import resolver
from tests import loopback as wire
from tests.loopback import Loopback, Script
from tests.scripted import PATH, Programmed
from tests.sites import ALSO_FOUND, FOUND, MovableClock, Site, words

# --- bad arguments: an error, and nobody is asked ------------------------------------------------------------------

BAD_IDS: dict[str, Any] = {
    "empty": "",
    "blank": " ",
    "lower case": "p001",
    "33 characters": "A" * 33,
    "a line break at the end": "P001\n",
    "dot": ".",
    "two dots": "..",
    "path": "../P001",
    "slash": "A/B",
    "question mark": "A?B",
    "hash": "A#B",
    "encoded slash": "A%2FB",
    "NUL": "P001\x00",
    "full-width": "Ｐ００１",
    "digits of another script": "P٠٠١",
    "half a surrogate": "P\ud800",
    "none": None,
    "number": 1,
    "bytes": b"P001",
    "list": ["P001"],
    "very long": "p" * 100_000,
}
VERBS: dict[str, Callable[[Any], Any]] = {
    "find": find_item,
    "explain": explain_item,
    "invalidate": services.invalidate_item,
    "stop": services.stop_item,
    "release": services.release_item,
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("case", BAD_IDS)
def test_h69_a_bad_id_is_an_error_of_the_caller(site: Site, case: str, verb: str) -> None:
    """The message names the catalog and the setting, is short, and nobody is asked."""
    with pytest.raises(InvalidItemID) as caught:
        VERBS[verb](BAD_IDS[case])
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "'default'" in message
    assert "ID_PATTERN" in message
    assert len(message) < 300
    assert message.isprintable()
    assert site.calls == (0, 0)


@pytest.mark.parametrize("item_id", [".", ".."])
def test_dots_are_refused_whatever_the_pattern_says(site: Site, item_id: str) -> None:
    """They survive percent-encoding and would climb out of the path."""
    site.configure(ID_PATTERN=r".+")
    with pytest.raises(InvalidItemID):
        site.find(item_id)
    assert site.calls == (0, 0)


@pytest.mark.parametrize(
    "budget",
    [0, 0.0, -1, 0.0009, float("nan"), float("inf"), True, False, "1", b"1", [], Decimal(1), timedelta(0)],
    ids=str,
)
def test_a_bad_budget_is_a_value_error(site: Site, budget: Any) -> None:
    """0 is not "the default", and a bool is no number."""
    with pytest.raises(ValueError, match="budget="):
        site.find(budget=budget)
    with pytest.raises(ValueError, match="budget="), services.time_budget(budget):
        pass
    assert site.calls == (0, 0)


@pytest.mark.parametrize("budget", [0.001, 1, 1.5, timedelta(seconds=1), timedelta(milliseconds=1), None], ids=str)
def test_a_good_budget_is_none(site: Site, budget: Any) -> None:
    """A millisecond is the least; numbers and timedeltas are both fine."""
    assert site.find(budget=budget).reason in {"http_404", "deadline", "incomplete_search"}


BAD_VARIANTS: dict[str, tuple[dict[str, Any], str]] = {
    "language is no string": ({"language": 5}, "language=5"),
    "language is not ASCII": ({"language": "français"}, "language="),
    "language is long": ({"language": "x" * 65}, "language="),
    "unknown name": ({"vary": {"size": "l", "colour": "red"}}, "colour"),
    "missing name": ({"vary": {}}, "size"),
    "nothing at all": ({}, "size"),
    "no string": ({"vary": {"size": 5}}, "size"),
    "a line break": ({"vary": {"size": "l\r\nX-Evil: 1"}}, "size"),
    "half a surrogate": ({"vary": {"size": "\ud800"}}, "size"),
    "a way out of the path": ({"vary": {"size": ".."}}, "size"),
    "a language that is a way out": ({"language": "..", "vary": {"size": "l"}}, "language="),
    "no mapping": ({"vary": ["size"]}, "vary="),
    "a string": ({"vary": "size"}, "vary="),
}


@pytest.mark.parametrize("case", BAD_VARIANTS)
def test_a_bad_variant_is_a_value_error(site: Site, case: str) -> None:
    """What is not part of the question is named, instead of being left out."""
    arguments, words_of_message = BAD_VARIANTS[case]
    site.configure(primary={"URL": site.primary.origin + "/{size}/{id}"})
    with pytest.raises(ValueError, match=words_of_message):
        site.find(**arguments)
    assert site.calls == (0, 0)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("catalog", ["other", "", "Default", None, 5])
def test_an_unknown_catalog_is_an_error(site: Site, catalog: Any, verb: str) -> None:
    """Every verb says so, before anything else."""
    with pytest.raises(UnknownCatalog) as caught:
        VERBS[verb]("P001", catalog=catalog)  # type: ignore[call-arg]
    assert isinstance(caught.value, LookupError)
    assert isinstance(caught.value, CatalogError)


# --- one budget ----------------------------------------------------------------------------------------------------


def test_each_call_gets_its_limit_or_what_is_left(
    site: Site, moving: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``min(source limit, what is left of the budget)``, measured when the call begins."""

    def slow(timeout: float) -> NoReply:
        moving.move(timeout)
        return NoReply("timeout")

    monkeypatch.setattr(Programmed, "program", staticmethod(slow))
    monkeypatch.setattr(Programmed, "timeouts", [])
    site.configure(*[{"BACKEND": PATH + "Programmed", "TIMEOUT": 2.0}] * 2, BUDGET=3.0)
    lookup = site.find()
    assert Programmed.timeouts == pytest.approx([2.0, 1.0], abs=0.05)
    assert words(lookup) == ("unavailable", "deadline")


def test_polly_1340_a_call_does_not_shrink_the_next_ones_limit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source with a short limit of its own takes nothing from the next."""
    monkeypatch.setattr(Programmed, "program", staticmethod(lambda timeout: NoReply("connect_failed")))
    monkeypatch.setattr(Programmed, "timeouts", [])
    backend = {"BACKEND": PATH + "Programmed"}
    site.configure({**backend, "TIMEOUT": 0.1}, {**backend, "TIMEOUT": 1.5}, BUDGET=5.0)
    site.find()
    assert Programmed.timeouts == [0.1, 1.5]


BUDGET = 0.2
#: Milliseconds that a lookup may take beyond its budget, in seconds.
OVERSHOOT = 0.05
PATIENT = {"TIMEOUT": 20.0, "CONNECT_TIMEOUT": 20.0}
ROOMY = {**PATIENT, "MAX_BYTES": 1 << 30}

MISBEHAVING: dict[str, tuple[Script, dict[str, Any]]] = {
    "silence": (wire.silence, PATIENT),
    "head drips": (wire.drip_head, PATIENT),
    "body drips": (wire.drip_body(), PATIENT),
    "chunks drip": (wire.drip_body("chunked"), PATIENT),
    "body without length drips": (wire.drip_body("close"), PATIENT),
    "trailers drip": (wire.drip_trailers, PATIENT),
    "interim replies": (wire.flood_of_100_continue, PATIENT),
    "endless body": (wire.endless_body(), PATIENT),
    "endless chunks": (wire.endless_body("chunked"), PATIENT),
    "gzip bomb": (wire.gzip_bomb(), PATIENT),
    "gzip bomb, no limit": (wire.gzip_bomb(), ROOMY),
}


def overshoot(look_up: Callable[[], Any]) -> float:
    """The least of a few tries: a lookup that waits too long does so each time, a busy machine does not."""
    least = float("inf")
    for _ in range(4):
        started = time.monotonic()
        assert look_up().is_unavailable
        least = min(least, time.monotonic() - started - BUDGET)
        if least <= OVERSHOOT:
            break
    return least


@pytest.mark.parametrize("case", MISBEHAVING)
def test_httpx_1450_no_server_holds_a_lookup_past_its_budget(site: Site, case: str) -> None:
    """Whatever both servers do, the whole lookup ends with its budget."""
    script, keys = MISBEHAVING[case]
    site.configure(keys, keys, BUDGET=BUDGET)
    site.say(script, script)
    assert overshoot(site.find) <= OVERSHOOT


def test_a_stalled_handshake_holds_no_lookup(site: Site, trusted_ca: str) -> None:
    """The budget covers the handshake."""
    with Loopback(tls=True, handshake=False) as server:
        site.configure({"URL": server.template, **PATIENT}, {"URL": server.template, **PATIENT}, BUDGET=BUDGET)
        assert overshoot(site.find) <= OVERSHOOT


@pytest.fixture
def stalled_dns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A name server that does not answer before the test ends."""
    go_on = threading.Event()

    def stall(*args: Any, **kwargs: Any) -> Any:
        go_on.wait(20)
        raise socket.gaierror(socket.EAI_AGAIN, "at last")

    monkeypatch.setattr(resolver, "_resolvers", {})
    monkeypatch.setattr(socket, "getaddrinfo", stall)
    yield
    go_on.set()
    for thread in threading.enumerate():
        if thread.name.startswith("catalog-fallback-resolve"):
            thread.join(10)


def test_a_stalled_name_server_holds_no_lookup(site: Site, stalled_dns: None) -> None:
    """``getaddrinfo`` cannot be interrupted; the lookup does not wait for it."""
    url = {"URL": "http://stalled.example/items/{id}", **PATIENT}
    site.configure(url, url, BUDGET=BUDGET)
    assert overshoot(site.find) <= OVERSHOOT


def test_h55_hung_sources_cost_one_budget_together(site: Site) -> None:
    """Every source hangs: the budget is for all of them, not for each."""
    keys = {"TIMEOUT": BUDGET * 0.75}
    site.configure(keys, keys, BUDGET=BUDGET)
    site.say(wire.silence, wire.silence)
    assert overshoot(site.find) <= OVERSHOOT


def test_the_arguments_budget_wins_over_the_catalogs(site: Site) -> None:
    """Both ways: it may be longer or shorter."""
    site.configure(PATIENT, PATIENT, BUDGET=10)
    site.say(wire.silence)
    assert overshoot(lambda: site.find(budget=BUDGET)) <= OVERSHOOT
    site.configure(BUDGET=0.001)
    site.say(FOUND)
    assert site.find(budget=5).is_found


# --- one key a question --------------------------------------------------------------------------------------------


def test_languages_and_variants_are_different_questions(site: Site) -> None:
    """Each has its own entry and its own URL; one invalidation forgets them all."""
    site.configure(primary={"URL": site.primary.origin + "/{language}/{size}/{id}"}, LANGUAGE="en")
    site.say(FOUND)
    questions: list[dict[str, Any]] = [
        {"vary": {"size": "l"}},
        {"vary": {"size": "m"}},
        {"vary": {"size": "l"}, "language": "de"},
        {"vary": {"size": "l"}, "language": "e"},
        {"vary": {"size": "a/b ?#%"}},
    ]
    for _ in range(2):
        for question in questions:
            site.find(**question)
    targets = [request.target for request in site.primary.requests]
    assert targets == ["/en/l/P001", "/en/m/P001", "/de/l/P001", "/e/l/P001", "/en/a%2Fb%20%3F%23%25/P001"]
    services.invalidate_item("P001")
    assert [site.find(**question).cache for question in questions] == ["miss"] * 5


def test_the_catalogs_language_is_the_default(site: Site) -> None:
    """Asking for it by name is the same question."""
    site.configure(LANGUAGE="en")
    site.say(FOUND)
    site.find()
    assert [site.find(language=each).cache for each in ("en", None, "de")] == ["hit", "hit", "miss"]


def test_e8_prefix_and_version_keep_sites_apart(site: Site) -> None:
    """Two sites, or two versions of one, in the same cache do not read each other's entries."""
    site.say(FOUND)
    for keys in ({}, {"KEY_PREFIX": "other"}, {"VERSION": 2}, {"VERSION": "2a"}):
        site.configure(**keys)
        assert site.find().cache == "miss"
        assert site.find().cache == "hit"


def test_normal_forms_share_one_entry(site: Site) -> None:
    """NORMALIZE_ID runs before everything: one item, one key, one stop."""
    site.configure(NORMALIZE_ID="tests.test_lookup_rules.upper")
    site.say(FOUND)
    assert site.find("p001").item_id == "P001"
    assert site.find("P001").cache == "hit"
    services.stop_item("p001")
    assert site.find("P001").is_stopped


def upper(item_id: str) -> str:
    """A normal form of IDs."""
    return item_id.upper()


# --- GET, and nothing else -----------------------------------------------------------------------------------------


def test_get_only(site: Site) -> None:
    """Whatever happens, no other method goes over the wire, and no body."""
    site.configure(STALE_IF_ERROR=60, NEGATIVE_TTL=1)
    for script in (FOUND, wire.reply(405), wire.reply(503), wire.redirect("/elsewhere", 307), wire.close_before_head):
        site.say(script, ALSO_FOUND)
        site.find(refresh=True)
    received = site.primary.requests + site.secondary.requests
    assert {request.method for request in received} == {"GET"}
    assert {request.header("Content-Length") for request in received} == {None}
    assert {request.path for request in received} == {"/items/P001"}
