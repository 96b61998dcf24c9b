"""FALLBACK: are the site's own data shown when nobody answers, always named so, and never for a stopped item?"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import OperationalError
from django.utils.translation import gettext_lazy

from catalog_fallback import aftermath, services, signals, stop_list
from catalog_fallback.exceptions import ItemUnavailable
from catalog_fallback.models import StoppedItem
from catalog_fallback.results import CacheStatus, Lookup
from tests.shops import Shop, elsewhere, later
from tests.sites import MovableClock, Site, words

DATA = {"name": "Tea?", "tags": ["none"]}


def ask_for_data(lookup: Lookup) -> dict[str, Any]:
    """What a site might know by itself."""
    return {"id": lookup.item_id, "name": "Tea?", "why": lookup.reason}


def nothing(lookup: Lookup) -> None:
    """The site knows nothing of this item."""


def a_list(lookup: Lookup) -> list[str]:
    """Not what was asked for."""
    return ["Tea?"]


async def too_late(lookup: Lookup) -> dict[str, str]:
    """Nobody awaits it."""
    return {"name": "never"}


def broken(lookup: Lookup) -> dict[str, str]:
    """Fails, and says something that may be a secret."""
    raise KeyError(lookup.item_id * 3)


#: Each way in which a lookup of one item is made.
VERBS: dict[str, Callable[..., Lookup]] = {
    "find_item": services.find_item,
    "find_items": lambda item_id, **kwargs: services.find_items([item_id], **kwargs)[item_id],
    "afind_item": lambda item_id, **kwargs: asyncio.run(services.afind_item(item_id, **kwargs)),
    "afind_items": lambda item_id, **kwargs: asyncio.run(services.afind_items([item_id], **kwargs))[item_id],
}
every_verb = pytest.mark.parametrize("find", VERBS.values(), ids=VERBS)


@pytest.fixture
def shop(settings: Any, transactional_db: None) -> Shop:
    """A catalog whose one source times out."""
    return Shop(settings, FALLBACK=DATA, SOURCES=down())


def down(failure: str | int = "timeout", **keys: Any) -> dict[str, Any]:
    """One source that fails."""
    options = {"failure": failure, "items": {"P001": "Tea"}}
    return {"only": {"BACKEND": "catalog_fallback.sources.simulated.SimulatedSource", "OPTIONS": options, **keys}}


# --- what is shown --------------------------------------------------------------------------------------------------


@every_verb
def test_own_data_are_shown_and_named_so(shop: Shop, find: Callable[..., Lookup]) -> None:
    """State, reason and trace stay: it could not be found out."""
    lookup = find("P001")
    assert (words(lookup), lookup.item, lookup.degraded) == (("unavailable", "incomplete_search"), DATA, True)
    assert (lookup.cache, lookup.source, lookup.fetched_at, lookup.expires_at) == (CacheStatus.MISS, None, None, None)
    assert [attempt.reason for attempt in lookup.trace] == ["timeout"]
    assert lookup.as_dict()["degraded"] is True
    with pytest.raises(ItemUnavailable):
        lookup.raise_for_state()


@pytest.mark.parametrize("failure", ["timeout", "connect_failed", 503, 403, 404, 429, "tls_failed", "invalid_json"])
def test_for_whatever_reason_nobody_could_answer(site: Site, failure: str | int) -> None:
    """A stop too: that somebody has to look into it makes the page no better."""
    site.simulate(failure, FALLBACK=DATA)
    lookup = site.find()
    assert (lookup.is_unavailable, lookup.item, lookup.degraded) == (True, DATA, True)


def test_when_to_come_back_stays(site: Site) -> None:
    """A source that asked to be left alone says when."""
    site.simulate(429, FALLBACK=DATA)
    site.find()
    lookup = site.find("P002")
    assert lookup.trace[0].called is False
    assert lookup.degraded
    site.simulate(429)
    assert lookup.retry_after == pytest.approx(site.find("P002").retry_after, abs=2)


@every_verb
def test_when_the_budget_was_used_up_before(shop: Shop, find: Callable[..., Lookup], moving: MovableClock) -> None:
    """Nobody is asked, but the stop list."""
    with services.time_budget(1):
        moving.move(2)
        lookup = find("P001")
        assert (words(lookup), lookup.item) == (("unavailable", "deadline"), DATA)
        services.stop_item("P001")
        assert find("P001").is_stopped


def test_a_callable_is_told_the_lookup(shop: Shop, settings: Any) -> None:
    """And may know the item; it is named by its path or given itself."""
    for how in (ask_for_data, "tests.test_fallback_data.ask_for_data"):
        shop = Shop(settings, SOURCES=down(), FALLBACK=how)
        assert shop.find().item == {"id": "P001", "name": "Tea?", "why": "incomplete_search"}


@pytest.mark.parametrize("what", [nothing, a_list, broken, too_late], ids=lambda what: what.__name__)
def test_a_callable_without_data(settings: Any, transactional_db: None, caplog: Any, what: Any) -> None:
    """The lookup stays what it was; what is no mapping, or raises, is logged without what it says."""
    shop = Shop(settings, SOURCES=down(), FALLBACK=what)
    with caplog.at_level(logging.ERROR, "catalog_fallback"):
        lookup = shop.find()
    assert (words(lookup), lookup.item, lookup.degraded) == (("unavailable", "incomplete_search"), None, False)
    assert len(caplog.records) == (what is not nothing)
    assert "P001P001P001" not in caplog.text
    assert "FALLBACK of catalog 'default'" in caplog.text or what is nothing


def _circular() -> dict[str, Any]:
    data: dict[str, Any] = {"name": "Tea?"}
    data["itself"] = data
    return data


def _nested(depth: int) -> dict[str, Any]:
    data: dict[str, Any] = {"name": "SECRET"}
    for _ in range(depth):
        data = {"more": data}
    return data


class _Hostile(dict[str, Any]):
    """Cannot even be looked at."""

    def items(self) -> Any:
        """Raises, and says something that may be a secret."""
        raise RuntimeError("SECRET")

    keys = __iter__ = items  # type: ignore[assignment]


@pytest.mark.parametrize("how", ["dict", "callable"])
@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"name": "Tea?", ("SECRET", 1): "x"}, "the top (a key of type tuple)"),
        ({"name": "Tea?", "sizes": [{"of": {("SECRET",): 1}}]}, "['sizes'][0]['of'] (a key of type tuple)"),
        ({"name": "Tea?", "tags": {"SECRET"}}, "['tags'] (set)"),
        ({"name": "Tea?", "price": float("nan")}, "['price'] (float)"),
        ({"name": "Tea?", "prices": (1.0, float("-inf"))}, "['prices'][1] (float)"),
        ({"name": "Tea?", "cover": b"SECRET"}, "['cover'] (bytes)"),
        ({"name": "Tea?", "object": object()}, "['object'] (object)"),
        ({"name": "Tea\ud800"}, "['name'] (str)"),
        ({"name": "Tea?", "count": 1 << 1025}, "['count'] (int)"),
        ({"name": "Tea?", "x" * 41: {1, 2}}, f"['{'x' * 40}'] (set)"),
        (_circular(), "['itself']['itself']['itself']['itself'] (dict)"),
        (_nested(40), "['more']['more']['more']['more'] (dict)"),
        (_nested(5000), "['more']['more']['more']['more'] (dict)"),
        (_Hostile(name="Tea?"), "the top (_Hostile)"),
    ],
    ids=[
        "a tuple as a key",
        "such a key further in",
        "a set",
        "NaN",
        "infinity in a tuple",
        "bytes",
        "an object",
        "a lone surrogate",
        "an absurd number",
        "a long name",
        "circular",
        "too deep",
        "far too deep",
        "hostile",
    ],
)
def test_what_json_cannot_say_is_left_out(
    settings: Any, transactional_db: None, caplog: Any, data: dict[Any, Any], place: str, how: str
) -> None:
    """The lookup stays what it was; the log names the catalog and the place, and quotes no value."""
    shop = Shop(settings, SOURCES=down(), FALLBACK=data if how == "dict" else lambda _: data)
    with caplog.at_level(logging.ERROR, "catalog_fallback"):
        lookup = shop.find()
    assert (words(lookup), lookup.item, lookup.degraded) == (("unavailable", "incomplete_search"), None, False)
    (record,) = caplog.records
    assert "FALLBACK of catalog 'default' is left out" in record.getMessage()
    assert place in record.getMessage()
    assert "SECRET" not in caplog.text


def test_what_django_says_in_json_is_said(settings: Any, transactional_db: None) -> None:
    """Dates, exact numbers and translatable texts become what they are in JSON, and a tuple a list."""
    data = {"name": gettext_lazy("Yes"), "at": date(2026, 5, 3), "price": Decimal("1.50"), "sizes": (1, 2)}
    item = Shop(settings, SOURCES=down(), FALLBACK=lambda _: data).find().item
    assert item == {"name": "Yes", "at": "2026-05-03", "price": "1.50", "sizes": [1, 2]}
    assert type(item["name"]) is str


@pytest.mark.urls("catalog_fallback.urls")
@pytest.mark.parametrize("given", [{"tags": {1}}, [1], RuntimeError("SECRET")], ids=["a set", "a list", "an error"])
def test_the_item_view_survives_any_fallback(settings: Any, transactional_db: None, client: Any, given: Any) -> None:
    """503 as without it, and nothing of what it gave."""

    def own(lookup: Lookup) -> Any:
        if isinstance(given, Exception):
            raise given
        return given

    Shop(settings, SOURCES=down(), FALLBACK=own)
    response = client.get("/default/items/P001/")
    assert response.status_code == 503
    assert not {"item", "degraded", "tags"} & response.json().keys()
    assert b"SECRET" not in response.content


def test_nobody_shares_the_data_with_the_next_one(shop: Shop) -> None:
    """What a caller does to the item changes neither the settings nor the next one's."""
    item: Any = shop.find().item
    item["tags"].append("mine")
    item["price"] = 1
    assert shop.find().item == {"name": "Tea?", "tags": ["none"]}


