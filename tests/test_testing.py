"""Does the kit for users' tests do what it says? Above all: does its contract catch adapters that are broken?"""

from __future__ import annotations

import json
import time
import unittest
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from django.conf import settings as django_settings
from django.test import SimpleTestCase, override_settings

from catalog_fallback import classify, clock, conf
from catalog_fallback.conf.registry import parse
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Outcome, Reply, Verdict
from catalog_fallback.services import find_item
from catalog_fallback.sources.base import Source
from catalog_fallback.sources.json_item import JSONItemSource
from catalog_fallback.testing import FakeSource, FrozenClock, SourceContract, fake_source, override_catalog
from catalog_fallback.testing.bodies import without_name
from tests.sites import story, words

GOOD = b'{"item": {"id": "P001", "name": "Blue teapot", "tags": ["tea", "ok"]}}'


# --- adapters that keep or break the contract --------------------------------------------------------------------


class TestTheRealThing(SourceContract):
    """The default adapter keeps the contract; so do all others (``tests/sources``)."""

    source_class = JSONItemSource
    item_id = "P001"
    good_body = GOOD
    not_found_bodies = (b'{"item": null}',)


class Broken(JSONItemSource):
    """A good adapter into which one mistake is put."""


class BelievesEveryItem(Broken):
    """Takes what it gets."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        verdict = classify.by_status(reply, clock.wall())
        if verdict is not None:
            return verdict
        try:
            item = json.loads(reply.body.decode("utf-8-sig"))["item"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return classify.verdict("invalid_json")
        return classify.found({**item, "id": item_id}) if isinstance(item, dict) else classify.verdict("empty_result")


class TakesErrorsForNotFound(Broken):
    """The mistake that this package is about."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        verdict = super().parse(reply, item_id)
        return verdict if verdict.outcome is Outcome.FOUND else classify.verdict("empty_result")


class TrustsA404(Broken):
    """Takes the status for an answer."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        return classify.verdict("empty_result") if reply.status in (404, 410) else super().parse(reply, item_id)


class IgnoresStatus(Broken):
    """Reads any body."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        return super().parse(Reply(200, reply.headers, reply.body), item_id)


class DislikesBOM(Broken):
    """Compares the first byte."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        return classify.verdict("invalid_json") if reply.body[:1] == b"\xef" else super().parse(reply, item_id)


class Raises(Broken):
    """Has a bug that a strange body brings to light."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        return super().parse(reply, item_id) if json.loads(reply.body) else classify.verdict("invalid_schema")


class ReadsRetryAfterItself(Broken):
    """Thinks that Retry-After is a number."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        verdict = super().parse(reply, item_id)
        wait = reply.headers.get("retry-after")
        return Verdict(verdict.outcome, verdict.reason, verdict.item, None if wait is None else float(wait[:20]))


class WaitsForEver(Broken):
    """Believes any Retry-After."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        verdict = super().parse(reply, item_id)
        return Verdict(verdict.outcome, verdict.reason, verdict.item, 1e9 if "retry-after" in reply.headers else None)


class CallsInItsOwnWay(Broken):
    """Goes round the transport, as careless code does; ``requests`` limits the pauses, not the call."""

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        give_up_at = time.monotonic() + 2.2
        request = self.request(item_id, language, vary)
        with requests.get(request.url, timeout=2.2, stream=True) as response:
            body = b""
            while (piece := response.raw.read1(65_536, decode_content=True)) and time.monotonic() < give_up_at:
                body += piece
            return Reply(response.status_code, {}, body.strip() or GOOD)


class AsksTwice(Broken):
    """Thinks that a second call cannot hurt."""

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        reply = super().fetch(item_id, language, vary, timeout=timeout / 2)
        super().fetch(item_id, language, vary, timeout=timeout / 2)
        return reply


class RemembersTheFirst(Broken):
    """Has only one answer."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        verdict = super().parse(reply, "P001")
        return verdict if verdict.outcome is not Outcome.FOUND else Verdict(Outcome.FOUND, "ok", {"id": item_id})


class KeepsObjects(Broken):
    """Puts something into the item that no cache can keep."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        verdict = super().parse(reply, item_id)
        return verdict if verdict.item is None else classify.found({**verdict.item, "tags": ("tea", "ok")})


class NeverNotFound(Broken):
    """Does not know its API's signal."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        verdict = super().parse(reply, item_id)
        return classify.verdict("invalid_schema") if verdict.outcome is Outcome.NOT_FOUND else verdict


class ForgetsTheVerdict(Broken):
    """Returns nothing."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        return None  # type: ignore[return-value]


