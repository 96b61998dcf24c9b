"""When may an expired entry be shown, until when, and what beats it?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from catalog_fallback import classify, services
from tests import loopback as wire
from tests.loopback import Loopback, Script
from tests.scripted import PATH
from tests.sites import ALSO_FOUND, FOUND, ITEM, NOT_FOUND, STOP, TEMPORARY, MovableClock, Site, found, story, words

TTL, EXTRA = 60, 300
INCOMPLETE = ("unavailable", "incomplete_search")


@pytest.fixture
def expired(site: Site, moving: MovableClock) -> Site:
    """A site that holds an expired item, and whose sources are down by now."""
    site.configure(STALE_IF_ERROR=EXTRA)
    site.say(FOUND)
    assert site.find().is_found
    moving.move(TTL + 1)
    site.say(TEMPORARY, TEMPORARY)
    return site


def is_stale(site: Site, **arguments: Any) -> bool:
    """Whether a lookup shows the expired entry; otherwise it shows no item at all."""
    lookup = site.find(**arguments)
    assert lookup.is_stale == (lookup.item is not None)
    assert lookup.is_stale or lookup.is_unavailable
    return lookup.is_stale


# --- what a stale answer is like ----------------------------------------------------------------------------------


def test_a_stale_answer(expired: Site) -> None:
    """Found, marked, with the original provenance and the trace of the search that failed."""
    lookup = expired.find()
    assert (words(lookup), lookup.cache, lookup.is_stale, lookup.is_found) == (("found", "ok"), "stale", True, True)
    assert (lookup.item, lookup.source, lookup.degraded) == (ITEM, "primary", False)
    assert lookup.expires_at is not None
    assert lookup.fetched_at is not None
    assert (lookup.expires_at - lookup.fetched_at).total_seconds() == TTL
    assert story(lookup) == [("primary", "temporary", "http_503"), ("secondary", "temporary", "http_503")]
    assert lookup.raise_for_state() == ITEM


def test_off_by_default(site: Site, moving: MovableClock) -> None:
    """Expired entries are not used unless the site says so."""
    site.say(FOUND)
    site.find()
    moving.move(TTL)
    site.say(TEMPORARY, TEMPORARY)
    assert not is_stale(site)


def test_switching_it_off_takes_effect_at_once(expired: Site) -> None:
    """What is configured now counts, not what was when the entry was made."""
    expired.configure(STALE_IF_ERROR=0)
    assert not is_stale(expired)
    expired.configure(STALE_IF_ERROR=EXTRA)
    assert is_stale(expired)


def test_a_fresh_answer_is_preferred(expired: Site) -> None:
    """Sources are asked first, however near the stale entry is."""
    expired.say(TEMPORARY, ALSO_FOUND)
    lookup = expired.find()
    assert (lookup.cache, lookup.source) == ("miss", "secondary")


# --- until when ---------------------------------------------------------------------------------------------------


def until(site: Site, moving: MovableClock, moment: float) -> None:
    """Put the clock to a moment."""
    from catalog_fallback import clock  # noqa: PLC0415  # the fixture has replaced its functions

    moving.move(moment - clock.wall())


def test_c1_the_moment_is_absolute(expired: Site, moving: MovableClock) -> None:
    """However often it is shown, the entry ends at fetched_at + TTL + STALE_IF_ERROR (FusionCache 212, 108, 229)."""
    fetched_at = expired.find().fetched_at
    assert isinstance(fetched_at, datetime)
    assert fetched_at.tzinfo is UTC
    start = fetched_at.timestamp()
    for moment in range(TTL + 30, TTL + EXTRA, 30):
        until(expired, moving, start + moment)
        assert is_stale(expired)
    until(expired, moving, start + TTL + EXTRA - 1)
    assert is_stale(expired)
    until(expired, moving, start + TTL + EXTRA)
    assert not is_stale(expired)
    until(expired, moving, start + 10 * EXTRA)
    assert not is_stale(expired)


def test_c2_a_short_staleness_does_not_shorten_freshness(site: Site, moving: MovableClock) -> None:
    """TTL an hour and ten seconds more: fresh for an hour, stale for ten seconds (FusionCache 115)."""
    site.configure(TTL=3600, STALE_IF_ERROR=10)
    site.say(FOUND)
    site.find()
    site.say(TEMPORARY, TEMPORARY)
    moving.move(3595)
    assert site.find().cache == "hit"
    moving.move(10)
    assert is_stale(site)
    moving.move(10)
    assert not is_stale(site)


def test_a_shortened_life_is_followed_by_staleness(site: Site, moving: MovableClock) -> None:
    """max-age=5 makes the item expire early; from there on it may be stale."""
    site.configure(STALE_IF_ERROR=10)
    site.say(found({"Cache-Control": "max-age=5"}))
    site.find()
    site.say(TEMPORARY, TEMPORARY)
    moving.move(6)
    assert is_stale(site)
    moving.move(10)
    assert not is_stale(site)


def test_c16_meziantou_3024_no_validators_are_needed(expired: Site) -> None:
    """An answer without ETag or Last-Modified is as good."""
    assert is_stale(expired)


# --- why ----------------------------------------------------------------------------------------------------------

#: Reasons of an unavailable lookup under which an expired entry may be shown …
ALLOWING = [
    "timeout",
    "connect_failed",
    "dns_failed",
    "connection_lost",
    "circuit_open",
    "rate_limited",
    "bulkhead_full",
    "isolated",
    "cooling_down",
    "deadline",
    "tls_failed",
    "invalid_http",
    "incomplete_body",
    *(f"http_{status}" for status in (429, 500, 501, 502, 503, 504, 505, 507, 511, 599)),
]
#: … and under which never.
FORBIDDING = [
    "too_large",
    "invalid_json",
    "invalid_schema",
    "invalid_item",
    "invalid_request",
    "unverifiable",
    "no_name",
    "source_error",
    *(f"http_{status}" for status in (204, 206, 302, 304, 400, 401, 403, 404, 405, 408, 410, 418, 451, 999)),
]


def test_the_matrix_has_every_reason_of_the_table() -> None:
    """A new reason has to be put into one of the two lists."""
    named = set(classify.REASONS) | {f"http_{status}" for status in classify.TEMPORARY_STATUSES}
    assert named - {"ok", "empty_result", "other_type"} <= {*ALLOWING, *FORBIDDING}


@pytest.fixture
def simulated(site: Site, moving: MovableClock) -> Site:
    """A site with an expired item of a simulated source."""
    site.simulate(None, STALE_IF_ERROR=EXTRA)
    assert site.find().is_found
    moving.move(TTL + 1)
    return site


def failure(reason: str) -> str | int:
    """A reason as a simulated source takes it."""
    return int(reason[5:]) if reason.startswith("http_") else reason


@pytest.mark.parametrize("reason", ALLOWING + FORBIDDING)
@pytest.mark.parametrize("is_allowed", [True, False], ids=["stale allowed", "not allowed"])
def test_c14_c15_h18_every_reason(simulated: Site, reason: str, is_allowed: bool) -> None:
    """Broken, busy or out of reach: stale where the site allows it. Any other stop: never."""
    simulated.simulate(failure(reason), failure(reason), STALE_IF_ERROR=EXTRA if is_allowed else 0)
    assert is_stale(simulated) is (is_allowed and reason in ALLOWING)


@pytest.mark.parametrize("reason", ["http_403", "invalid_item", "source_error"])
def test_one_forbidding_stop_is_enough(simulated: Site, reason: str) -> None:
    """It may come after a temporary outcome, or be passed on by NEXT_ON before one."""
    simulated.simulate("timeout", failure(reason), STALE_IF_ERROR=EXTRA)
    assert not is_stale(simulated)
    simulated.simulate(failure(reason), "timeout", STALE_IF_ERROR=EXTRA)
    assert not is_stale(simulated)


def test_an_error_of_the_adapter_forbids_it(expired: Site) -> None:
    """Our own bug is no outage."""
    expired.configure({"BACKEND": PATH + "FailsToParse"}, STALE_IF_ERROR=EXTRA)
    expired.say(FOUND)
    assert words(expired.find()) == ("unavailable", "source_error")


WIRES: dict[str, tuple[Script, bool]] = {
    "silence": (wire.silence, True),
    "closed": (wire.close_before_head, True),
    "reset": (wire.reset_before_head, True),
    "cut head": (wire.cut_head(), True),
    "cut body": (wire.cut_body(), True),
    "bad gzip": (wire.bad_gzip, True),
    "two lengths": (wire.two_content_lengths, True),
    **{f"{status}": (wire.reply(status), True) for status in (429, 500, 502, 503, 504)},
    **{f"{status}": (wire.reply(status), False) for status in (301, 401, 403, 404, 410)},
    "gzip bomb": (wire.gzip_bomb(8 << 20), False),
    "no JSON": (wire.reply(200, b"?"), False),
    "another item": (wire.ok({"item": {"id": "P002", "name": "Tea"}}), False),
}


@pytest.mark.parametrize("case", WIRES)
def test_undici_5507_on_the_wire(expired: Site, case: str) -> None:
    """Not only a 503: whatever keeps the source from answering (undici 5507)."""
    script, expected = WIRES[case]
    expired.configure({"TIMEOUT": 0.1}, {"TIMEOUT": 0.1}, STALE_IF_ERROR=EXTRA)
    expired.say(script, script)
    assert is_stale(expired) is expected


def test_undici_5507_nobody_listens_and_bad_certificates(expired: Site) -> None:
    """A refused connection, and a certificate that nobody vouches for."""
    with Loopback() as gone:
        pass
    expired.configure({"URL": gone.template}, {"URL": gone.template}, STALE_IF_ERROR=EXTRA)
    assert is_stale(expired)
    with Loopback(tls=True) as unknown:
        expired.configure({"URL": unknown.template}, STALE_IF_ERROR=EXTRA)
        assert is_stale(expired)


def test_the_budget_is_gone(expired: Site) -> None:
    """A deadline is a reason too: the visitor gets the old item in time."""
    expired.say(wire.silence, wire.silence)
    assert is_stale(expired, budget=0.1)


def test_a_used_up_budget_is_unavailable_at_once(expired: Site, moving: MovableClock) -> None:
    """With a shared budget that is gone nothing is read, not even the cache."""
    with services.time_budget(1):
        moving.move(1)
        assert words(expired.find()) == ("unavailable", "deadline")
    assert expired.calls == (1, 0)


# --- what beats it ------------------------------------------------------------------------------------------------


def test_h17_not_found_beats_a_stale_entry(expired: Site) -> None:
    """The item is gone: it is not shown, and its entry is removed (cache-subscriber 49, requests-cache)."""
    expired.say(NOT_FOUND, NOT_FOUND)
    assert words(expired.find()) == ("not_found", "all_not_found")
    expired.say(TEMPORARY, TEMPORARY)
    assert not is_stale(expired)


STATUS_TABLE = [
    (status, is_listed, extra, negative_ttl)
    for status in (401, 403, 404, 410, 429, 500, 503)
    for is_listed in (False, True)
    for extra in (0, EXTRA)
    for negative_ttl in (0, 30)
]


@pytest.mark.parametrize(("status", "is_listed", "extra", "negative_ttl"), STATUS_TABLE)
def test_requests_cache_761_status_times_stale_times_negative(
    site: Site, moving: MovableClock, status: int, is_listed: bool, extra: float, negative_ttl: float
) -> None:
    """Whether a status is documented as "no such item" decides; stale and negative caching only follow."""
    keys = {"STALE_IF_ERROR": extra, "NEGATIVE_TTL": negative_ttl}
    source = {"NOT_FOUND_STATUSES": [status]} if is_listed and status in {404, 410} else {}
    site.configure(source, source, **keys)
    site.say(FOUND)
    site.find()
    moving.move(TTL + 1)
    site.say(wire.reply(status), wire.reply(status))
    lookup = site.find()
    if source:
        assert words(lookup) == ("not_found", "all_not_found")
        assert site.find().cache == ("hit" if negative_ttl else "miss")
    elif extra and status in {429, 500, 503}:
        assert (words(lookup), lookup.cache) == (("found", "ok"), "stale")
    else:
        assert (lookup.is_unavailable, lookup.item) == (True, None)


def test_a_stopped_id_beats_everything(expired: Site) -> None:
    """Neither the expired entry nor an outage shows it."""
    services.stop_item("P001")
    assert words(expired.find()) == ("stopped", "stopped")


def test_c4_an_invalidated_entry_is_never_stale(expired: Site) -> None:
    """Forgotten is forgotten (FusionCache 648)."""
    services.invalidate_item("P001")
    assert not is_stale(expired)


def test_a_negative_entry_is_never_stale(site: Site, moving: MovableClock) -> None:
    """Yesterday's "no such item" is no answer of today."""
    site.configure(STALE_IF_ERROR=EXTRA, NEGATIVE_TTL=30)
    site.say(NOT_FOUND)
    site.find()
    moving.move(31)
    site.say(TEMPORARY, TEMPORARY)
    assert words(site.find()) == INCOMPLETE