# --- when it is not -------------------------------------------------------------------------------------------------


@every_verb
def test_an_answer_is_an_answer(settings: Any, transactional_db: None, find: Callable[..., Lookup]) -> None:
    """Found, not found and stopped need no data of the site's own."""
    Shop(settings, FALLBACK=DATA)
    services.stop_item("P002")
    for item_id, state in (("P001", "found"), ("NONE", "not_found"), ("P002", "stopped")):
        lookup = find(item_id)
        assert (lookup.state, lookup.degraded) == (state, False)


@every_verb
def test_a_stale_item_is_better(site: Site, moving: MovableClock, find: Callable[..., Lookup]) -> None:
    """It was somebody's answer once."""
    site.simulate(None, FALLBACK=DATA, STALE_IF_ERROR=600)
    site.find()
    moving.move(61)
    site.simulate("timeout", FALLBACK=DATA, STALE_IF_ERROR=600)
    lookup = find("P001")
    assert (lookup.is_stale, lookup.item["name"], lookup.degraded) == (True, "Tea", False)  # type: ignore[index]


def test_it_is_never_kept(shop: Shop, settings: Any) -> None:
    """As soon as somebody answers, that is the answer; nothing is in the cache before."""
    shop.find()
    services.find_items(["P001", "P002"])
    assert shop.entry() is None
    assert "Tea?" not in str([shop.shelf.read(key) for key in list(shop.shelf.values)])
    catalog = {**settings.CATALOG_FALLBACK["default"], "SOURCES": down(failure=None)}  # type: ignore[arg-type]
    settings.CATALOG_FALLBACK = {"default": catalog}
    lookup = shop.find()
    assert (lookup.is_found, lookup.item["name"]) == (True, "Tea")  # type: ignore[index]