class NamesTheUnnamed(Broken):
    """Makes a name up."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        body = reply.body.replace(b'"name": ""', b'"name": "Unnamed"')
        return super().parse(Reply(reply.status, reply.headers, body), item_id)


ALL = {name for name in dir(SourceContract) if name.startswith("test_")}
#: Broken adapter → the tests that have to fail, and no others.
MISTAKES: dict[type[Source], set[str]] = {
    BelievesEveryItem: {"test_wrong_id", "test_unnamed_item", "test_strange_bodies", "test_damage"},
    TakesErrorsForNotFound: {
        *("test_wrong_id", "test_unnamed_item", "test_redirect", "test_html_503", "test_error_statuses"),
        *("test_retry_after_garbage", "test_login_page", "test_soft_404", "test_strange_bodies", "test_damage"),
    },
    TrustsA404: {"test_error_statuses"},
    IgnoresStatus: {"test_error_statuses", "test_html_503", "test_retry_after_garbage"},
    DislikesBOM: {"test_bom"},
    Raises: {
        *("test_redirect", "test_html_503", "test_error_statuses", "test_retry_after_garbage", "test_login_page"),
        *("test_strange_bodies", "test_damage"),
    },
    ReadsRetryAfterItself: {"test_retry_after_garbage"},
    WaitsForEver: {"test_retry_after_garbage"},
    CallsInItsOwnWay: {
        *("test_drip", "test_stall", "test_reset", "test_cut_body", "test_gzip_bomb", "test_redirect"),
    },
    RemembersTheFirst: {
        *("test_good_body_is_found", "test_item_can_be_kept", "test_wrong_id", "test_unnamed_item"),
        *("test_good_reply_over_http", "test_bom", "test_damage"),
    },
    AsksTwice: {"test_redirect"},
    KeepsObjects: {"test_item_can_be_kept"},
    NeverNotFound: {"test_not_found_bodies"},
    ForgetsTheVerdict: ALL - {"test_drip", "test_stall", "test_reset", "test_cut_body", "test_gzip_bomb"},
    NamesTheUnnamed: {"test_unnamed_item"},
}


def failures(adapter: type[Source]) -> set[str]:
    """Return the tests of the contract that an adapter does not pass."""

    class Contract(TestTheRealThing):
        source_class = adapter
        short_limit = 0.1

    failed = set()
    for name in sorted(ALL):
        try:
            getattr(Contract(), name)()
        except Exception:  # noqa: BLE001  # a failed test, whatever it raises
            failed.add(name)
        except AssertionError:
            failed.add(name)
    return failed


@pytest.mark.parametrize("adapter", MISTAKES, ids=lambda adapter: adapter.__name__)
def test_contract_catches_the_mistake(adapter: type[Source]) -> None:
    """Each broken adapter fails the tests that are about its mistake."""
    assert failures(adapter) == MISTAKES[adapter]


def test_every_test_of_the_contract_can_fail() -> None:
    """None of them is there for show."""
    assert set().union(*MISTAKES.values()) == ALL


def test_failure_is_said_in_words() -> None:
    """Without pytest's rewriting: the adapter, what was tried, what it has to be and what it was."""

    class Contract(TestTheRealThing):
        source_class = TrustsA404

    with pytest.raises(AssertionError, match=r"TrustsA404: status 404 .* has to be stop, not .*empty_result"):
        Contract().test_error_statuses()


def test_call_that_ends_late_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one that says "timeout" in the end."""
    moments = iter([0.0, 60.0])
    monkeypatch.setattr("catalog_fallback.testing.contract.time", SimpleNamespace(monotonic=lambda: next(moments)))
    with pytest.raises(AssertionError, match=r"A call limited to 0\.3 seconds took 60\.0\."):
        TestTheRealThing().test_stall()


class TestSoft404ThatIsDocumented(SourceContract):
    """An API whose own signal is one of those that mean nothing elsewhere."""

    source_class = JSONItemSource
    options = {"not_found_when": {"success": False}}  # noqa: RUF012  # ClassVar in the base class
    item_id = "P001"
    good_body = GOOD
    not_found_bodies = (b'{"success": false}',)


def test_without_name_ends() -> None:
    """Also where the adapter finds one name after the other."""
    names = [f"name {n}" for n in range(60)]
    made = without_name(
        json.dumps(names).encode(),
        lambda body: {"id": "P001", "name": next(name for name in json.loads(body) if name)},
    )
    assert json.loads(made) == [""] * 50 + names[50:]


@pytest.mark.parametrize("name", ["Blue teapot: ok", "P001"])
def test_without_name_leaves_the_rest_alone(name: str) -> None:
    """Only texts that the name holds as words of its own are emptied, and never the ID."""
    document = {"id": "P001", "title": name.partition(":")[0], "sub": "ok", "note": "book", "n": [1, None, "&#66;lue"]}
    made = without_name(
        json.dumps(document).encode(),
        lambda body: {"id": "P001", "name": name} if json.loads(body)["title"] == document["title"] else None,
    )
    expected = {**document, "title": "", "sub": "", "n": [1, None, ""]} if ":" in name else document
    assert json.loads(made) == expected


# --- settings for one test ---------------------------------------------------------------------------------------


def catalogs() -> dict[str, Any]:
    """Return the setting as it is now."""
    return django_settings.CATALOG_FALLBACK


def test_override_catalog_replaces_keys_of_one_catalog() -> None:
    """Other keys and other catalogs stay; everything is as before afterwards."""
    before = catalogs()
    with override_catalog(TTL=5), override_catalog("books", SOURCES={"fake": fake_source()}, TTL=7):
        assert catalogs()["default"] == {**before["default"], "TTL": 5}
        assert conf.catalog("default").ttl == 5
        assert conf.catalog("books").ttl == 7
    assert catalogs() is before
    assert conf.catalog("default").ttl == 60


@override_catalog(TTL=9)
def test_override_catalog_decorates_functions() -> None:
    """As Django's own does."""
    assert conf.catalog("default").ttl == 9


