"""Do the buttons of the demo do what they say, without scripts and whatever is sent instead of a form?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client, override_settings

from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.models import StoppedItem
from catalog_fallback.services import find_item, stop_item
from catalogs.faults import FAULTS
from catalogs.server import CatalogServer
from portal import actions, fault_words, scenes
from portal.hammer import CALLERS
from tests.example.pages import facts, text_of

pytestmark = pytest.mark.django_db(transaction=True)

P001 = {"catalog": "default", "id": "P001"}


def pressed(site: Client, action: str, **form: str) -> str:
    """What the page says after a button was pressed, without scripts."""
    reply = site.post(f"/do/{action}/", {**P001, **form}, follow=True)
    assert reply.redirect_chain, "a page that is reloaded must not post again"
    assert reply.status_code == 200
    return text_of(reply.content)


# ------------------------------------------------------------------------------------------------ one item


def test_stop_says_how_to_undo_it_and_release_does(site: Client) -> None:
    """After a stop the item is gone, and the page names both ways back."""
    page = pressed(site, "stop")
    assert "invalidate_item P001 --release" in page
    assert "Withdrawn" in page
    assert "teapot" not in page
    assert "Release" in page
    page = pressed(site, "release")
    assert "may be shown again" in page
    assert "Found: Blue teapot" in page


def test_forget_fetches_anew(site: Client, catalogs: CatalogServer) -> None:
    """The next look-up calls the catalog."""
    find_item("P001")
    pressed(site, "forget")
    assert catalogs.switchboard.as_dict()["primary"]["calls"] == 2


def test_flush_forgets_all_but_what_is_stopped(site: Client, catalogs: CatalogServer) -> None:
    """The cache is empty, the stop list is not."""
    stop_item("P002")
    find_item("P001")
    assert "The cache is empty" in pressed(site, "flush")
    assert catalogs.switchboard.as_dict()["primary"]["calls"] == 2
    assert "Withdrawn" in text_of(site.get("/", {"catalog": "default", "id": "P002"}).content)


def test_flush_leaves_what_others_keep_in_a_shared_cache(site: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis is not flushed as a whole: only what has the site's prefix goes."""
    patterns: list[str] = []
    monkeypatch.setattr(cache._connections["default"], "delete_pattern", patterns.append, raising=False)  # type: ignore[attr-defined]
    cache.set("kept", 1)
    pressed(site, "flush")
    assert patterns == ["*"]
    assert cache.get("kept") == 1


