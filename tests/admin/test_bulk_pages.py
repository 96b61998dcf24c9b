"""Can somebody stop and release a long list under pressure, and is exactly that done which was shown?"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from catalog_fallback import services
from catalog_fallback.admin import bulk_work, id_lists, plans, previews
from catalog_fallback.models import StoppedItem
from tests.admin.conftest import Login
from tests.admin.site import SwitchedCache

if TYPE_CHECKING:
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/catalog_fallback/stoppeditem/"
BULK = f"{LIST}bulk/"


def fields(pasted: str = "", **others: Any) -> dict[str, Any]:
    """What a person fills in."""
    return {"verb": "stop", "catalog": "default", "reason": "legal", "note": "", "pasted": pasted, **others}


def preview(browser: Client, pasted: str = "", **others: Any) -> Any:
    """Send the form."""
    return browser.post(BULK, fields(pasted, **others))


def plan_of(page: Any) -> str:
    """The plan in the page's confirmation."""
    [text] = re.findall(r'<input type="hidden" name="plan" value="([^"]+)">', page.content.decode())
    return str(text)


def confirm(browser: Client, page: Any, **others: Any) -> Any:
    """Press the button of the preview, and follow to the list."""
    return browser.post(BULK, {"plan": plan_of(page), **others}, follow=True)


def groups(page: Any) -> dict[str, list[tuple[int, str, str]]]:
    """Heading → (line, ID, what the list says now) of a preview."""
    return {
        str(group.heading): [(line.number, line.item_id, line.now) for line in group.lines]
        for group in page.context["groups"]
    }


def states() -> dict[str, bool]:
    """ID → is stopped."""
    return dict(StoppedItem.objects.values_list("item_id", "is_active"))


def text_of(page: Any) -> str:
    """The page as its reader gets it."""
    return str(page.content.decode())


def test_the_page_is_reachable_from_the_list(browser: Client) -> None:
    """One click away."""
    assert f'href="{BULK}"' in text_of(browser.get(LIST))
    page = browser.get(BULK)
    assert page.status_code == 200
    assert "At most 100,000 lines" in text_of(page)


def test_a_preview_sorts_the_lines_and_changes_nothing(browser: Client) -> None:
    """New, changed, the same, later, invalid and repeated, each with its line."""
    services.stop_items(["P001", "P002", "P003", "P006"], reason="legal", note="court order")
    services.release_item("P002")
    services.stop_item("P003", reason="quality")
    services.stop_item("P006", reason="quality", event_at=timezone.now() + timedelta(hours=1))
    before = list(StoppedItem.objects.order_by("pk").values())
    page = preview(browser, "P001\nP002\n\nP003\nno good\nP004\nP001\nP006")
    assert groups(page) == {
        "New": [(6, "P004", "not on the list")],
        "Would be changed": [(2, "P002", "released"), (4, "P003", "stopped: quality")],
        "Already stopped": [(1, "P001", "stopped: legal")],
        "Left as they are": [(8, "P006", "stopped: quality")],
    }
    [invalid] = page.context["invalid"]
    assert (invalid.number, invalid.text) == (5, "no good")
    [repeated] = page.context["repetitions"]
    assert (repeated.number, repeated.item_id, repeated.first) == (7, "P001", 1)
    assert "Stop 5 items" in text_of(page)
    assert list(StoppedItem.objects.order_by("pk").values()) == before
    assert not LogEntry.objects.exists()


def test_a_preview_of_a_release(browser: Client) -> None:
    """What was never stopped is named as that."""
    services.stop_items(["P001", "P002"])
    services.release_item("P002")
    page = preview(browser, "P001\nP002\nP003", verb="release")
    assert groups(page) == {
        "Would be released": [(1, "P001", "stopped: withdrawn")],
        "Already released": [(2, "P002", "released")],
        "Never stopped": [(3, "P003", "not on the list")],
    }
    assert "Release 3 items" in text_of(page)


def test_another_note_is_a_change_and_none_is_not(browser: Client) -> None:
    """An empty note leaves the note."""
    services.stop_item("P001", reason="legal", note="court order")
    assert list(groups(preview(browser, "P001"))) == ["Already stopped"]
    assert list(groups(preview(browser, "P001", note="court order"))) == ["Already stopped"]
    assert list(groups(preview(browser, "P001", note="another"))) == ["Would be changed"]


