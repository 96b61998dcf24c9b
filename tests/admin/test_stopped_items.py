"""Does the page of one row do what a person means, and does it tell what came of it?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from catalog_fallback import services
from catalog_fallback.admin import stopped_items
from catalog_fallback.models import StoppedItem
from catalog_fallback.results import State
from tests.admin.conftest import Login
from tests.admin.site import SwitchedCache

if TYPE_CHECKING:
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/catalog_fallback/stoppeditem/"
ADD = f"{LIST}add/"
ITEM = {"catalog": "default", "item_id": "P001", "is_active": "on", "reason": "legal", "note": "court order"}


def change_url(row: StoppedItem) -> str:
    """The page of one row."""
    return f"{LIST}{row.pk}/change/"


def test_adding_stops_the_item_everywhere(browser: Client) -> None:
    """A new row is published, says who made it, and the item is gone."""
    assert services.find_item("P001").is_found
    response = browser.post(ADD, ITEM)
    row = StoppedItem.objects.get()
    assert response.status_code == 302
    assert (row.origin, row.reason, row.note) == ("admin", "legal", "court order")
    assert row.stopped_by is not None
    assert row.stopped_by.username == "user-view-add-change-delete"
    assert row.published_at is not None
    assert services.find_item("P001").is_stopped


def test_adding_takes_any_spelling_of_the_id(browser: Client) -> None:
    """The ID is stored in its normal form."""
    browser.post(ADD, {**ITEM, "catalog": "capitals", "item_id": " p 001 "})
    assert StoppedItem.objects.get().item_id == "P001"


@pytest.mark.parametrize(
    ("change", "field", "text"),
    [
        pytest.param({"item_id": "no good"}, "item_id", "'no good' is no item ID of catalog 'default'", id="bad-id"),
        pytest.param({"item_id": "<b>"}, "item_id", "it has to match '[A-Z0-9-]{1,32}'", id="its-pattern"),
        pytest.param({"item_id": "P\x001"}, "item_id", "Null characters are not allowed.", id="nul"),
        pytest.param({"item_id": ""}, "item_id", "This field is required.", id="no-id"),
        pytest.param({"item_id": "A" * 256}, "item_id", "at most 255", id="too-long"),
        pytest.param({"catalog": "nope"}, "catalog", "Select a valid choice", id="unknown-catalog"),
        pytest.param({"catalog": ""}, "catalog", "This field is required.", id="no-catalog"),
    ],
)
def test_a_wrong_row_is_explained_at_its_field(browser: Client, change: dict[str, str], field: str, text: str) -> None:
    """One message, at the field that is wrong; nothing is stored."""
    response = browser.post(ADD, {**ITEM, **change})
    assert response.status_code == 200
    errors = response.context["adminform"].form.errors
    assert list(errors) == [field]
    assert len(errors[field]) == 1
    assert text in errors[field][0]
    assert not StoppedItem.objects.exists()


def test_a_second_row_for_the_same_id_points_at_the_first(browser: Client) -> None:
    """Another spelling of a known ID is no database error."""
    browser.post(ADD, {**ITEM, "catalog": "capitals"})
    response = browser.post(ADD, {**ITEM, "catalog": "capitals", "item_id": "p001"})
    assert "This item has a row already" in response.content.decode()
    assert StoppedItem.objects.count() == 1


def test_an_id_cannot_be_changed_into_another(browser: Client) -> None:
    """Catalog and ID of a row are fixed: a changed one would release the old item in silence."""
    browser.post(ADD, ITEM)
    row = StoppedItem.objects.get()
    browser.post(change_url(row), {**ITEM, "item_id": "P002", "catalog": "capitals", "note": "new"})
    row.refresh_from_db()
    assert (row.catalog, row.item_id, row.note) == ("default", "P001", "new")


def test_unticking_releases(browser: Client) -> None:
    """The row stays, with a new event time, and the item is back."""
    services.stop_item("P001", event_at=timezone.now() - timedelta(days=1))
    row = StoppedItem.objects.get()
    browser.post(change_url(row), {"reason": "withdrawn", "note": ""})
    after = StoppedItem.objects.get()
    assert (after.is_active, after.origin) == (False, "admin")
    assert after.event_at > row.event_at
    assert services.find_item("P001").state is State.FOUND


def test_a_new_note_is_no_event(browser: Client) -> None:
    """Writing a note moves neither the event's time nor its origin, so that a notice on its way still counts."""
    services.stop_item("P001")
    row = StoppedItem.objects.get()
    browser.post(change_url(row), {"is_active": "on", "reason": "withdrawn", "note": "asked the publisher"})
    after = StoppedItem.objects.get()
    assert (after.event_at, after.origin, after.note) == (row.event_at, "code", "asked the publisher")
    assert after.stopped_by is not None


