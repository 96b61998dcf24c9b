"""Does a whole lookup end as the table of states says, after the number of calls that the worked cases name?"""

from __future__ import annotations

from typing import Any

import pytest

from catalog_fallback import services
from catalog_fallback.results import Reply, State
from tests import loopback as wire
from tests.loopback import Script
from tests.scripted import PATH, Programmed
from tests.sites import ALSO_FOUND, FOUND, ITEM, NOT_FOUND, STOP, TEMPORARY, MovableClock, Site, story, words

INCOMPLETE = ("unavailable", "incomplete_search")

#: What the two servers do → state and reason, calls.
WORKED: dict[str, tuple[Script, Script, tuple[str, str], tuple[int, int]]] = {
    "found": (FOUND, ALSO_FOUND, ("found", "ok"), (1, 0)),
    "not found, found": (NOT_FOUND, ALSO_FOUND, ("found", "ok"), (1, 1)),
    "temporary, found": (TEMPORARY, ALSO_FOUND, ("found", "ok"), (1, 1)),
    "not found, not found": (NOT_FOUND, NOT_FOUND, ("not_found", "all_not_found"), (1, 1)),
    "temporary, not found": (TEMPORARY, NOT_FOUND, INCOMPLETE, (1, 1)),
    "not found, temporary": (NOT_FOUND, TEMPORARY, INCOMPLETE, (1, 1)),
    "temporary, temporary": (TEMPORARY, TEMPORARY, INCOMPLETE, (1, 1)),
    "stop": (STOP, ALSO_FOUND, ("unavailable", "http_403"), (1, 0)),
    "temporary, stop": (TEMPORARY, STOP, ("unavailable", "http_403"), (1, 1)),
    "not found, stop": (NOT_FOUND, STOP, ("unavailable", "http_403"), (1, 1)),
}


@pytest.mark.parametrize("case", WORKED)
def test_worked_cases(site: Site, case: str) -> None:
    """State, reason and calls, and what goes with them."""
    primary, secondary, expected, calls = WORKED[case]
    site.say(primary, secondary)
    lookup = site.find()
    assert (words(lookup), site.calls) == (expected, calls)
    assert len(lookup.trace) == sum(calls)
    assert lookup.cache == "miss"
    assert (lookup.item is not None) == lookup.is_found == (lookup.source is not None)
    assert not lookup.degraded