def test_a_confirmed_stop_holds_everywhere(browser: Client) -> None:
    """The rows say why, who and from where; the cache has confirmed them; the person reads how many."""
    assert services.find_item("P001").is_found
    page = confirm(browser, preview(browser, "p 001\nP002\n", catalog="capitals", note="recall 17"))
    rows = list(StoppedItem.objects.select_related("stopped_by"))
    assert {(row.catalog, row.item_id) for row in rows} == {("capitals", "P001"), ("capitals", "P002")}
    assert {(row.reason, row.note, row.origin, row.is_active) for row in rows} == {
        ("legal", "recall 17", "admin", True)
    }
    assert {row.stopped_by and row.stopped_by.username for row in rows} == {"user-view-add-change-delete"}
    assert all(row.published_at for row in rows)
    assert services.find_item("P001", catalog="capitals").is_stopped
    assert "2 items are stopped." in text_of(page)
    assert len(page.context["messages"]) == 1


def test_a_confirmed_release_says_what_was_not_stopped(browser: Client) -> None:
    """Nobody is told that three items were released when one was."""
    services.stop_item("P001", note="recall 17")
    page = confirm(browser, preview(browser, "P001\nP002\nP003", verb="release"))
    assert "1 item is released." in text_of(page)
    assert "2 items were not stopped: there was nothing to release." in text_of(page)
    row = StoppedItem.objects.get(item_id="P001")
    assert (row.is_active, row.reason, row.note) == (False, "withdrawn", "recall 17")
    assert services.find_item("P001").is_found


def test_a_later_event_is_left_and_told(browser: Client) -> None:
    """The same as for a single row."""
    services.stop_item("P001", event_at=timezone.now() + timedelta(hours=1))
    page = confirm(browser, preview(browser, "P001", verb="release"))
    assert "0 items are released." in text_of(page)
    assert "because of a later event (a notice dated ahead): 1." in text_of(page)
    assert states() == {"P001": True}


@pytest.mark.parametrize("is_sent_before", [False, True], ids=["first time", "sent again"])
def test_a_release_leaves_stops_that_its_preview_has_not_shown(browser: Client, *, is_sent_before: bool) -> None:
    """Somebody else stopped the item since, by a court's order: an old page, or one sent again, does not undo that."""
    services.stop_item("P001")
    page = preview(browser, "P001", verb="release")
    if is_sent_before:
        confirm(browser, page)
        assert states() == {"P001": False}
    services.stop_item("P001", reason="legal")
    told = confirm(browser, page)
    assert "0 items are released." in text_of(told)
    assert "because of a later event" in text_of(told)
    assert states() == {"P001": True}
    assert services.find_item("P001").is_stopped


def test_one_entry_of_the_log_for_all_of_it(browser: Client) -> None:
    """With how many, why and who; the histories of the rows show it, too."""
    confirm(browser, preview(browser, "P001\nP002", note="recall <17>"))
    [entry] = LogEntry.objects.all()
    assert (entry.action_flag, entry.object_id, entry.object_repr) == (
        CHANGE,
        None,
        "a list of 2 IDs of catalog default",
    )
    assert entry.change_message == "Stopped 2 of 2. Reason: legal. recall <17>"
    assert entry.user.username == "user-view-add-change-delete"
    row = StoppedItem.objects.get(item_id="P002")
    history = text_of(browser.get(f"{LIST}{row.pk}/history/"))
    assert "Stopped 2 of 2. Reason: legal. recall &lt;17&gt;" in history
    assert "a list of 2 IDs of catalog default" in text_of(browser.get("/admin/"))
    services.release_item("P002")
    assert "Stopped 2 of 2" not in text_of(browser.get(f"{LIST}{row.pk}/history/"))
    browser.post(f"{LIST}{row.pk}/change/", {"reason": "legal", "is_active": "on"})
    assert "Stopped 2 of 2" not in text_of(browser.get(f"{LIST}{row.pk}/history/"))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old-mac"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["without-bom", "with-bom"])