def test_saving_is_in_the_history(browser: Client) -> None:
    """Django's own log has a line for adding and for changing."""
    browser.post(ADD, ITEM)
    row = StoppedItem.objects.get()
    browser.post(change_url(row), {**ITEM, "note": "x"})
    assert [entry.action_flag for entry in LogEntry.objects.order_by("pk")] == [1, 2]
    assert browser.get(f"{LIST}{row.pk}/history/").status_code == 200


def told(response: object) -> str:
    """All messages of the page that follows."""
    return " | ".join(str(message) for message in get_messages(response.wsgi_request))  # type: ignore[attr-defined]


@pytest.mark.usefixtures("cache_off")
def test_a_stop_is_kept_and_told_when_the_cache_is_off(browser: Client) -> None:
    """No error page: the row is there, and the person reads that the cache has not confirmed it."""
    response = browser.post(ADD, ITEM, follow=True)
    row = StoppedItem.objects.get()
    assert response.status_code == 200
    assert row.published_at is None
    page = response.content.decode()
    assert "1 item is stopped in the database, but not confirmed by the cache" in page
    assert "not confirmed</td>" in page


@pytest.mark.usefixtures("cache_off")
def test_a_release_is_kept_and_told_when_the_cache_is_off(browser: Client) -> None:
    """The same for a release."""
    SwitchedCache.is_on = True
    services.stop_item("P001")
    SwitchedCache.is_on = False
    response = browser.post(change_url(StoppedItem.objects.get()), {"reason": "withdrawn"}, follow=True)
    assert "1 item is released in the database, but not confirmed" in response.content.decode()


def test_nothing_is_told_when_the_cache_confirms(browser: Client) -> None:
    """A confirmed change has Django's own message only."""
    response = browser.post(ADD, ITEM, follow=True)
    assert len(response.context["messages"]) == 1


def test_deleting_says_what_it_means_and_forgets(browser: Client) -> None:
    """The confirmation page explains, then the item can be found."""
    services.stop_item("P001")
    services.find_item("P001")
    url = f"{LIST}{StoppedItem.objects.get().pk}/delete/"
    assert "Deleting forgets that there was a stop" in browser.get(url).content.decode()
    browser.post(url, {"post": "yes"})
    assert not StoppedItem.objects.exists()
    assert services.find_item("P001").is_found


def test_deleting_tells_when_the_cache_is_off(browser: Client) -> None:
    """The row is gone, and the person reads that the cache did not hear of it."""
    services.stop_item("P001")
    SwitchedCache.is_on = False
    response = browser.post(f"{LIST}{StoppedItem.objects.get().pk}/delete/", {"post": "yes"}, follow=True)
    assert response.status_code == 200
    assert "did not confirm the invalidation of 1 of 1 IDs" in response.content.decode()
    assert not StoppedItem.objects.exists()


def test_a_row_of_a_removed_catalog_can_be_read_and_deleted(browser: Client, settings: Settings) -> None:
    """Saving it is refused with an explanation instead of an error page."""
    services.stop_item("P001", catalog="capitals")
    settings.CATALOG_FALLBACK = {"default": settings.CATALOG_FALLBACK["default"]}
    row = StoppedItem.objects.get()
    assert browser.get(change_url(row)).status_code == 200
    response = browser.post(change_url(row), {"is_active": "on", "reason": "legal", "note": ""})
    assert "There is no catalog" in response.content.decode()
    assert browser.get(f"{LIST}?catalog=-").context["cl"].result_count == 1
    browser.post(f"{LIST}{row.pk}/delete/", {"post": "yes"})
    assert not StoppedItem.objects.exists()


@pytest.mark.parametrize("place", ["list", "change", "history"])
def test_what_people_wrote_is_escaped(browser: Client, place: str) -> None:
    """A note is shown as text."""
    attack = "<script>alert(1)</script>"
    browser.post(ADD, {**ITEM, "note": attack})
    row = StoppedItem.objects.get()
    action = {"action": "stop", "_selected_action": row.pk, "select_across": "1", "keys": row.pk, "confirmed": "yes"}
    browser.post(LIST, {**action, "reason": "legal", "note": attack})
    url = {"list": LIST, "change": change_url(row), "history": f"{LIST}{row.pk}/history/"}[place]
    page = browser.get(url).content.decode()
    assert attack not in page
    assert place == "list" or "&lt;script&gt;alert(1)" in page


def test_somebody_who_may_only_look(login: Login) -> None:
    """Sees list and row, and is refused everything else."""
    services.stop_item("P001")
    row = StoppedItem.objects.get()
    viewer = login("view")
    assert viewer.get(LIST).status_code == 200
    assert viewer.get(change_url(row)).status_code == 200
    assert viewer.get(ADD).status_code == 403
    assert viewer.post(ADD, ITEM).status_code == 403
    assert viewer.post(change_url(row), {"reason": "legal"}).status_code == 403
    assert viewer.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert StoppedItem.objects.get().is_active


