"""Does one reply mean, in a whole lookup over a real connection, what the classification table says?"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from catalog_fallback.results import Lookup, Reply
from tests import loopback as wire
from tests.loopback import Loopback, Script
from tests.scripted import GOOD, PATH, Programmed
from tests.sites import ALSO_FOUND, FOUND, ITEM, Site, story
from tests.sites import MovableClock as Clock

LATE = {"TIMEOUT": 0.15, "CONNECT_TIMEOUT": 0.15}


def body(data: bytes) -> Script:
    """A complete 200 with this body."""
    return wire.reply(200, data)


def item(**fields: Any) -> Script:
    """A complete envelope with these fields of the item."""
    return wire.ok({"item": fields})


#: What the first source's server does → outcome and reason of the attempt.
REPLIES: dict[str, tuple[Script, str, str]] = {
    "item": (FOUND, "found", "ok"),
    "item, chunked": (wire.ok({"item": ITEM}, framing="chunked"), "found", "ok"),
    "item, until the end": (wire.ok({"item": ITEM}, framing="close"), "found", "ok"),
    "item, gzip": (wire.compressed({"item": ITEM}), "found", "ok"),
    "item with a BOM": (body(b"\xef\xbb\xbf" + GOOD), "found", "ok"),
    "null": (wire.ok({"item": None}), "not_found", "empty_result"),
    "closed before the head": (wire.close_before_head, "temporary", "connection_lost"),
    "reset before the head": (wire.reset_before_head, "temporary", "connection_lost"),
    "head cut off": (wire.cut_head(), "temporary", "connection_lost"),
    **{f"{status}": (wire.reply(status), "temporary", f"http_{status}") for status in (502, 503, 504)},
    **{
        f"{status}": (wire.reply(status), "stop", f"http_{status}")
        for status in (201, 202, 204, 206, 299, 301, 304, 308, 400, 401, 403, 404, 405, 408, 409, 410, 418, 425, 429)
    },
    **{f"{status}": (wire.reply(status), "stop", f"http_{status}") for status in (451, 500, 501, 505, 507, 511, 999)},
    "404 with the envelope of nothing": (wire.reply(404, {"item": None}), "stop", "http_404"),
    "500 with an item": (wire.reply(500, {"item": ITEM}), "stop", "http_500"),
    "bad status line": (wire.bad_status_line, "stop", "invalid_http"),
    "oversized head": (wire.huge_head, "stop", "invalid_http"),
    "malformed head": (wire.raw(b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"), "stop", "invalid_http"),
    "two lengths": (wire.two_content_lengths, "stop", "invalid_http"),
    "body cut short": (wire.cut_body(), "stop", "incomplete_body"),
    "chunks cut short": (wire.cut_body("chunked"), "stop", "incomplete_body"),
    "reset in the body": (wire.reset_in_body, "stop", "incomplete_body"),
    "bad coding": (wire.bad_gzip, "stop", "incomplete_body"),
    "coding cut short": (wire.cut_gzip, "stop", "incomplete_body"),
    "body too large": (body(b" " * 1_048_577), "stop", "too_large"),
    "too large once unpacked": (wire.gzip_bomb(8 << 20), "stop", "too_large"),
    "empty body": (body(b""), "stop", "invalid_json"),
    "HTML": (body(b"<html>Sorry!</html>"), "stop", "invalid_json"),
    "not UTF-8": (body(GOOD.replace(b"Tea", b"Th\xe9")), "stop", "invalid_json"),
    "NaN": (body(GOOD.replace(b'"Tea"', b'"Tea", "price": NaN')), "stop", "invalid_json"),
    "Infinity": (body(GOOD.replace(b'"Tea"', b'"Tea", "price": Infinity')), "stop", "invalid_json"),
    "absurd float": (body(GOOD.replace(b'"Tea"', b'"Tea", "price": 1e999')), "stop", "invalid_json"),
    "absurd integer": (body(GOOD.replace(b'"Tea"', b'"Tea", "n": ' + b"9" * 5000)), "stop", "invalid_json"),
    "nested too deep": (body(GOOD.replace(b'"Tea"', b'"Tea", "n": ' + b"[" * 9999)), "stop", "invalid_json"),
    "lone surrogate": (body(GOOD.replace(b"Tea", rb"\ud800")), "stop", "invalid_json"),
    "item twice": (body(b'{"item": null, "item": null}'), "stop", "invalid_json"),
    "id twice": (body(GOOD.replace(b'"name"', b'"id": "P001", "name"')), "stop", "invalid_json"),
    "name twice": (body(GOOD.replace(b'"name"', b'"name": "Tea", "name"')), "stop", "invalid_json"),
    "no envelope": (wire.ok([]), "stop", "invalid_schema"),
    "envelope of something else": (wire.ok({"error": "no such item"}), "stop", "invalid_schema"),
    "item is a list": (wire.ok({"item": [ITEM]}), "stop", "invalid_schema"),
    "item is false": (wire.ok({"item": False}), "stop", "invalid_schema"),
    "another item": (item(id="P002", name="Tea"), "stop", "invalid_item"),
    "ID in another case": (item(id="p001", name="Tea"), "stop", "invalid_item"),
    "item without an ID": (item(name="Tea"), "stop", "invalid_item"),
    "item without a name": (item(id="P001"), "stop", "invalid_item"),
    "blank name": (item(id="P001", name=" \u3000\u200b"), "stop", "invalid_item"),
    "name is a number": (item(id="P001", name=7), "stop", "invalid_item"),
}
#: Rows that can end differently over TLS, or that are worth a second look there.
OVER_TLS = ["item", "item, until the end", "null", "head cut off", "503", "404", "two lengths", "chunks cut short"]


def check(lookup: Lookup, calls: tuple[int, int], outcome: str, reason: str) -> None:
    """The first attempt is as expected, and the second source was asked only where it may be."""
    assert story(lookup)[0] == ("primary", outcome, reason)
    assert lookup.trace[0].called
    if outcome in {"temporary", "not_found"}:
        assert story(lookup)[1:] == [("secondary", "found", "ok")]
        assert (lookup.source, lookup.item, calls[1]) == ("secondary", {"id": "P001", "name": "Coffee"}, 1)
        return
    assert (len(lookup.trace), calls[1]) == (1, 0)
    if outcome == "found":
        assert (lookup.source, lookup.item) == ("primary", ITEM)
    else:
        assert (str(lookup.state), lookup.reason, lookup.item) == ("unavailable", reason, None)


@pytest.mark.parametrize("case", REPLIES)
def test_every_row_of_the_table(site: Site, case: str) -> None:
    """One call to the first source; what it means decides whether the second is asked."""
    script, outcome, reason = REPLIES[case]
    site.say(script, ALSO_FOUND)
    lookup = site.find()
    check(lookup, site.calls, outcome, reason)
    assert site.calls[0] == 1


@pytest.fixture
def https(site: Site, trusted_ca: str) -> Iterator[Loopback]:
    """The site's first source, over TLS."""
    with Loopback(tls=True) as server:
        site.configure(primary={"URL": server.template})
        site.secondary.otherwise(ALSO_FOUND)
        yield server