def test_a_batch_gives_data_to_those_who_need_it(settings: Any, transactional_db: None) -> None:
    """With one query of the stop list for all of them."""
    options = {"items": {"P001": "Tea"}, "failing": {"B1": 503, "B2": "timeout", "B3": 503}}
    source = {"BACKEND": "catalog_fallback.sources.simulated.SimulatedSource", "OPTIONS": options, "BREAKER": None}
    Shop(settings, FALLBACK=ask_for_data, SOURCES={"only": source})
    services.stop_item("B3")
    lookups = services.find_items(["P001", "B1", "NONE", "B2", "B3"])
    assert list(lookups) == ["P001", "B1", "NONE", "B2", "B3"]
    shown = {item_id: (str(one.state), one.degraded) for item_id, one in lookups.items()}
    assert shown == {
        "P001": ("found", False),
        "B1": ("unavailable", True),
        "NONE": ("not_found", False),
        "B2": ("unavailable", True),
        "B3": ("stopped", False),
    }
    assert lookups["B2"].item == {"id": "B2", "name": "Tea?", "why": "incomplete_search"}


def test_without_it_nothing_more_is_asked(site: Site, django_assert_num_queries: Any) -> None:
    """One query of the stop list, and one of the isolated sources."""
    site.simulate("timeout")
    site.find("P002")
    with django_assert_num_queries(1):
        site.find()
    site.simulate("timeout", FALLBACK=DATA)
    site.find("P002")
    with django_assert_num_queries(2):
        site.find()


@every_verb
def test_listeners_hear_of_the_answer_that_the_caller_gets(shop: Shop, find: Callable[..., Lookup]) -> None:
    """With its data."""
    heard: list[Lookup] = []

    def listen(lookup: Lookup, **_: Any) -> None:
        heard.append(lookup)

    signals.lookup_finished.connect(listen)
    lookup = find("P001")
    assert heard == [lookup]
    assert heard[0].degraded


# --- stopped items --------------------------------------------------------------------------------------------------


@every_verb
def test_i1_never_for_a_stopped_item(shop: Shop, find: Callable[..., Lookup]) -> None:
    """Whatever the sources and the cache do."""
    services.stop_item("P001")
    for fault in (None, _cache_off):
        shop.shelf.fault = fault
        assert words(find("P001")) == ("stopped", "stopped")


def _cache_off(name: str, keys: tuple[str, ...], effect: Any) -> Any:
    raise ConnectionError("cache is off")