def test_override_catalog_decorates_test_cases() -> None:
    """For the whole class, over the settings of the class before it."""

    @override_catalog("books", SOURCES={"fake": fake_source()})
    @override_catalog(TTL=11)
    class Case(SimpleTestCase):
        def runTest(self) -> None:  # noqa: N802  # unittest's name
            self.assertEqual(conf.catalog("default").ttl, 11)  # noqa: PT009  # a unittest case
            self.assertEqual(list(conf.catalog("books").sources)[0].alias, "fake")  # noqa: PT009, RUF015

    result = unittest.TestResult()
    unittest.TestSuite([Case()]).run(result)
    assert result.testsRun == 1
    assert result.wasSuccessful(), result.failures + result.errors


def test_override_catalog_without_any_setting() -> None:
    """A site that has no catalog yet gets one."""
    with override_settings(CATALOG_FALLBACK=None), override_catalog(SOURCES={"fake": fake_source()}):
        assert conf.catalog("default").ttl == 60


# --- fake sources ------------------------------------------------------------------------------------------------


def sources(**fakes: Mapping[str, Any]) -> Any:
    """Return the override that asks these fakes, in a cache of its own."""
    return override_catalog(SOURCES=fakes)


@pytest.fixture
def own_cache(settings: Any, transactional_db: None) -> None:
    """An empty cache and stop list."""
    name = f"testing-{time.monotonic_ns()}"
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": name}}


@pytest.mark.usefixtures("own_cache")
def test_fake_sources_in_a_lookup() -> None:
    """Items, failures and what was asked."""
    asked: list[str] = []
    first = fake_source(failing={"P001": 503}, asked=asked)
    with sources(first=first, second=fake_source({"P001": "Tea", "P002": {"name": "Pot", "price": 3}})):
        lookup = find_item("P001")
        assert (words(lookup), lookup.source, asked) == (("found", "ok"), "second", ["P001"])
        assert story(lookup)[0] == ("first", "temporary", "http_503")
        assert find_item("P002").item == {"id": "P002", "name": "Pot", "price": 3}
        assert words(find_item("P003")) == ("not_found", "all_not_found")


@pytest.mark.usefixtures("own_cache")
def test_fake_source_with_a_script() -> None:
    """One reply a call, then the items."""
    script = [403, "timeout", NoReply("dns_failed"), Reply(200, {}, b"<html>")]
    with sources(only=fake_source({"P001": "Tea"}, replies=script)):
        reasons = [find_item("P001").reason for _ in script]
        assert words(find_item("P001")) == ("found", "ok")
    assert reasons == ["http_403", "incomplete_search", "incomplete_search", "invalid_json"]


@pytest.mark.usefixtures("own_cache")
def test_the_picture_of_the_module() -> None:
    """The example in the module's docstring."""
    asked: list[str] = []
    with override_catalog(SOURCES={"fake": fake_source(items={"P001": "Tea"}, asked=asked)}), FrozenClock() as frozen:
        assert find_item("P001").is_found
        frozen.advance(61)
        assert find_item("P001").is_found
    assert asked == ["P001", "P001"]


def test_fake_source_takes_further_keys() -> None:
    """What it returns is right for SOURCES, without a complaint."""
    made = fake_source({"P001": "Tea"}, failure="timeout", NEXT_ON=[], TIMEOUT=1)
    found, complaints = parse({"default": {"SOURCES": {"fake": made}}})
    assert complaints == []
    assert found["default"].sources[0].next_on == frozenset()
    assert conf.build_source(found["default"].sources[0]).asked == []  # type: ignore[attr-defined]


def test_fake_source_alone() -> None:
    """Without a script and a list it notes its calls itself."""
    source = FakeSource(SourceConfig("fake"), items={"P001": "Tea"}, failure=None)
    reply = source.fetch("P001", "", {}, timeout=1)
    assert isinstance(reply, Reply)
    assert source.parse(reply, "P001").outcome is Outcome.FOUND
    assert source.asked == ["P001"]


# --- a clock to move ---------------------------------------------------------------------------------------------


def test_frozen_clock() -> None:
    """It stands still, moves when told to or when somebody waits, and gives the machine's clock back."""
    before = clock.monotonic
    with FrozenClock(now=1000) as frozen:
        assert (clock.wall(), clock.wall()) == (1000, 1000)
        started_at = clock.monotonic()
        clock.sleep(5)
        frozen.advance(2.5)
        assert (clock.wall(), clock.monotonic() - started_at, frozen.slept) == (1007.5, 7.5, [5])
        frozen.step_wall(-7)
        assert (clock.wall(), clock.monotonic() - started_at) == (1000.5, 7.5)
        with pytest.raises(ValueError, match="forwards"):
            frozen.advance(-1)
    assert clock.monotonic is before
