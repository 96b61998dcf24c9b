"""Is there an error page for any query string or selection? On PostgreSQL too, which takes less than SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.test import Client

from catalog_fallback import services
from catalog_fallback.models import StoppedItem, UnansweredItem
from tests.admin.conftest import Login

if TYPE_CHECKING:
    from pytest_django import Settings

STOPPED = "/admin/catalog_fallback/stoppeditem/"
UNANSWERED = "/admin/catalog_fallback/unanswereditem/"

HOSTILE = [
    "item_id__startswith=%00",
    "item_id__exact=%00",
    "item_id=%00",
    "reason__exact=%00",
    "catalog=%00",
    "confirmed=%00",
    "state=%00",
    "origin__exact=a%00b",
    "q=%00",
    "q=P%00",
    "%00=x",
    "o=%00",
    "p=%00",
    "p=99999999999999999999",
    "p=x",
    "o=99999999999999999999.x",
    "item_id__regex=%5B",
    "note__icontains=x",
    "item_id__isnull=x",
    "is_active__exact=x",
    "id__exact=x",
    "id__in=1,x",
    "stopped_by__password__startswith=p",
    "event_at__gte=x",
    "nonsense=1",
    "q=%ED%A0%80",
    "q=" + "%F0%9F%98%80" * 300,
    "_to_field=%00",
    "_popup=1",
    "all=",
    "e=1",
]


@pytest.fixture
def boss(transactional_db: None) -> Client:
    """The browser of somebody who may do everything."""
    browser = Client()
    browser.force_login(User.objects.create_superuser("boss", "boss@example.com", "secret"))
    return browser


@pytest.fixture
def in_postgres(postgres: str, settings: Settings) -> None:
    """The stop list is in PostgreSQL."""
    settings.DATABASE_ROUTERS = ["tests.admin.site.StopListElsewhere"]


class _Hostile:
    """Whatever somebody types behind the address."""

    def test_no_query_string_is_an_error_page(self, boss: Client) -> None:
        """A list, a way back to it, or 400; a test client raises what would be an error page."""
        StoppedItem.objects.create(catalog="default", item_id="P001")
        UnansweredItem.objects.create(catalog="default", item_id="P001", reason="timeout")
        for url in (STOPPED, UNANSWERED):
            for query in HOSTILE:
                response = boss.get(f"{url}?{query}")
                assert response.status_code in {200, 302, 400}, (url, query)

    def test_a_nul_leads_back_to_the_list_with_a_message(self, boss: Client) -> None:
        """Nobody takes the whole list for what was found."""
        for url in (STOPPED, UNANSWERED):
            for query in ("item_id=%00", "catalog=%00", "item_id__startswith=%00", "reason__exact=x%00", "q=%00"):
                response = boss.get(f"{url}?{query}", follow=True)
                assert (response.status_code, response.redirect_chain) == (200, [(url, 302)])
                assert "No row has a NUL character anywhere" in response.content.decode()

    @pytest.mark.parametrize("action", ["stop", "release", "republish_selected", "delete_selected"])
    def test_a_selection_that_is_no_row_is_told(self, boss: Client, action: str) -> None:
        """Nothing is changed, of the rows that are named beside it neither."""
        row = StoppedItem.objects.create(catalog="default", item_id="P001", is_active=action != "stop")
        for key in ("x", "", "1.5", "-1x", "99999999999999999999", "\x00", "1,2"):
            crafted = {"action": action, "_selected_action": [row.pk, key], "post": "yes", "index": "0"}
            response = boss.post(STOPPED, crafted, follow=True)
            assert "Nothing was changed: the selection named something that is no row." in response.content.decode()
        after = StoppedItem.objects.get()
        assert (after.is_active, after.updated_at) == (row.is_active, row.updated_at)


@pytest.mark.django_db(transaction=True)
class TestOnSQLite(_Hostile):
    """On the database of the other tests."""


@pytest.mark.django_db(transaction=True, databases=["default", "postgres"])
@pytest.mark.usefixtures("in_postgres")
class TestOnPostgreSQL(_Hostile):
    """On one that refuses more."""


@pytest.mark.django_db(transaction=True)
class TestElsewhere:
    """The same for the other addresses of the list."""

    @pytest.mark.parametrize("key", ["x", "%00", "99999999999999999999", "1.5", "_3A"])
    @pytest.mark.parametrize("page", ["change", "delete", "history"])
    def test_an_address_that_is_no_row_leads_away(self, boss: Client, page: str, key: str) -> None:
        """Django's own message."""
        assert boss.get(f"{STOPPED}{key}/{page}/").status_code == 302

    def test_a_crafted_selection_of_the_other_list_is_told(self, boss: Client) -> None:
        """ "Try again now" of something that is no row."""
        response = boss.post(UNANSWERED, {"action": "try_again", "_selected_action": "x"}, follow=True)
        assert "the selection named something that is no row" in response.content.decode()

    @pytest.mark.parametrize(
        "query", ["item_id=P001", "item_id__exact=P001", "reason=legal", "catalog=default&reason__exact=legal"]
    )
    def test_what_the_filters_offer_still_works(self, boss: Client, query: str) -> None:
        """Links that people keep."""
        services.stop_item("P001", reason="legal")
        services.stop_item("P002", catalog="capitals")
        response = boss.get(f"{STOPPED}?{query}")
        assert [row.item_id for row in response.context["cl"].result_list] == ["P001"]

    def test_without_permission_nothing_is_told(self, login: Login) -> None:
        """403 comes first, whatever is asked."""
        stranger = login()
        assert stranger.get(f"{STOPPED}?q=%00").status_code == 403
        assert stranger.post(STOPPED, {"action": "stop", "_selected_action": "x"}).status_code == 403
