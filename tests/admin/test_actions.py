"""Do the actions ask first, act on exactly what was named, and tell what came of it?"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.utils import timezone

from catalog_fallback import services
from catalog_fallback.admin import actions
from catalog_fallback.models import StoppedItem
from tests.admin.conftest import Login
from tests.admin.site import SwitchedCache

if TYPE_CHECKING:
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/catalog_fallback/stoppeditem/"


def keys(*item_ids: str) -> list[int]:
    """The primary keys of these items."""
    return list(StoppedItem.objects.filter(item_id__in=item_ids).values_list("pk", flat=True))


def ask(browser: Client, action: str, *item_ids: str, url: str = LIST, **fields: Any) -> Any:
    """Choose the rows and the action, and get the confirmation page."""
    return browser.post(url, {"action": action, "_selected_action": keys(*item_ids), "index": "0", **fields})


def confirm(browser: Client, page: Any, **fields: str) -> Any:
    """Send the confirmation page's form as a browser would, and follow to the list."""
    html = page.content.decode()
    form = html[html.index('<form method="post">') :]
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form))
    return browser.post(page.wsgi_request.get_full_path(), {**hidden, **fields}, follow=True)


def states() -> dict[str, bool]:
    """ID → is stopped."""
    return dict(StoppedItem.objects.values_list("item_id", "is_active"))


def test_release_asks_first(browser: Client) -> None:
    """The first request changes nothing and names what will happen to what."""
    services.stop_items(["P001", "P002"])
    page = ask(browser, "release", "P001")
    html = page.content.decode()
    assert page.status_code == 200
    assert "P001 (default)" in html
    assert "P002 (default)" not in html
    assert states() == {"P001": True, "P002": True}


def test_release_takes_the_named_rows_off(browser: Client) -> None:
    """After the confirmation the item is found again; the note of the stop stays where none was given."""
    services.stop_items(["P001", "P002"], note="recall 17")
    page = confirm(browser, ask(browser, "release", "P001"), note="")
    row = StoppedItem.objects.get(item_id="P001")
    assert states() == {"P001": False, "P002": True}
    assert (row.origin, row.note) == ("admin", "recall 17")
    assert row.published_at is not None
    assert services.find_item("P001").is_found
    assert "1 item is released." in page.content.decode()


def test_stop_takes_reason_and_note(browser: Client) -> None:
    """Both end up in the rows and in the history of each of them, with who did it."""
    services.stop_items(["P001", "P002"])
    services.release_items(["P001", "P002"])
    page = confirm(browser, ask(browser, "stop", "P001", "P002"), reason="legal", note="court order")
    rows = list(StoppedItem.objects.all())
    assert "2 items are stopped." in page.content.decode()
    assert {(row.is_active, row.reason, row.note) for row in rows} == {(True, "legal", "court order")}
    assert {entry.object_id for entry in LogEntry.objects.all()} == {str(row.pk) for row in rows}
    assert {entry.change_message for entry in LogEntry.objects.all()} == {"Stopped. Reason: legal. court order"}
    assert {entry.user_id for entry in LogEntry.objects.all()} == {row.stopped_by_id for row in rows}
    assert services.find_item("P001").is_stopped


def test_releasing_what_is_released_says_that_nothing_was_stopped(browser: Client) -> None:
    """It does not count as released."""
    services.stop_items(["P001", "P002"])
    services.release_item("P002")
    html = confirm(browser, ask(browser, "release", "P001", "P002"), note="").content.decode()
    assert "1 item is released." in html
    assert "1 item was not stopped: there was nothing to release." in html


@pytest.mark.parametrize(("action", "is_active"), [("stop", True), ("release", False)])
def test_a_site_without_time_zones_can_stop_and_release(
    browser: Client, settings: Settings, action: str, is_active: bool
) -> None:
    """USE_TZ = False: the moment of the event is one that its columns take."""
    settings.USE_TZ = False
    services.stop_item("P001")
    confirm(browser, ask(browser, action, "P001"), note="", reason="legal")
    assert states() == {"P001": is_active}


def test_stop_with_a_wrong_reason_asks_again(browser: Client) -> None:
    """A crafted reason changes nothing, and the rows are still named."""
    services.stop_item("P001")
    services.release_item("P001")
    page = confirm(browser, ask(browser, "stop", "P001"), reason="because")
    assert "Select a valid choice" in page.content.decode()
    assert states() == {"P001": False}
    confirm(browser, page, reason="legal")
    assert states() == {"P001": True}