@pytest.mark.parametrize("why", ["the cache did not confirm it", "the stop list could not be read"])
def test_what_is_not_confirmed_is_said(site: Client, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """An invalidation that may not have worked is an error on the page, no traceback and no success."""

    def fails(*args: Any, **kwargs: Any) -> int:
        raise InvalidationFailed(why)

    monkeypatch.setattr(actions, "invalidate_item", fails)
    page = pressed(site, "forget")
    assert why in page
    assert page.count("cache did not") == why.count("cache did not")
    assert "is forgotten" not in page


def test_a_catalog_without_a_secret_takes_no_notice(site: Client) -> None:
    """The button is not there, and a form that was made by hand is refused."""
    page = site.get("/", {**P001, "catalog": "shop"}).content
    assert b"do/notice/" not in page
    assert "takes no notices" in pressed(site, "notice", catalog="shop")
    assert b"do/notice/" in site.get("/", P001).content


def test_the_notice_button_sends_one(site: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says the same as the page for notices: the item of that catalog was withdrawn."""
    sent: list[tuple[str, str, str]] = []
    monkeypatch.setattr(actions.notices, "send", lambda request, *said: sent.append(said))
    pressed(site, "notice")
    assert sent == [("default", "item.stopped", "P001")]


# ------------------------------------------------------------------------------------------------ the hammer


@pytest.mark.parametrize(
    ("item_id", "fault", "calls", "answer"),
    [
        pytest.param("P001", "lag", {"primary": 1}, "found", id="found"),
        pytest.param("P001", "ok", {"primary": 1}, "found", id="quick"),
        pytest.param("P002", "lag", {"primary": 1, "secondary": 1}, "found", id="second"),
        pytest.param("P404", "slow", {"primary": 1, "secondary": 1}, "unavailable", id="unavailable"),
    ],
)
def test_the_hammer_calls_each_catalog_once(
    site: Client, catalogs: CatalogServer, item_id: str, fault: str, calls: dict[str, int], answer: str
) -> None:
    """Fifty callers get their answer from one search; the catalog's own counter says so."""
    catalogs.switchboard.switch("primary", fault)
    reply = site.post("/do/hammer/", {**P001, "id": item_id}, headers={"accept": "application/json"})
    report = json.loads(reply.content)
    assert report["calls"] == calls
    assert report["total"] == len(calls)
    assert report["states"] == {answer: CALLERS}
    counted = {name: row["calls"] for name, row in catalogs.switchboard.as_dict().items() if row["calls"]}
    assert counted == calls


def test_the_hammer_forgets_first(site: Client, catalogs: CatalogServer) -> None:
    """An item in the cache is fetched anew, so that there is something to see; a hammer has to be pressed once."""
    find_item("P001")
    page = pressed(site, "hammer")
    assert "50 callers at once, 1 call" in page
    assert "primary: 1" in page
    assert "50 × found" in page
    assert catalogs.switchboard.as_dict()["primary"]["calls"] == 2
    assert "50 callers at once" not in text_of(site.get("/", P001).content)


def test_the_hammer_without_catalogs(site: Client) -> None:
    """Nobody counts, and the page says so."""
    with override_settings(CATALOG_SERVER="http://127.0.0.1:9"):
        assert "nobody counted" in pressed(site, "hammer")


# ------------------------------------------------------------------------------------------------ faults, scenes


def test_every_fault_has_its_words() -> None:
    """All faults of the simulated server are offered, each once, in words of its own."""
    offered = [name for _group, faults in fault_words.GROUPS for name in faults]
    assert sorted(offered) == sorted(FAULTS)
    assert len({str(words.label) for words in fault_words.FAULT_WORDS.values()}) == len(FAULTS)
    assert fault_words.fault_words("rain") == ("rain", "")


def test_a_fault_is_switched_on_the_page(site: Client, catalogs: CatalogServer) -> None:
    """The page gives a catalog a fault, says so, and heals them all."""
    assert "primary now: answers after 10 seconds" in pressed(site, "fault", id="", source="primary", fault="slow")
    assert catalogs.switchboard.as_dict()["primary"]["fault"] == "slow"
    assert "All catalogs are healthy" in pressed(site, "reset", id="")
    assert catalogs.switchboard.as_dict()["primary"]["fault"] == "ok"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        pytest.param("cut", "the answer was cut short", id="cut"),
        pytest.param("503-wait", "answered with status 503", id="503"),
        pytest.param("500", "answered with status 500", id="500"),
        pytest.param("login", "the answer is not JSON", id="login"),
        pytest.param("huge", "the answer is too large", id="huge"),
        pytest.param("wrong-id", "sent another item", id="wrong-id"),
    ],
)
def test_what_is_seen_of_a_fault(site: Client, catalogs: CatalogServer, fault: str, words: str) -> None:
    """Each fault does in a look-up what its words promise."""
    catalogs.switchboard.switch("primary", fault)
    page = text_of(site.get("/", {**P001, "id": "P003"}).content)
    assert words in page
    assert "Could not find out" in page


def test_reset_closes_the_breakers(site: Client, catalogs: CatalogServer) -> None:
    """After a reset a source that was left alone is called again."""
    catalogs.switchboard.switch("primary", "down")
    for _ in range(5):
        find_item("P404")
    assert facts(site)["primary.breaker"] == "open: left alone"
    assert "it failed too often" in facts(site)["primary.may"]
    pressed(site, "reset")
    assert facts(site)["primary.breaker"] == "closed: in use"