@pytest.mark.parametrize("case", OVER_TLS)
def test_rows_over_tls(site: Site, https: Loopback, case: str) -> None:
    """TLS changes nothing of the table."""
    script, outcome, reason = REPLIES[case]
    https.otherwise(script)
    check(site.find(), site.calls, outcome, reason)
    assert https.calls() == 1


def test_a_cut_without_length_over_tls(site: Site, https: Loopback) -> None:
    """The end of a body without a length is marked by TLS; without the mark it is no end."""
    https.otherwise(wire.cut_body("close"))
    check(site.find(), site.calls, "stop", "incomplete_body")


SLOW: dict[str, Script] = {
    "silence": wire.silence,
    "head drips": wire.drip_head,
    "body drips": wire.drip_body(),
    "chunks drip": wire.drip_body("chunked"),
    "trailers drip": wire.drip_trailers,
}


@pytest.mark.parametrize("case", SLOW)
def test_f1_slow_servers_are_timeouts(site: Site, case: str) -> None:
    """The call's own limit ends it, and the next source is asked."""
    site.configure(primary=LATE)
    site.say(SLOW[case], ALSO_FOUND)
    check(site.find(), site.calls, "temporary", "timeout")


def test_a_stalled_handshake_is_a_timeout(site: Site, trusted_ca: str) -> None:
    """TLS counts into the limits as well."""
    with Loopback(tls=True, handshake=False) as server:
        site.configure(primary={"URL": server.template, **LATE})
        site.secondary.otherwise(ALSO_FOUND)
        check(site.find(), site.calls, "temporary", "timeout")


def test_nobody_listens(site: Site) -> None:
    """A refused connection is connect_failed."""
    with Loopback() as server:
        pass
    site.configure(primary={"URL": server.template})
    site.secondary.otherwise(ALSO_FOUND)
    check(site.find(), site.calls, "temporary", "connect_failed")