def test_an_uploaded_file_is_read(browser: Client, bom: str, ending: str) -> None:
    """As an editor of any system saves it."""
    content = f"{bom}P001{ending}{ending}P002{ending}".encode()
    page = preview(browser, uploaded=SimpleUploadedFile("ids.txt", content))
    assert groups(page) == {"New": [(1, "P001", "not on the list"), (3, "P002", "not on the list")]}


def refused(value: str) -> Any:
    """A file with these characters in latin-1."""
    return SimpleUploadedFile("ids.txt", value.encode("latin-1"))


@pytest.mark.parametrize(
    ("change", "field", "text"),
    [
        pytest.param({}, "pasted", "Paste the IDs, or upload a file.", id="nothing"),
        pytest.param({"pasted": " \n "}, "pasted", "Paste the IDs, or upload a file.", id="blank"),
        pytest.param({"pasted": "P001", "uploaded": "P002"}, "pasted", "not both", id="both"),
        pytest.param({"uploaded": "P001\nKäse"}, "uploaded", "byte 6 is 0xE4", id="latin-1"),
        pytest.param({"uploaded": ""}, "uploaded", "The submitted file is empty.", id="empty"),
        pytest.param({"pasted": "P001", "reason": "because"}, "reason", "Select a valid choice", id="reason"),
        pytest.param({"pasted": "P001", "catalog": "nope"}, "catalog", "Select a valid choice", id="catalog"),
        pytest.param({"pasted": "P001", "verb": "delete"}, "verb", "Select a valid choice", id="verb"),
        pytest.param({"pasted": "P\x001"}, "pasted", "Null characters are not allowed.", id="nul"),
        pytest.param({"pasted": "P001", "note": "\x00"}, "note", "Null characters are not allowed.", id="note"),
    ],
)
def test_a_wrong_form_is_explained_at_its_field(browser: Client, change: dict[str, str], field: str, text: str) -> None:
    """One message, at the field that is wrong, and everything typed is still there."""
    files = {"uploaded": refused(change.pop("uploaded"))} if "uploaded" in change else {}
    page = preview(browser, **{**change, **files})
    assert page.status_code == 200
    assert list(page.context["form"].errors) == [field]
    assert text in page.context["form"].errors[field][0]
    assert not StoppedItem.objects.exists()