def test_the_form_of_a_single_row_begins_with_what_it_says(browser: Client) -> None:
    """Stopping one row again does not silently change its reason."""
    services.stop_item("P001", reason="legal", note="court order")
    page = ask(browser, "stop", "P001").content.decode()
    assert '<option value="legal" selected>' in page
    assert "court order</textarea>" in page


def test_republish_confirms_what_an_earlier_publish_could_not(browser: Client) -> None:
    """Once the cache is back, the rows are confirmed, and that is in the history."""
    SwitchedCache.is_on = False
    added = browser.post(f"{LIST}add/", {"catalog": "default", "item_id": "P001", "is_active": "on", "reason": "legal"})
    assert added.status_code == 302
    SwitchedCache.is_on = True
    page = confirm(browser, ask(browser, "republish_selected", "P001"))
    assert StoppedItem.objects.get().published_at is not None
    assert "1 item is confirmed by the cache." in page.content.decode()
    assert LogEntry.objects.order_by("-pk")[0].change_message == "Published again."


def test_republish_tells_when_the_cache_is_still_off(browser: Client) -> None:
    """No error page, and no claim that anything was confirmed."""
    services.stop_item("P001")
    SwitchedCache.is_on = False
    page = confirm(browser, ask(browser, "republish_selected", "P001"))
    assert page.status_code == 200
    assert "did not confirm the invalidation of 1 of 1 IDs" in page.content.decode()
    assert "0 items are confirmed by the cache." in page.content.decode()


@pytest.mark.parametrize(("action", "word"), [("stop", "stopped"), ("release", "released")])
def test_an_action_is_kept_and_told_when_the_cache_is_off(browser: Client, action: str, word: str) -> None:
    """The rows are changed; the person reads how many are not confirmed."""
    services.stop_items(["P001", "P002"])
    SwitchedCache.is_on = False
    page = confirm(browser, ask(browser, action, "P001", "P002"), reason="legal", note="")
    html = page.content.decode()
    assert f"2 items are {word} in the database, but not confirmed by the cache" in html
    assert set(states().values()) == {action == "stop"}


def test_delete_says_what_it_means_and_forgets(browser: Client) -> None:
    """Django's own page, with our explanation."""
    services.stop_items(["P001", "P002"])
    page = ask(browser, "delete_selected", "P001")
    assert "Deleting forgets that there was a stop" in page.content.decode()
    assert states() == {"P001": True, "P002": True}
    browser.post(LIST, {"action": "delete_selected", "_selected_action": keys("P001"), "post": "yes"})
    assert states() == {"P002": True}
    assert services.find_item("P001").is_found


@pytest.mark.parametrize("action", ["stop", "release", "republish_selected", "delete_selected"])
def test_somebody_who_may_only_look_is_refused(login: Login, action: str) -> None:
    """403, for the question and for the crafted confirmation."""
    services.stop_item("P001")
    services.release_item("P001")
    before = StoppedItem.objects.get()
    viewer = login("view")
    assert ask(viewer, action, "P001").status_code == 403
    crafted = {"confirmed": "yes", "keys": before.pk, "select_across": "1", "post": "yes", "reason": "legal"}
    assert ask(viewer, action, "P001", **crafted).status_code == 403
    assert StoppedItem.objects.get().updated_at == before.updated_at


def test_who_may_change_may_not_delete(login: Login) -> None:
    """Each action has its own permission."""
    services.stop_item("P001")
    editor = login("view", "change")
    assert ask(editor, "delete_selected", "P001").status_code == 403
    assert ask(editor, "release", "P001").status_code == 200
    assert "Delete the selected rows" not in editor.get(LIST).content.decode()


def test_an_action_needs_the_csrf_token(browser: Client) -> None:
    """Another site cannot release an item in a person's name."""
    services.stop_item("P001")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = browser.cookies
    fields = {"action": "release", "_selected_action": keys("P001"), "keys": keys("P001"), "confirmed": "yes"}
    assert strict.post(LIST, fields).status_code == 403
    assert states() == {"P001": True}


def test_all_rows_of_a_filter_are_those_that_the_page_named(browser: Client) -> None:
    """What comes in between the question and the answer is not acted on."""
    services.stop_items(["P001", "P002"], reason="legal")
    services.stop_item("P003")
    page = ask(browser, "release", "P001", url=f"{LIST}?reason__exact=legal", select_across="1")
    assert "2 items" in page.content.decode()
    services.stop_item("P004", reason="legal")
    confirm(browser, page, note="")
    assert states() == {"P001": False, "P002": False, "P003": True, "P004": True}