def test_a_host_without_address(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that does not resolve is dns_failed."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "no such host")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    site.configure(primary={"URL": "http://nowhere.example/items/{id}"})
    site.secondary.otherwise(ALSO_FOUND)
    check(site.find(), site.calls, "temporary", "dns_failed")


def test_an_unknown_authority(site: Site) -> None:
    """A certificate that nobody vouches for is a stop: another source must not paper over it."""
    with Loopback(tls=True) as server:
        site.configure(primary={"URL": server.template})
        site.secondary.otherwise(ALSO_FOUND)
        check(site.find(), site.calls, "stop", "tls_failed")
        assert server.calls() == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_h67_redirects_are_never_followed(site: Site, status: int) -> None:
    """Neither the other server nor the second source hears of it."""
    with Loopback() as trap:
        site.say(wire.redirect(trap.url("/items/P001"), status), ALSO_FOUND)
        check(site.find(), site.calls, "stop", f"http_{status}")
        assert trap.calls() == 0


BROKEN_ADAPTERS = ["FailsToAsk", "FailsToParse", "SaysNothing"]


@pytest.mark.parametrize("name", BROKEN_ADAPTERS)
def test_a_broken_adapter_is_logged(site: Site, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """It ends the search, with a traceback in the log and nothing of it in the answer."""
    site.configure(primary={"BACKEND": PATH + name})
    site.say(FOUND, ALSO_FOUND)
    check(site.find(), site.calls, "stop", "source_error")
    assert [record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"] == [True]


CARELESS: dict[str, Any] = {
    "nothing": None,
    "a list": [ITEM],
    "another item": {"id": "P002", "name": "Tea"},
    "no ID": {"name": "Tea"},
    "no name": {"id": "P001"},
    "a blank name": {"id": "P001", "name": "\t"},
    "an invisible name": {"id": "P001", "name": "\u200b\u2060"},
    "a name that is a number": {"id": "P001", "name": 7},
}


@pytest.mark.parametrize("case", CARELESS)
def test_a_careless_adapter_cannot_show_another_item(site: Site, case: str) -> None:
    """Below every adapter there is one more check of ID and name."""
    site.configure(primary={"BACKEND": PATH + "Careless", "OPTIONS": {"item": CARELESS[case]}})
    site.say(FOUND, ALSO_FOUND)
    check(site.find(), site.calls, "stop", "invalid_item")


def test_an_answer_after_the_deadline_is_never_adopted(
    site: Site, moving: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a good item comes too late once the budget is gone, and it is not kept either."""

    def late(timeout: float) -> Reply:
        moving.move(1.0)
        return Reply(200, {}, GOOD)

    monkeypatch.setattr(Programmed, "program", staticmethod(late))
    site.configure(primary={"BACKEND": PATH + "Programmed"}, BUDGET=1.0)
    lookup = site.find()
    check(lookup, site.calls, "stop", "deadline")
    assert site.find().cache == "miss"


#: Reasons that guards and other adapters give, in the words of the table.
FURTHER: dict[str, str] = {
    **dict.fromkeys(["circuit_open", "rate_limited", "bulkhead_full", "isolated"], "temporary"),
    **dict.fromkeys(["unverifiable", "no_name", "invalid_request", "unheard_of"], "stop"),
    "other_type": "not_found",
}


@pytest.mark.parametrize("reason", FURTHER)
def test_further_reasons(site: Site, reason: str) -> None:
    """Whoever gives a reason of the table, it means the same; one that is not in it is a stop."""
    site.simulate(reason, None)
    lookup = site.find()
    goes_on = FURTHER[reason] in {"temporary", "not_found"}
    assert story(lookup) == [("primary", FURTHER[reason], reason), ("secondary", "found", "ok")][: 1 + goes_on]


SETTINGS: dict[str, tuple[Script, dict[str, Any], str, str]] = {
    "404 is documented": (wire.reply(404), {"NOT_FOUND_STATUSES": [404, 410]}, "not_found", "http_404"),
    "410 is documented": (wire.reply(410), {"NOT_FOUND_STATUSES": [404, 410]}, "not_found", "http_410"),
    "403 is not": (wire.reply(403), {"NOT_FOUND_STATUSES": [404, 410]}, "stop", "http_403"),
    "500 may pass": (wire.reply(500), {"TEMPORARY_REASONS": ["http_500"]}, "temporary", "http_500"),
    "cut bodies may pass": (
        wire.cut_body(),
        {"TEMPORARY_REASONS": ["incomplete_body"]},
        "temporary",
        "incomplete_body",
    ),
    "bad JSON may pass": (body(b"?"), {"TEMPORARY_REASONS": ["invalid_json"]}, "temporary", "invalid_json"),
    "429 may pass": (wire.reply(429), {"TEMPORARY_REASONS": ["http_429"]}, "temporary", "http_429"),
    "other reasons stay": (wire.reply(501), {"TEMPORARY_REASONS": ["http_500"]}, "stop", "http_501"),
    "larger bodies": (wire.ok({"item": ITEM}), {"MAX_BYTES": 10}, "stop", "too_large"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_a_source_change_the_table(site: Site, case: str) -> None:
    """NOT_FOUND_STATUSES, TEMPORARY_REASONS and MAX_BYTES do what they say, for their source."""
    script, keys, outcome, reason = SETTINGS[case]
    site.configure(primary=keys)
    site.say(script, ALSO_FOUND)
    check(site.find(), site.calls, outcome, reason)


def test_the_attempt_says_how_long_it_took(site: Site, moving: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is measured with the monotonic clock, in milliseconds."""

    def slow(timeout: float) -> Reply:
        moving.move(0.25)
        return Reply(200, {}, GOOD)

    monkeypatch.setattr(Programmed, "program", staticmethod(slow))
    site.configure(primary={"BACKEND": PATH + "Programmed"})
    assert 250 <= site.find().trace[0].elapsed_ms < 350