EXPECTED = {
    "healthy": "Found: Blue teapot",
    "second": "Found: Red kettle",
    "outage": "Found: Oak shelf",
    "drip": "Found: Teapot, blue (second source)",
    "gone": "No such item",
    "unsure": "Could not find out",
    "garbage": "the answer is not JSON",
    "own": "Teapot (as the shelf says)",
    "withdrawn": "Withdrawn",
}


@pytest.mark.parametrize("name", scenes.SCENES)
def test_a_scene_shows_what_it_promises(site: Client, name: str) -> None:
    """Whatever was before: broken catalogs, a stopped item, an old answer."""
    stop_item("P001")
    find_item("P002")
    page = pressed(site, "scene", scene=name)
    assert EXPECTED[name] in page
    assert str(scenes.SCENES[name].point) in page


def test_a_scene_follows_another(site: Client, catalogs: CatalogServer) -> None:
    """A scene heals what the one before it broke."""
    pressed(site, "scene", scene="own")
    pressed(site, "scene", scene="healthy")
    assert {row["fault"] for row in catalogs.switchboard.as_dict().values()} == {"ok"}


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("action", "form", "words"),
    [
        pytest.param("fault", {"source": "primary", "fault": "rain"}, "no such catalog or fault", id="fault"),
        pytest.param("fault", {"source": "tertiary", "fault": "ok"}, "no such catalog or fault", id="source"),
        pytest.param("fault", {}, "no such catalog or fault", id="nothing"),
        pytest.param("scene", {"scene": "opera"}, "no such scene", id="scene"),
        pytest.param("stop", {"id": "no good"}, "no such item", id="id"),
        pytest.param("stop", {"id": ""}, "no such item", id="no-id"),
        pytest.param("hammer", {"id": "x" * 300}, "no such item", id="long-id"),
        pytest.param("forget", {"catalog": "nowhere"}, "no such item", id="catalog"),
    ],
)
def test_nonsense_is_refused(
    site: Client, catalogs: CatalogServer, action: str, form: dict[str, str], words: str
) -> None:
    """A form that was tampered with changes nothing, and the page says so; a program gets a 400."""
    before = catalogs.switchboard.as_dict()["primary"]["fault"]
    assert words in pressed(site, action, **form)
    reply = site.post(f"/do/{action}/", {**P001, **form}, headers={"accept": "application/json"})
    assert reply.status_code == 400
    assert catalogs.switchboard.as_dict()["primary"]["fault"] == before
    assert not StoppedItem.objects.exists()


def test_an_unknown_action_is_no_page(site: Client) -> None:
    """There is no button for it."""
    assert site.post("/do/dance/", P001).status_code == 404


@pytest.mark.parametrize("action", [*actions.ON_ITEMS, *actions.ON_ALL])
def test_a_button_needs_its_token_and_a_post(site: Client, action: str) -> None:
    """Another site cannot press it, and a link cannot either."""
    form = {**P001, "source": "primary", "fault": "slow", "scene": "withdrawn"}
    assert Client(enforce_csrf_checks=True).post(f"/do/{action}/", form).status_code == 403
    assert site.get(f"/do/{action}/", form).status_code == 405
    assert not StoppedItem.objects.exists()


@pytest.mark.parametrize(
    ("action", "form"),
    [("fault", {"source": "primary", "fault": "slow"}), ("reset", {}), ("scene", {"scene": "healthy"})],
    ids=["fault", "reset", "scene"],
)
def test_without_catalogs_the_page_says_how_to_start_them(site: Client, action: str, form: dict[str, str]) -> None:
    """A site whose simulated catalogs do not run says so."""
    with override_settings(CATALOG_SERVER="http://127.0.0.1:9"):
        assert "run_catalogs" in text_of(site.get("/").content)
        assert "do not run" in pressed(site, action, **form)