@pytest.mark.parametrize("action", ["stop", "release", "republish_selected", "delete_selected"])
def test_too_many_rows_are_refused(browser: Client, monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    """A million rows are not loaded to be shown on a page."""
    monkeypatch.setattr(actions, "LIMIT", 1)
    monkeypatch.setattr(actions, "MAX_DELETED", 1)
    services.stop_items(["P001", "P002"])
    page = browser.post(
        LIST, {"action": action, "_selected_action": keys("P001"), "select_across": "1", "index": "0"}, follow=True
    )
    assert "At most 1 rows at once" in page.content.decode()


def test_many_rows_fit_through_the_confirmation(browser: Client) -> None:
    """More rows than a form may have fields (1,000)."""
    services.stop_items([f"X{number}" for number in range(1200)])
    page = ask(browser, "release", "X1", select_across="1")
    assert "and 1150 more" in page.content.decode()
    assert "1200 items are released." in confirm(browser, page, note="").content.decode()
    assert not StoppedItem.objects.active().exists()
    assert LogEntry.objects.count() == 1200


def test_a_later_event_is_left_and_told(browser: Client) -> None:
    """A row whose event is dated ahead stays as it is, and the person learns it."""
    services.stop_item("P001", event_at=timezone.now() + timedelta(hours=1))
    page = confirm(browser, ask(browser, "release", "P001"), note="")
    assert "Left as they are, because of a later event" in page.content.decode()
    assert states() == {"P001": True}
    assert not LogEntry.objects.exists()


def test_rows_of_a_removed_catalog_are_left_and_told(browser: Client, settings: Settings) -> None:
    """They cannot be published; the others are done all the same."""
    services.stop_item("P001")
    services.stop_item("P002", catalog="capitals")
    settings.CATALOG_FALLBACK = {"default": settings.CATALOG_FALLBACK["default"]}
    page = confirm(browser, ask(browser, "release", "P001", "P002"), note="")
    assert "no longer have their catalog" in page.content.decode()
    assert states() == {"P001": False, "P002": True}
    assert "There is no catalog" in confirm(browser, ask(browser, "republish_selected", "P002")).content.decode()


@pytest.mark.parametrize("listed", ["", "x", "1,2,x", "99999999999999999999", "٣"])
def test_a_crafted_confirmation_acts_on_nothing_else(browser: Client, listed: str) -> None:
    """Keys that name no row are no rows."""
    services.stop_item("P001")
    row = StoppedItem.objects.get()
    StoppedItem.objects.filter(pk=row.pk).update(note="x")
    fields = {"action": "release", "_selected_action": row.pk + 1000, "confirmed": "yes", "keys": listed, "note": ""}
    assert browser.post(LIST, fields, follow=True).status_code == 200
    assert states() == {"P001": True}


def test_the_confirmation_page_can_be_read_aloud(browser: Client) -> None:
    """Every field has a label, the list a heading, nothing is inline, and the way back is a link."""
    services.stop_item("P001")
    page = ask(browser, "stop", "P001", url=f"{LIST}?q=P001").content.decode()
    for field in ("reason", "note"):
        assert f'<label for="id_{field}">' in page
        assert f'id="id_{field}"' in page
    assert 'aria-describedby="id_note_helptext"' in page
    assert '<h2 id="confirm-items">' in page
    assert f'href="{LIST}?q=P001"' in page
    assert " style=" not in page
    assert "<script>" not in page


@pytest.fixture(params=[False, True], ids=["autocommit", "atomic-requests"])
def requests_are_atomic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With ATOMIC_REQUESTS everything is published after the view has ended."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", request.param)
    is_atomic: bool = request.param
    return is_atomic


@pytest.mark.usefixtures("requests_are_atomic")
@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("stop", "1 item is stopped in the database, but not confirmed"),
        ("release", "1 item is released in the database, but not confirmed"),
        ("republish_selected", "did not confirm the invalidation"),
    ],
)
def test_what_is_not_confirmed_is_told_in_every_kind_of_transaction(browser: Client, action: str, text: str) -> None:
    """The message is found out after the commit and still gets into the same response's page."""
    services.stop_item("P001")
    SwitchedCache.is_on = False
    page = confirm(browser, ask(browser, action, "P001"), reason="legal", note="")
    assert text in page.content.decode()
    assert StoppedItem.objects.get().is_active is (action != "release")


@pytest.mark.usefixtures("requests_are_atomic")
def test_what_is_confirmed_holds_in_every_kind_of_transaction(browser: Client) -> None:
    """After the response the item is back."""
    services.stop_item("P001")
    assert services.find_item("P001").is_stopped
    page = confirm(browser, ask(browser, "release", "P001"), note="")
    assert "not confirmed by the cache" not in page.content.decode()
    assert services.find_item("P001").is_found
