"""Are noted lookups made again when they are due: once, ever more rarely, not for ever, and not against the guards?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connections, router

from catalog_fallback import conf, retrying, services, unanswered
from catalog_fallback.models import UnansweredItem
from catalog_fallback.retrying import Retried, retry
from catalog_fallback.testing import FrozenClock, fake_source
from tests.shops import Shop, later
from tests.sites import SIMULATED
from tests.test_transactions import OneDatabase

IDS = [f"P{number:03}" for number in range(1, 10)]


@pytest.fixture
def frozen(settings: Any, transactional_db: None) -> Iterator[FrozenClock]:
    """A clock that stands still."""
    with FrozenClock() as clock:
        yield clock


@pytest.fixture
def shop(settings: Any, frozen: FrozenClock) -> Shop:
    """P001 to P009 are there; what was asked is noted."""
    return Shop(settings, RETRY_LATER=True, NEGATIVE_TTL=60)


def fail_with(settings: Any, failure: int | str | None, max_parallel: int = 8, **keys: Any) -> None:
    """From now on every call ends so."""
    source = {"BACKEND": SIMULATED, "OPTIONS": {"failure": failure, "items": dict.fromkeys(IDS, "Tea")}}
    sources = {"only": {**source, "BREAKER": None, **keys}}
    Shop(settings, RETRY_LATER=True, SOURCES=sources, MAX_PARALLEL=max_parallel)


def note(*item_ids: str, **fields: Any) -> None:
    """Note these as due."""
    moment = unanswered.now()
    values = {"catalog": "default", "reason": "incomplete_search", "next_try_at": moment, "created_at": moment}
    for item_id in item_ids:
        UnansweredItem.objects.create(item_id=item_id, **{**values, **fields})


def run(**arguments: Any) -> Retried:
    """One run over the catalog."""
    return retry(conf.catalog("default"), **arguments)


def rows() -> dict[str, UnansweredItem]:
    """What is noted, by ID."""
    return {row.item_id: row for row in UnansweredItem.objects.all()}


# --- answers --------------------------------------------------------------------------------------------------------


def test_what_is_answered_is_forgotten(shop: Shop) -> None:
    """Found, not found and stopped are answers; each source was asked once for each."""
    services.stop_item("P003")
    note("P001", "P002", "P003", "NONE")
    assert run() == Retried(found=2, not_found=1, stopped=1)
    assert rows() == {}
    assert sorted(shop.asked) == ["NONE", "P001", "P002"]
    assert shop.find().cache == "hit"


def test_nothing_is_due(shop: Shop, frozen: FrozenClock) -> None:
    """What is noted for later waits, and what was given up stays."""
    note("P001", next_try_at=unanswered.now() + timedelta(seconds=1))
    note("P002", given_up_at=unanswered.now())
    note("P003", catalog="other")
    assert run() == Retried()
    frozen.advance(1)
    assert run() == Retried(found=1)
    assert set(rows()) == {"P002", "P003"}


def test_an_answer_that_somebody_else_got_counts(shop: Shop) -> None:
    """It is in the cache: nobody is asked again."""
    shop.find()
    note("P001")
    shop.asked.clear()
    assert run() == Retried(found=1)
    assert (rows(), shop.asked) == ({}, [])


def test_language_and_variant_are_asked_for(settings: Any, frozen: FrozenClock) -> None:
    """As they were noted."""
    asked: list[tuple[str, Any]] = []

    Shop(settings, RETRY_LATER=True, SOURCES={"only": fake_source({"P001": "Tea"}, URL="https://x.example/{id}?a={a}")})
    real = services.find_items

    def find_items(item_ids: list[str], **how: Any) -> Any:
        asked.extend((each, (how["language"], how["vary"])) for each in item_ids)
        return real(item_ids, **how)

    note("P001", language="de", vary='{"a":"1"}')
    note("P001", language="de", vary='{"a":"2"}')
    note("P001", vary='{"a":"2"}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services, "find_items", find_items)
        assert run() == Retried(found=3)
    assert sorted(asked, key=str) == [
        ("P001", ("", {"a": "2"})),
        ("P001", ("de", {"a": "1"})),
        ("P001", ("de", {"a": "2"})),
    ]


@pytest.mark.parametrize(
    "fields",
    [{"item_id": "no id"}, {"item_id": "P001", "vary": '{"unknown":"1"}'}, {"item_id": "P001", "vary": "garbage"}],
    ids=["ID", "variant", "garbage"],
)
def test_what_the_settings_no_longer_take_is_given_up(shop: Shop, fields: dict[str, str]) -> None:
    """And does not keep the others from being asked."""
    note(fields.pop("item_id"), **fields)
    note("P002")
    assert run() == Retried(found=1, given_up=1)
    (row,) = rows().values()
    assert (row.reason, row.given_up_at) == ("invalid_query", unanswered.now())


# --- back-off and giving up -----------------------------------------------------------------------------------------


def test_ever_more_rarely(settings: Any, frozen: FrozenClock) -> None:
    """Each pause is between half and the whole of a time that doubles, to six hours at most."""
    fail_with(settings, 503)
    note("P001")
    pauses = []
    for attempt in range(1, 15):
        assert run() == Retried(unavailable=1)
        row = rows()["P001"]
        assert (row.attempts, row.reason, row.given_up_at) == (attempt, "incomplete_search", None)
        pauses.append((row.next_try_at - unanswered.now()).total_seconds())
        assert run() == Retried()
        frozen.advance(pauses[-1] + 0.001)  # microseconds are rounded on the way through the database
        UnansweredItem.objects.update(created_at=unanswered.now())
    for attempt, seconds in enumerate(pauses, 1):
        longest = min(60 * 2**attempt, 6 * 3600)
        assert longest / 2 <= seconds <= longest
    assert len({round(seconds / min(60 * 2**n, 21600), 6) for n, seconds in enumerate(pauses, 1)}) > 1


def test_it_is_given_up_after_so_many_tries(settings: Any, frozen: FrozenClock) -> None:
    """The row stays for people to see, and is not tried again."""
    fail_with(settings, 403)
    note("P001", attempts=retrying.MAX_ATTEMPTS - 1)
    assert run() == Retried(given_up=1)
    row = rows()["P001"]
    assert (row.attempts, row.reason, row.given_up_at) == (20, "http_403", unanswered.now())
    frozen.advance(7 * 3600)
    assert run() == Retried()
    services.find_item("P001")
    assert rows()["P001"].given_up_at == row.given_up_at


def test_it_is_given_up_at_an_age(shop: Shop, frozen: FrozenClock) -> None:
    """A week, however often it was tried; a month later the row goes."""
    note("P001", next_try_at=unanswered.now() + timedelta(days=20))
    frozen.advance(retrying.MAX_AGE.total_seconds() + 1)
    note("P002")
    assert run() == Retried(found=1, given_up=1)
    assert rows()["P001"].given_up_at == unanswered.now()
    frozen.advance(retrying.KEEP_GIVEN_UP.total_seconds())
    run()
    assert set(rows()) == {"P001"}
    frozen.advance(1)
    run()
    assert rows() == {}


def test_a_stale_item_is_no_answer(settings: Any, frozen: FrozenClock) -> None:
    """It is tried again."""
    shop = Shop(settings, RETRY_LATER=True, STALE_IF_ERROR=600)
    shop.find()
    frozen.advance(61)
    catalog = {**settings.CATALOG_FALLBACK["default"], "SOURCES": {"only": fake_source(failure=503)}}
    settings.CATALOG_FALLBACK = {"default": catalog}
    note("P001")
    assert run() == Retried(unavailable=1)
    assert rows()["P001"].reason == "incomplete_search"


# --- guards ---------------------------------------------------------------------------------------------------------


def test_nobody_is_called_whom_the_guards_forbid(settings: Any, frozen: FrozenClock) -> None:
    """Every source refuses: it ends at once, no row is touched, and no try is counted."""
    fail_with(settings, 429)
    services.find_item("P009")
    note("P001", "P002")
    before = list(UnansweredItem.objects.values())
    assert run() == Retried(left=2, nobody_answers=True)
    assert list(UnansweredItem.objects.values()) == before


def test_it_ends_when_the_limit_is_reached(settings: Any, frozen: FrozenClock) -> None:
    """What was taken and not tried is put off, without counting as a try; what was not taken stays due."""
    fail_with(settings, None, 5, RATE_LIMIT={"CALLS": 3, "PER": 3600})
    note(*IDS)
    result = run()
    assert result == Retried(found=3, not_tried=2, left=4, nobody_answers=True)
    assert result.unanswered == 6
    assert {row.attempts for row in rows().values()} == {0}
    put_off = [row for row in rows().values() if row.next_try_at > unanswered.now()]
    assert len(put_off) == 2


def test_retry_after_is_kept(settings: Any, frozen: FrozenClock) -> None:
    """A source that says when to come back is not asked before."""
    fail_with(settings, 429, 1)
    note("P001", "P002", "P003")
    assert run() == Retried(unavailable=1, left=2, nobody_answers=True)
    run_of = retrying._Run(conf.catalog("default"))
    (row,) = run_of.take(1)
    run_of._give_back(row, 500)
    again = rows()[row.item_id]
    assert (again.attempts, again.next_try_at) == (0, unanswered.now() + timedelta(seconds=500))


def test_a_limit(shop: Shop) -> None:
    """The longest due first; the rest is no failure."""
    for minutes, item_id in enumerate(IDS):
        note(item_id, next_try_at=unanswered.now() - timedelta(minutes=minutes))
    result = run(limit=3)
    assert (result, result.unanswered) == (Retried(found=3, left=6), 0)
    assert sorted(shop.asked) == IDS[-3:]


# --- several at once ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alias", ["default", "postgres"])
@pytest.mark.django_db(transaction=True, databases="__all__")
def test_two_runs_share_the_work(
    settings: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, alias: str
) -> None:
    """Both have read before either writes, where the database lets them: nobody is asked for twice."""
    if alias != "default":
        request.getfixturevalue(alias)
    monkeypatch.setattr(router, "routers", [OneDatabase(alias)])
    shop = Shop(settings, RETRY_LATER=True)
    UnansweredItem.objects.all().delete()
    note(*IDS)
    real, turns = retrying._Run._claim, itertools.count()
    other: list[Any] = []

    def claim(self: Any, row: UnansweredItem) -> bool:
        if next(turns) == 0:
            other.append(later(run))
            result = other[0]()
            assert result.found in ({1, 2, 3, 4, 5, 6, 7, 8, 9} if alias == "default" else {1})
        return real(self, row)

    monkeypatch.setattr(retrying._Run, "_claim", claim)
    mine = run()
    assert mine.found + other[0]().found == 9
    assert sorted(shop.asked) == IDS
    assert rows() == {}
    connections[alias].close()


def test_a_row_that_another_run_has_just_taken(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading and writing: it is theirs, though they have no answer yet."""
    note("P001", "P002", "P003")
    mine, other = retrying._Run(conf.catalog("default")), retrying._Run(conf.catalog("default"))
    real, taken = retrying._Run._claim, []

    def claim(self: Any, row: UnansweredItem) -> bool:
        if self is mine and not taken:
            taken.extend(other.take(2) or [])
        return real(self, row)

    monkeypatch.setattr(retrying._Run, "_claim", claim)
    assert [row.item_id for row in mine.take(3) or []] == ["P003"]
    assert [row.item_id for row in taken] == ["P001", "P002"]
    assert mine.take(3) is None


def test_a_run_that_is_killed_loses_nothing(shop: Shop, frozen: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had taken is due again after a pause."""
    note("P001", "P002")

    def killed(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(services, "find_items", killed)
        with pytest.raises(KeyboardInterrupt):
            run()
    assert run() == Retried()
    frozen.advance(120)
    assert run() == Retried(found=2)


def test_moments_of_the_clock_that_is_in_force(frozen: FrozenClock) -> None:
    """Tests move it, and databases with and without time zones take it."""
    assert isinstance(unanswered.now(), datetime)
    assert unanswered.now().timestamp() == frozen.wall()