@every_verb
def test_no_data_when_the_stop_list_cannot_be_asked(
    shop: Shop, find: Callable[..., Lookup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It might be stopped. The first question was answered, the second was not."""
    monkeypatch.setattr(stop_list, "rows_of", _no_database)
    monkeypatch.setattr(stop_list.stop_query, "is_stopped", lambda *_: False)
    lookup = find("P001")
    assert (lookup.is_unavailable, lookup.item, lookup.degraded) == (True, None, False)
    assert lookup.reason == "stop_list_unavailable"


@every_verb
def test_no_data_when_it_could_never_be_asked(
    shop: Shop, find: Callable[..., Lookup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither before the search nor after it."""
    monkeypatch.setattr(stop_list, "rows_of", _no_database)
    monkeypatch.setattr(stop_list.stop_query, "is_stopped", _no_database)
    lookup = find("P001")
    assert (words(lookup), lookup.item) == (("unavailable", "stop_list_unavailable"), None)


@every_verb
def test_no_data_when_the_search_could_not_begin(
    shop: Shop, find: Callable[..., Lookup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is back by now: the next lookup sees it."""
    answers = iter([_no_database])
    real, real_many = stop_list.is_stopped, stop_list.ask
    monkeypatch.setattr(stop_list, "is_stopped", lambda query: None if next(answers, None) else real(query))
    monkeypatch.setattr(stop_list, "ask", lambda *args: (lambda _: None) if next(answers, None) else real_many(*args))
    lookup = find("P001")
    assert (words(lookup), lookup.item) == (("unavailable", "stop_list_unavailable"), None)
    assert find("P001").degraded


def _no_database(*_: Any) -> Any:
    raise OperationalError("no database")


class Frozen:
    """A FALLBACK, or a step of the lookup, that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def wait(self) -> None:
        """Called by the lookup."""
        self.begun.set()
        assert self.go.wait(20)


def test_i1_stopped_while_the_search_is_under_way(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop list is asked again before data are shown: this lookup began before the stop, and yet says stopped."""
    frozen, real = Frozen(), aftermath._degraded

    def after_the_search(*args: Any) -> dict[str, Lookup]:
        frozen.wait()
        return real(*args)

    monkeypatch.setattr(aftermath, "_degraded", after_the_search)
    early = later(shop.find)
    assert frozen.begun.wait(20)
    services.stop_item("P001")
    frozen.go.set()
    assert early().is_stopped


def test_i1_a_lookup_that_starts_after_the_stop_while_another_shows_data(settings: Any, transactional_db: None) -> None:
    """One that began before stands in its FALLBACK; whoever starts now sees the stop, and does not wait for him."""
    frozen = Frozen()

    def slow(lookup: Lookup) -> dict[str, str]:
        frozen.wait()
        return {"name": "Tea?"}

    shop = Shop(settings, SOURCES=down(), FALLBACK=slow)
    early = later(shop.find)
    assert frozen.begun.wait(20)
    services.stop_item("P001")
    assert shop.find().is_stopped
    frozen.go.set()
    assert early().degraded
    assert shop.find().is_stopped
    services.release_item("P001")
    assert shop.find().degraded


def test_i1_an_old_view_believes_the_mark_of_the_gate(shop: Shop) -> None:
    """On SQLite a transaction cannot see the stop that was committed since."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode=wal")  # a reader keeps no writer waiting
    shop.find()
    with transaction.atomic():
        assert StoppedItem.objects.count() == 0
        elsewhere(lambda: services.stop_item("P001"))
        assert shop.find().is_stopped
        assert services.find_items(["P001"])["P001"].is_stopped
        assert shop.find("P002").degraded


def test_i1_an_old_view_looks_at_the_gate_again_after_its_search(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped while it was searching: the mark is there now."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode=wal")
    real = aftermath._degraded

    def after_a_stop(*args: Any) -> dict[str, Lookup]:
        elsewhere(lambda: services.stop_item("P001"))
        return real(*args)

    monkeypatch.setattr(aftermath, "_degraded", after_a_stop)
    with transaction.atomic():
        assert StoppedItem.objects.count() == 0
        assert shop.find().is_stopped
        assert StoppedItem.objects.count() == 0


def test_a_cancelled_lookup_shows_nothing_and_breaks_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that asks the stop list ends by itself."""
    frozen, real = Frozen(), aftermath._degraded

    def slow(*args: Any) -> dict[str, Lookup]:
        frozen.wait()
        return real(*args)

    monkeypatch.setattr(aftermath, "_degraded", slow)

    async def main() -> None:
        task = asyncio.create_task(services.afind_item("P001"))
        while not frozen.begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        frozen.go.set()
        assert (await services.afind_item("P001")).degraded

    asyncio.run(main())