def test_the_budget_is_used_up_by_the_first_source(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time-out that was the end of the budget ends the lookup: the next source is not called."""
    site.configure(BUDGET=0.15)
    site.say(wire.silence, ALSO_FOUND)
    lookup = site.find()
    assert (words(lookup), site.calls) == (("unavailable", "deadline"), (1, 0))
    assert story(lookup)[0] == ("primary", "temporary", "timeout")
    assert [(attempt.source, attempt.called) for attempt in lookup.trace[1:]] == [("secondary", False)]


def test_a_fresh_entry_takes_no_call(site: Site) -> None:
    """The second lookup is a hit."""
    site.say(FOUND)
    first, second = site.find(), site.find()
    assert (words(second), second.cache, second.trace, site.calls) == (("found", "ok"), "hit", (), (1, 0))
    assert (second.item, second.source) == (first.item, first.source)


@pytest.mark.parametrize("stop_check", ["cache", "database"])
@pytest.mark.parametrize("was_kept", [True, False], ids=["kept", "not kept"])
def test_a_stopped_id_takes_no_call(site: Site, stop_check: str, was_kept: bool) -> None:
    """Neither the cache nor a source is believed."""
    site.configure(STOP_CHECK=stop_check)
    site.say(FOUND, ALSO_FOUND)
    if was_kept:
        site.find()
    before = site.calls
    services.stop_item("P001")
    for lookup in (site.find(), site.find(), site.find(refresh=True)):
        assert (words(lookup), lookup.item, site.calls) == (("stopped", "stopped"), None, before)


def test_a_stop_is_for_its_catalog_only(site: Site, settings: Any) -> None:
    """Another catalog may know another item under the same ID."""
    one = settings.CATALOG_FALLBACK["default"]
    settings.CATALOG_FALLBACK = {"default": one, "other": one}
    site.say(FOUND)
    services.stop_item("P001", catalog="other")
    assert site.find().is_found
    assert site.find(catalog="other").is_stopped


def test_a_negative_entry(site: Site) -> None:
    """A kept "no such item" is a hit too."""
    site.configure(NEGATIVE_TTL=30)
    site.say(NOT_FOUND)
    site.find()
    lookup = site.find()
    assert (words(lookup), lookup.cache, lookup.trace, site.calls) == (
        ("not_found", "all_not_found"),
        "hit",
        (),
        (1, 1),
    )


#: NEXT_ON of the first and of the second source, what they say → state and reason, calls.
NEXT_ON: dict[str, tuple[Any, Any, Script, Script, tuple[str, str], tuple[int, int]]] = {
    "authoritative: not found": ([], None, NOT_FOUND, ALSO_FOUND, ("not_found", "all_not_found"), (1, 0)),
    "authoritative: temporary": ([], None, TEMPORARY, ALSO_FOUND, INCOMPLETE, (1, 0)),
    "authoritative: stop": ([], None, STOP, ALSO_FOUND, ("unavailable", "http_403"), (1, 0)),
    "authoritative: found": ([], None, FOUND, ALSO_FOUND, ("found", "ok"), (1, 0)),
    "only temporary goes on": (["temporary"], None, NOT_FOUND, ALSO_FOUND, ("not_found", "all_not_found"), (1, 0)),
    "only not found goes on": (["not_found"], None, TEMPORARY, ALSO_FOUND, INCOMPLETE, (1, 0)),
    "a reason goes on": (["http_403"], None, STOP, ALSO_FOUND, ("found", "ok"), (1, 1)),
    "another reason does not": (["http_401"], None, STOP, ALSO_FOUND, ("unavailable", "http_403"), (1, 0)),
    "a stop passed on, nothing": (["stop"], None, STOP, NOT_FOUND, ("unavailable", "http_403"), (1, 1)),
    "a stop passed on, temporary": (["stop"], None, STOP, TEMPORARY, INCOMPLETE, (1, 1)),
    "a stop passed on, found": (["stop"], None, STOP, ALSO_FOUND, ("found", "ok"), (1, 1)),
    "a stop passed on, another stop": (["stop"], None, STOP, wire.reply(404), ("unavailable", "http_404"), (1, 1)),
    "an authority after a temporary": (None, [], TEMPORARY, NOT_FOUND, INCOMPLETE, (1, 1)),
    "an authority after a passed stop": (["stop"], [], STOP, NOT_FOUND, ("unavailable", "http_403"), (1, 1)),
    "an authority after nothing": (None, [], NOT_FOUND, NOT_FOUND, ("not_found", "all_not_found"), (1, 1)),
    "everything goes on": (
        ["not_found", "temporary", "stop"],
        ["not_found", "temporary", "stop"],
        STOP,
        wire.reply(404),
        ("unavailable", "http_403"),
        (1, 1),
    ),
}


@pytest.mark.parametrize("case", NEXT_ON)
def test_next_on(site: Site, case: str) -> None:
    """NEXT_ON says after what the next source is asked; what it ends is decided by what came before."""
    first, second, primary, secondary, expected, calls = NEXT_ON[case]
    keys = [{} if each is None else {"NEXT_ON": each} for each in (first, second)]
    site.configure(*keys)
    site.say(primary, secondary)
    lookup = site.find()
    assert (words(lookup), site.calls) == (expected, calls)


def test_documented_statuses_of_every_source_make_a_not_found(site: Site) -> None:
    """Only where each source's documentation says so is a 404 "no such item"."""
    documented = {"NOT_FOUND_STATUSES": [404]}
    site.say(wire.reply(404), wire.reply(404))
    site.configure(documented)
    assert words(site.find()) == ("unavailable", "http_404")
    assert site.calls == (1, 1)
    site.configure(documented, documented)
    assert words(site.find()) == ("not_found", "all_not_found")


def test_go_32715_a_403_is_never_not_found(site: Site) -> None:
    """A proxy in the way is not the catalog."""
    site.configure({"NOT_FOUND_STATUSES": [404]}, {"NOT_FOUND_STATUSES": [404]})
    site.say(wire.reply(404), wire.reply(403))
    assert words(site.find()) == ("unavailable", "http_403")


def test_temporary_reasons_go_on(site: Site) -> None:
    """A stop that a site calls temporary lets the next source answer."""
    site.say(wire.reply(500), ALSO_FOUND)
    assert words(site.find()) == ("unavailable", "http_500")
    site.configure({"TEMPORARY_REASONS": ["http_500"]})
    assert site.find().source == "secondary"
    site.say(wire.reply(500), NOT_FOUND)
    assert words(site.find(refresh=True)) == INCOMPLETE


def test_order(site: Site) -> None:
    """ORDER, not the dict's order, says who is asked first."""
    site.configure(ORDER=["secondary", "primary"])
    site.say(FOUND, ALSO_FOUND)
    assert site.find().source == "secondary"
    assert site.calls == (0, 1)


def test_a_disabled_source_does_not_count(site: Site) -> None:
    """It is neither asked, nor in the trace, nor needed for a not_found."""
    site.configure({"ENABLED": False})
    site.say(TEMPORARY, NOT_FOUND)
    lookup = site.find()
    assert (words(lookup), site.calls) == (("not_found", "all_not_found"), (0, 1))
    assert [attempt.source for attempt in lookup.trace] == ["secondary"]


def test_a_source_is_asked_at_most_once(site: Site) -> None:
    """Nobody retries behind the chain's back, whatever goes wrong."""
    site.say(wire.reset_before_head, wire.close_before_head)
    assert words(site.find()) == INCOMPLETE
    assert site.calls == (1, 1)


WAITS: dict[str, tuple[Script, Script, float | None]] = {
    "503": (wire.reply(503, headers={"Retry-After": "7"}), TEMPORARY, 7.0),
    "the earlier of two": (
        wire.reply(503, headers={"Retry-After": "70"}),
        wire.reply(503, headers={"Retry-After": "7"}),
        7.0,
    ),
    "429": (wire.reply(429, headers={"Retry-After": "9"}), NOT_FOUND, 9.0),
    "decimals are rounded up": (wire.reply(503, headers={"Retry-After": "0.493"}), TEMPORARY, 1.0),
    "an hour at most": (wire.reply(503, headers={"Retry-After": "9999999999"}), TEMPORARY, 3600.0),
    "garbage": (wire.reply(503, headers={"Retry-After": "1m0s"}), TEMPORARY, None),
    "nothing said": (TEMPORARY, TEMPORARY, None),
    "not of a 404": (wire.reply(404, headers={"Retry-After": "7"}), NOT_FOUND, None),
    "not of an answer": (wire.reply(503, headers={"Retry-After": "7"}), ALSO_FOUND, None),
}


@pytest.mark.parametrize("case", WAITS)
def test_urllib3_1338_retry_after_is_told_and_never_slept(
    site: Site, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unavailable lookup says when a new try could end differently; nobody sleeps for it."""
    primary, secondary, expected = WAITS[case]
    monkeypatch.setattr("catalog_fallback.clock.sleep", lambda seconds: pytest.fail("slept"))
    site.say(primary, secondary)
    lookup = site.find()
    assert lookup.retry_after == expected
    assert site.calls[0] == 1


def test_the_lookup_ends_when_its_time_is_over_between_two_sources(
    site: Site, moving: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A "no such item" in time, then no time for the second source: unavailable, not not_found."""

    def late(timeout: float) -> Reply:
        moving.move(0.999 if len(Programmed.timeouts) == 1 else 0.01)
        return Reply(200, {}, b'{"item": null}')

    monkeypatch.setattr(Programmed, "program", staticmethod(late))
    monkeypatch.setattr(Programmed, "timeouts", [])
    programmed = {"BACKEND": PATH + "Programmed"}
    site.configure(programmed, programmed, BUDGET=1.0)
    assert words(site.find()) == ("unavailable", "deadline")


def test_provenance_of_an_answer(site: Site) -> None:
    """Who answered, when, and until when it is fresh."""
    site.say(NOT_FOUND, ALSO_FOUND)
    lookup = site.find()
    assert lookup.source == "secondary"
    assert lookup.fetched_at is not None
    assert lookup.expires_at is not None
    assert (lookup.expires_at - lookup.fetched_at).total_seconds() == pytest.approx(60)
    assert story(lookup) == [("primary", "not_found", "empty_result"), ("secondary", "found", "ok")]


def test_the_item_is_kept_as_it_came(site: Site) -> None:
    """Further fields are the site's business, fetched and from the cache."""
    item = {**ITEM, "price": 1.5, "tags": ["a", {"b": None}], "title": "Thé 茶"}
    site.say(wire.ok({"item": item}))
    assert site.find().item == item
    assert site.find().item == item
    assert site.calls[0] == 1


def test_unavailable_has_no_provenance(site: Site) -> None:
    """Nothing was fetched."""
    site.say(TEMPORARY, NOT_FOUND)
    lookup = site.find()
    assert (lookup.state, lookup.fetched_at, lookup.expires_at) == (State.UNAVAILABLE, None, None)