def test_a_list_that_is_too_long_is_refused(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines and bytes have a limit each, and the message names it."""
    monkeypatch.setattr(id_lists, "MAX_LINES", 2)
    assert "3 lines are too many; 2 is the limit" in text_of(preview(browser, "P001\nP002\nP003"))
    monkeypatch.setattr(id_lists, "MAX_BYTES", 5)
    page = preview(browser, uploaded=SimpleUploadedFile("ids.txt", b"P001\nP002"))
    assert "6 bytes are too many; 5 is the limit" in text_of(page)


def test_a_list_without_a_single_id_cannot_be_confirmed(browser: Client) -> None:
    """It says so, and what is wrong with each line."""
    page = preview(browser, "no good\nbad!")
    assert "There is nothing to confirm." in text_of(page)
    assert 'type="submit"' not in text_of(page).split('name="plan"')[1]
    assert "Invalid: 2" in text_of(page)


def test_long_groups_are_cut_and_say_so(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page stays short; the counts are those of all."""
    monkeypatch.setattr(previews, "SHOWN", 2)
    page = preview(browser, "\n".join(["X1", "X2", "X3", "X4", "X1", "X1", "X1", "!", "?", "%"]))
    text = text_of(page)
    assert "New: 4" in text
    assert "The first 2 of them; the others are not shown" in text
    assert "Repeated: 3" in text
    assert "Invalid: 3" in text
    assert len(page.context["invalid"]) == len(page.context["repetitions"]) == 2


class TestTampering:
    """What is confirmed is what was shown."""

    def test_other_fields_beside_the_plan_do_nothing(self, browser: Client) -> None:
        """Only the signed plan counts."""
        page = preview(browser, "P001")
        confirm(browser, page, pasted="P002", verb="release", reason="other", item_ids="P003", catalog="capitals")
        assert list(StoppedItem.objects.values_list("catalog", "item_id", "reason")) == [("default", "P001", "legal")]

    @pytest.mark.parametrize("plan", ["", "x", "\x00", "a:b:c"])
    def test_a_crafted_plan_does_nothing(self, browser: Client, plan: str) -> None:
        """No error page either."""
        page = browser.post(BULK, {"plan": plan}, follow=True)
        assert "This is not the preview as it was shown. Nothing was changed." in text_of(page)
        assert not StoppedItem.objects.exists()
        assert not LogEntry.objects.exists()

    def test_somebody_elses_plan_does_nothing(self, browser: Client, login: Login) -> None:
        """Even of somebody who may do the same."""
        page = preview(browser, "P001")
        other = login("add", "change", "view")
        assert "somebody else" in text_of(confirm(other, page))
        assert not StoppedItem.objects.exists()

    def test_an_old_plan_does_nothing(self, browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        """A tab that was left open."""
        page = preview(browser, "P001")
        monkeypatch.setattr(plans, "MAX_AGE", -1)
        assert "more than an hour old" in text_of(confirm(browser, page))
        assert not StoppedItem.objects.exists()

    def test_a_catalog_that_is_gone_meanwhile_is_told(self, browser: Client, settings: Settings) -> None:
        """Between preview and confirmation the site was deployed anew."""
        page = preview(browser, "P001", catalog="capitals")
        settings.CATALOG_FALLBACK = {"default": settings.CATALOG_FALLBACK["default"]}
        text = text_of(confirm(browser, page))
        assert "0 of 1 are done, the others are not: There is no catalog" in text
        assert not StoppedItem.objects.exists()

    def test_a_plan_confirmed_twice_does_the_same_again(self, browser: Client) -> None:
        """A double click, or another process."""
        page = preview(browser, "P001")
        confirm(browser, page)
        confirm(browser, page)
        assert states() == {"P001": True}


class TestPermissions:
    """Who may."""

    @pytest.mark.parametrize("permissions", [(), ("view",), ("view", "add"), ("view", "change"), ("view", "delete")])
    def test_without_permission_everything_is_403(
        self, login: Login, browser: Client, permissions: tuple[str, ...]
    ) -> None:
        """The form, the preview and the confirmation; and no link leads there."""
        page = preview(browser, "P001")
        other = login(*permissions)
        assert other.get(BULK).status_code == 403
        assert preview(other, "P001").status_code == 403
        assert other.post(BULK, {"plan": plan_of(page)}).status_code == 403
        if permissions:
            assert BULK not in text_of(other.get(LIST))
        assert not StoppedItem.objects.exists()

    def test_strangers_are_sent_to_the_login(self) -> None:
        """As everywhere in the admin."""
        for response in (Client().get(BULK), Client().post(BULK, fields("P001"))):
            assert (response.status_code, response["Location"].split("?")[0]) == (302, "/admin/login/")

    def test_preview_and_confirmation_need_the_csrf_token(self, browser: Client) -> None:
        """The view that measures the form first is not a way past the check."""
        page = preview(browser, "P001")
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = browser.cookies
        assert strict.post(BULK, fields("P001")).status_code == 403
        assert strict.post(BULK, {"plan": plan_of(page)}).status_code == 403
        form = strict.get(BULK)
        token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', text_of(form))[-1]
        assert strict.post(BULK, {"plan": plan_of(page), "csrfmiddlewaretoken": token}).status_code == 302
        assert states() == {"P001": True}


class TestSizes:
    """Django's limits for forms never bite in silence."""

    def test_more_ids_than_a_form_may_have_fields(self, browser: Client) -> None:
        """The plan is one field."""
        item_ids = [f"X{number}" for number in range(1500)]
        page = confirm(browser, preview(browser, "\n".join(item_ids)))
        assert "1500 items are stopped." in text_of(page)
        assert len(states()) == 1500
        assert LogEntry.objects.count() == 1

    def test_a_text_beyond_the_limit_of_forms_is_explained(self, browser: Client, settings: Settings) -> None:
        """The way out is a file, which has another limit."""
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 20_000
        content = "\n".join(f"X{number:05}" for number in range(5_000))
        page = browser.post(BULK, fields(content), follow=True)
        assert "longer than a form of this site takes (20000 bytes). Upload it as a file instead." in text_of(page)
        page = preview(browser, uploaded=SimpleUploadedFile("ids.txt", content.encode()))
        assert "Stop 5000 items" in text_of(page)

    def test_a_plan_beyond_the_limit_of_forms_is_explained(self, browser: Client, settings: Settings) -> None:
        """Before it is shown, not when it is confirmed."""
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 6_000
        content = "\n".join(f"X{number * 7919 % 99991:05}" for number in range(5_000))
        page = preview(browser, uploaded=SimpleUploadedFile("ids.txt", content.encode()))
        assert "This list is too long for a form of this site" in text_of(page)
        assert 'name="plan"' not in text_of(page)

    def test_too_many_fields_are_explained(self, browser: Client, settings: Settings) -> None:
        """A crafted form is no error page."""
        settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 10
        page = browser.post(BULK, {**fields("P001"), **{f"x{number}": "" for number in range(20)}}, follow=True)
        assert "more fields than this site takes" in text_of(page)

    def test_a_file_that_is_far_too_long_is_not_even_read(
        self, browser: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the browser announces is enough."""
        page = browser.generic("POST", BULK, b"x", content_type="text/plain", CONTENT_LENGTH=str(100 * 1024 * 1024))
        assert page.status_code == 302
        assert "The file is too long; 4194304 bytes is the limit." in text_of(browser.get(BULK))


@pytest.fixture
def short_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part takes as long as a whole request may."""
    monkeypatch.setattr(bulk_work, "PART", 2)
    monkeypatch.setattr(bulk_work, "SHARE", 0)


@pytest.mark.usefixtures("short_requests")
class TestInParts:
    """A list that takes longer than a request may."""

    def test_it_goes_on_with_the_next_click(self, browser: Client) -> None:
        """Each page says how far it is; the log has one entry, and the rows one moment."""
        page = browser.post(BULK, {"plan": plan_of(preview(browser, "X1\nX2\nX3\nX4\nX5"))})
        assert "2 of 5 IDs are done in the database." in text_of(page)
        assert (len(states()), LogEntry.objects.get().change_message) == (2, "Stopped 2 of 5. Reason: legal.")
        page = browser.post(BULK, {"plan": plan_of(page)})
        assert "4 of 5 IDs are done" in text_of(page)
        page = confirm(browser, page)
        assert "5 items are stopped." in text_of(page)
        assert LogEntry.objects.get().change_message == "Stopped 5 of 5. Reason: legal."
        assert len(set(StoppedItem.objects.values_list("event_at", flat=True))) == 1
        assert services.find_item("X5").is_stopped

    def test_a_release_keeps_its_counts(self, browser: Client) -> None:
        """They are those of all parts."""
        services.stop_items(["X1", "X3"])
        services.stop_item("X5", event_at=timezone.now() + timedelta(hours=1))
        page = browser.post(BULK, {"plan": plan_of(preview(browser, "X1\nX2\nX3\nX4\nX5", verb="release"))})
        text = text_of(confirm(browser, browser.post(BULK, {"plan": plan_of(page)})))
        assert "2 items are released." in text
        assert "2 items were not stopped" in text
        assert "because of a later event (a notice dated ahead): 1." in text

    def test_what_was_left_stays_left(self, browser: Client) -> None:
        """Whoever leaves the page has done what the log says."""
        browser.post(BULK, {"plan": plan_of(preview(browser, "X1\nX2\nX3"))})
        assert states() == {"X1": True, "X2": True}
        assert LogEntry.objects.get().change_message == "Stopped 2 of 3. Reason: legal."


@pytest.fixture(params=[False, True], ids=["autocommit", "atomic-requests"])
def requests_are_atomic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without a transaction around each request."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", request.param)


@pytest.mark.usefixtures("requests_are_atomic")
class TestConfirmedByTheCache:
    """Whether it holds everywhere is told as it is."""

    @pytest.mark.parametrize(
        ("verb", "text"),
        [
            (
                "stop",
                "2 items are stopped in the database, but not confirmed by the cache. "
                "It takes at most 65 seconds until that holds everywhere.",
            ),
            (
                "release",
                "2 items are released in the database, but not confirmed by the cache. "
                "Pages may go on hiding what was released for at most 305 seconds.",
            ),
        ],
    )
    def test_a_cache_that_is_off_is_told(self, browser: Client, verb: str, text: str) -> None:
        """The rows are changed; the message says what that means, for how long, and what to do."""
        services.stop_items(["P001", "P002"])
        SwitchedCache.is_on = False
        page = confirm(browser, preview(browser, "P001\nP002", verb=verb))
        assert text in text_of(page)
        assert "Use the action “Publish again to the cache”" in text_of(page)
        assert set(states().values()) == {verb == "stop"}
        assert StoppedItem.objects.filter(published_at=None).count() == 2
        assert text_of(page).count("not confirmed</td>") == 2

    def test_lookups_that_ask_the_database_need_no_cache(self, browser: Client, settings: Settings) -> None:
        """With STOP_CHECK "database" the stop holds, and the message says why."""
        catalogs = settings.CATALOG_FALLBACK
        settings.CATALOG_FALLBACK = {"default": {**catalogs["default"], "STOP_CHECK": "database"}}
        assert services.find_item("P001").is_found
        SwitchedCache.is_on = False
        text = text_of(confirm(browser, preview(browser, "P001")))
        assert "not confirmed by the cache. Lookups ask the database too (STOP_CHECK), so it holds already." in text
        SwitchedCache.is_on = True
        assert services.find_item("P001").is_stopped

    def test_what_is_confirmed_is_just_done(self, browser: Client) -> None:
        """No second message."""
        page = confirm(browser, preview(browser, "P001"))
        assert [str(message) for message in page.context["messages"]] == ["1 item is stopped."]
        assert services.find_item("P001").is_stopped


@pytest.mark.parametrize("page_of", ["form", "preview", "continue", "history"])
def test_what_people_wrote_is_escaped_and_nothing_is_inline(
    browser: Client, page_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes, IDs and lines are shown as text; a strict Content-Security-Policy breaks no page."""
    attack = "<script>alert(1)</script>"
    pasted = f"P001\nP002\nP001\n{attack}"
    monkeypatch.setattr(bulk_work, "PART", 1)
    monkeypatch.setattr(bulk_work, "SHARE", 0)
    page = preview(browser, pasted, note=attack, reason=attack if page_of == "form" else "legal")
    if page_of == "continue":
        page = browser.post(BULK, {"plan": plan_of(page)})
    if page_of == "history":
        browser.post(BULK, {"plan": plan_of(page)})
        page = browser.get(f"{LIST}{StoppedItem.objects.get().pk}/history/")
    html = text_of(page)
    assert page.status_code == 200
    assert attack not in html
    assert page_of == "continue" or "&lt;script&gt;alert(1)" in html
    own = html[html.index('id="content"') :]
    assert " style=" not in own
    assert "<script" not in own.split("</main>")[0]
    assert "onclick" not in own


def test_pages_can_be_read_aloud(browser: Client) -> None:
    """Every field has a label, every table a name and heads with a scope, every section a heading."""
    form = text_of(browser.get(BULK))
    for name in ("catalog", "reason", "note", "pasted", "uploaded"):
        assert f'<label for="id_{name}"' in form
        assert f'aria-describedby="id_{name}_helptext"' in form or name == "catalog"
    assert "<legend>What shall happen:</legend>" in form
    html = text_of(preview(browser, "P001\nP001\nno good"))
    html = html[html.index('id="content-main"') :]
    tables = re.findall(r"<table\b.*?</table>", html, re.DOTALL)
    assert len(tables) == 3
    for table in tables:
        assert table.count("<caption>") + table.startswith("<table aria-labelledby=") == 1
        assert "<th>" not in table
        assert table.count('scope="col"') == 3
        assert table.count('scope="row"') == 1
    for names in re.findall(r'aria-labelledby="(bulk-[^"]+)"', html):
        for name in names.split():
            assert f'id="{name}"' in html


@pytest.mark.parametrize("verb", ["stop", "release"])
def test_a_site_without_time_zones_can_stop_and_release_lists(browser: Client, settings: Settings, verb: str) -> None:
    """USE_TZ = False: the moment of the event is one that its columns take, the log's too."""
    settings.USE_TZ = False
    services.stop_item("P001")
    confirm(browser, preview(browser, "P001\nP002", verb=verb))
    assert states() == {"P001": verb == "stop", "P002": verb == "stop"}
    history = browser.get(f"{LIST}{StoppedItem.objects.get(item_id='P001').pk}/history/")
    assert "a list of 2 IDs" in text_of(history)