DIRECTIVES: dict[str, bool] = {
    "": True,
    "max-age=60": True,
    "public": True,
    "must-revalidate": False,
    "proxy-revalidate": False,
    "max-age=60, must-revalidate": False,
    "no-store": False,
    "private": False,
    "no-cache": False,
}


@pytest.mark.parametrize("value", DIRECTIVES)
@pytest.mark.parametrize("is_respected", [True, False], ids=["respected", "ignored"])
def test_symfony_35305_the_upstream_may_forbid_it(
    site: Site, moving: MovableClock, value: str, is_respected: bool
) -> None:
    """Where its Cache-Control is respected, what it does not allow is not served stale."""
    site.configure(STALE_IF_ERROR=EXTRA, RESPECT_CACHE_CONTROL=is_respected)
    site.say(found({"Cache-Control": value} if value else {}))
    site.find()
    site.say(TEMPORARY, TEMPORARY)
    moving.move(TTL + 1)
    assert is_stale(site) is (DIRECTIVES[value] or not is_respected)


def test_an_entry_that_must_be_revalidated_is_fresh_until_it_expires(site: Site) -> None:
    """Only staleness is forbidden."""
    site.configure(STALE_IF_ERROR=EXTRA)
    site.say(found({"Cache-Control": "must-revalidate"}))
    site.find()
    site.say(STOP)
    assert site.find().cache == "hit"


def test_c8_the_old_item_comes_only_when_nobody_can_answer(expired: Site) -> None:
    """As long as a source is healthy, its answer is taken, however late (FusionCache PR 67)."""
    expired.say(wire.reset_before_head, ALSO_FOUND)
    assert expired.find().source == "secondary"


def test_c9_c10_after_the_outage_the_new_answer_wins(expired: Site) -> None:
    """Staleness ends with the first answer."""
    assert is_stale(expired)
    expired.say(ALSO_FOUND)
    assert expired.find().item == {"id": "P001", "name": "Coffee"}
    expired.say(TEMPORARY, TEMPORARY)
    assert expired.find().cache == "hit"
