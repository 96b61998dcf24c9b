"""Can a person see what nobody could answer, have it tried again, and write nothing else?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client

from catalog_fallback import conf, unanswered
from catalog_fallback.models import UnansweredItem
from catalog_fallback.retrying import Retried, retry

LIST = "/admin/catalog_fallback/unanswereditem/"


@pytest.fixture
def rows(transactional_db: None) -> list[UnansweredItem]:
    """One that waits, and one that was given up."""
    moment = unanswered.now()
    waiting = UnansweredItem(item_id="P001", reason="http_403", next_try_at=moment + timedelta(days=1))
    given_up = UnansweredItem(
        item_id="P002",
        reason="http_503",
        attempts=20,
        created_at=moment - timedelta(days=8),
        next_try_at=moment,
        given_up_at=moment,
    )
    for row in (waiting, given_up):
        row.catalog = "default"
        row.save()
    return [waiting, given_up]


def browser_of(*permissions: str) -> Client:
    """The browser of somebody with these permissions."""
    user = User.objects.create_user("-".join(permissions), password="secret", is_staff=True)
    for name in permissions:
        user.user_permissions.add(Permission.objects.get(codename=f"{name}_unanswereditem"))
    browser = Client()
    browser.force_login(user)
    return browser


def try_again(browser: Client, rows: list[UnansweredItem]) -> Any:
    """Choose all and act."""
    return browser.post(LIST, {"action": "try_again", "_selected_action": [row.pk for row in rows]}, follow=True)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", {"P001", "P002"}),
        ("?state=waiting", {"P001"}),
        ("?state=given_up", {"P002"}),
        ("?state=other", {"P001", "P002"}),
        ("?q=P002", {"P002"}),
        ("?q=P00", {"P001", "P002"}),
        ("?q=002", set()),
        ("?reason=http_403", {"P001"}),
    ],
)
def test_the_list(rows: list[UnansweredItem], query: str, shown: set[str]) -> None:
    """Filtered by state and reason, searched by how an ID begins."""
    text = browser_of("view").get(LIST + query).content.decode()
    assert {item_id for item_id in ("P001", "P002") if f">{item_id}</a>" in text} == shown


def test_try_again(rows: list[UnansweredItem]) -> None:
    """The next run of the command takes both, and counts anew; it is in the log."""
    text = try_again(browser_of("view", "change"), rows).content.decode()
    assert "2 lookups are due." in text
    assert LogEntry.objects.filter(change_message__contains="Try again now.").count() == 2
    assert set(UnansweredItem.objects.values_list("attempts", "given_up_at")) == {(0, None)}
    assert retry(conf.catalog("default")) == Retried(found=2)


def test_whoever_may_only_look(rows: list[UnansweredItem]) -> None:
    """Sees the list, and has no action."""
    browser = browser_of("view")
    assert "try_again" not in browser.get(LIST).content.decode()
    try_again(browser, rows)
    assert UnansweredItem.objects.filter(given_up_at=None).count() == 1


def test_a_row_is_only_read(rows: list[UnansweredItem]) -> None:
    """No form, no new rows; deleting is for whoever may."""
    browser = browser_of("view", "add", "change", "delete")
    page = f"{LIST}{rows[0].pk}/change/"
    text = browser.get(page).content.decode()
    assert "http_403" in text
    assert 'name="_save"' not in text
    assert browser.post(page, {"reason": "ok"}).status_code == 403
    assert browser.get(f"{LIST}add/").status_code == 403
    assert browser.post(f"{LIST}{rows[0].pk}/delete/", {"post": "yes"}).status_code == 302
    assert UnansweredItem.objects.count() == 1