def test_somebody_without_permission_sees_nothing(login: Login) -> None:
    """The list is refused."""
    assert login().get(LIST).status_code == 403


@pytest.mark.parametrize("path", ["", "add/", "change", "delete"])
def test_pages_have_nothing_inline(browser: Client, path: str) -> None:
    """A strict Content-Security-Policy breaks no page: what Django's own pages lack, ours do not add."""
    services.stop_item("P001")
    pk = StoppedItem.objects.get().pk
    page = browser.get(f"{LIST}{f'{pk}/{path}/' if path in {'change', 'delete'} else path}").content.decode()
    assert " style=" not in page
    assert "<style" not in page
    assert "onclick" not in page


def test_the_list_shows_every_column_in_words(browser: Client) -> None:
    """State and confirmation are readable without colours."""
    services.stop_items(["P001", "P002"])
    services.release_item("P002")
    page = browser.get(LIST).content.decode()
    assert 'alt=""> stopped' in page
    assert 'alt=""> released' in page
    for header in (
        "Item ID",
        "Catalog",
        "State",
        "Reason",
        "Origin",
        "Event time",
        "Changed by",
        "Confirmed by the cache",
    ):
        assert header in page


def test_every_field_of_a_new_row_is_explained(browser: Client) -> None:
    """Somebody under pressure need not guess what a tick means."""
    form = browser.get(ADD).context["adminform"].form
    assert set(form.fields) == {"catalog", "item_id", "is_active", "reason", "note"}
    assert [name for name, field in form.fields.items() if not field.help_text] == []


def test_a_row_can_be_released_from_its_own_page(browser: Client) -> None:
    """The buttons ask first, as the actions of the list do."""
    services.stop_item("P001")
    row = StoppedItem.objects.get()
    html = browser.get(change_url(row)).content.decode()
    forms = [form.split("</form>")[0] for form in html.split("<form ")[1:] if "_selected_action" in form]
    assert [form.split("<button")[1].split(">")[1].split("<")[0] for form in forms] == [
        "Stop",
        "Release",
        "Publish again",
    ]
    for form in forms:
        assert 'method="post"' in form
        assert "csrfmiddlewaretoken" in form
    page = browser.post(LIST, {"action": "release", "index": "0", "_selected_action": row.pk})
    assert "P001 (default)" in page.content.decode()
    assert StoppedItem.objects.get().is_active


def test_somebody_who_may_only_look_has_no_buttons(login: Login) -> None:
    """What is refused is not offered."""
    services.stop_item("P001")
    html = login("view").get(change_url(StoppedItem.objects.get())).content.decode()
    assert "_selected_action" not in html
    assert "bulk/" not in html


LOOK_UP = "admin:catalog_fallback_catalogsource_lookup"


def may_see_sources(browser: Client) -> Client:
    """Let the person of this browser look at the sources too."""
    user = User.objects.get(pk=browser.session["_auth_user_id"])
    user.user_permissions.add(Permission.objects.get(codename="view_catalogsource"))
    return browser


def test_each_row_leads_to_what_a_lookup_would_meet(browser: Client) -> None:
    """From the list and from the row's page, with catalog and ID."""
    services.stop_item("P001", catalog="capitals")
    row = StoppedItem.objects.get()
    address = f"{reverse(LOOK_UP)}?catalog=capitals&amp;item_id=P001"
    may_see_sources(browser)
    for url in (LIST, change_url(row)):
        html = browser.get(url).content.decode()
        assert f'<a href="{address}" aria-label="Look up P001">look it up</a>' in html
    assert browser.get(reverse(LOOK_UP), {"catalog": "capitals", "item_id": "P001"}).status_code == 200


def test_without_the_permission_no_row_leads_there(browser: Client) -> None:
    """What would be refused is not offered."""
    services.stop_item("P001")
    for url in (LIST, change_url(StoppedItem.objects.get())):
        assert "look it up" not in browser.get(url).content.decode()


def test_without_that_page_no_row_leads_there(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site may have taken the sources out of its admin."""
    services.stop_item("P001")
    may_see_sources(browser)
    monkeypatch.setattr(stopped_items, "LOOK_UP", "admin:nowhere")
    page = browser.get(LIST)
    assert page.status_code == 200
    assert "look it up" not in page.content.decode()


@pytest.mark.parametrize("path", ["add/", "bulk/", "{pk}/change/", "{pk}/delete/", "{pk}/history/"])
def test_every_page_is_refused_without_permission(login: Login, path: str) -> None:
    """403 for reading and for writing."""
    services.stop_item("P001")
    stranger = login()
    url = LIST + path.format(pk=StoppedItem.objects.get().pk)
    assert stranger.get(url).status_code == 403
    assert path == "{pk}/history/" or stranger.post(url, {**ITEM, "post": "yes"}).status_code == 403
    assert StoppedItem.objects.count() == 1
