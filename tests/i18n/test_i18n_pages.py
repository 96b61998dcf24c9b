"""Does a person see pages, messages and answers in their own language, and nothing in English in between?"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.test import Client
from django.urls import include, path
from django.utils import translation

from catalog_fallback import exceptions, services
from catalog_fallback.models import StoppedItem, UnansweredItem
from catalog_fallback.told_errors import told
from tests.i18n.english import english_in, words_of
from tests.i18n.texts import CODES
from tests.sites import LOCMEM, SIMULATED
from tests.urls import urlpatterns as plain_urls

pytestmark = pytest.mark.django_db(transaction=True)

ADMIN = "/admin/catalog_fallback/"
STOPPED, SOURCES = f"{ADMIN}stoppeditem/", f"{ADMIN}catalogsource/"
ITEMS = "/catalog/default/items/"
LOOKUP = {"item_id": "P001", "catalog": "default", "language": "", "vary": ""}
BULK = {"verb": "stop", "catalog": "default", "reason": "legal", "note": ""}


def broken(request: HttpRequest) -> HttpResponse:
    """A view that cannot find out."""
    services.find_item("BUSY").raise_for_state()
    return HttpResponse("fine")


urlpatterns = [path("broken/", broken), path("", include(plain_urls))]


@pytest.fixture(autouse=True)
def _site(settings: Any) -> Iterator[None]:
    """A site that speaks the visitor's language, with a source that answers and one that does not."""
    answers = {"BACKEND": SIMULATED, "OPTIONS": {"items": {"P001": "Tea"}, "failing": {"BUSY": 503}}}
    settings.CACHES = {"default": {"BACKEND": LOCMEM, "LOCATION": uuid.uuid4().hex}}
    settings.CATALOG_FALLBACK = {
        "default": {
            "STOP_CHECK": "cache",
            "SOURCES": {"primary": answers, "third": {"BACKEND": SIMULATED, "ENABLED": False}},
            "GUARDS": {"payments": {}},
        },
        "other": {"SOURCES": {"plain": {**answers, "BREAKER": None, "RATE_LIMIT": {"CALLS": 3, "PER": 60}}}},
    }
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.locale.LocaleMiddleware",
        *site_settings.MIDDLEWARE[1:],
        "catalog_fallback.middleware.CatalogErrorMiddleware",
    ]
    yield
    translation.deactivate()  # a request leaves its language to the thread


Speaking = Callable[[str], Client]


@pytest.fixture
def speaking(transactional_db: None) -> Speaking:
    """Return the browser of somebody who may do everything and reads a language; some rows are there."""
    user = User.objects.create_superuser("boss", password="secret")
    services.stop_item("OLD", reason="legal", note="letter")
    services.release_item("BACK")
    UnansweredItem.objects.create(catalog="default", item_id="LATER", reason="timeout")

    def make(language: str) -> Client:
        browser = Client(headers={"Accept-Language": language})
        browser.force_login(user)
        return browser

    return make


def chosen(action: str, **fields: Any) -> dict[str, Any]:
    """An action on the only stopped row."""
    key = StoppedItem.objects.get(item_id="OLD").pk
    return {"action": action, "index": "0", "_selected_action": key, **fields}


def _change(page: str) -> str:
    return f"{STOPPED}{StoppedItem.objects.get(item_id='OLD').pk}/{page}/"


Get = Callable[[Client], Any]
PAGES: dict[str, Get] = {
    "index": lambda browser: browser.get("/admin/"),
    "stop-list": lambda browser: browser.get(STOPPED),
    "add": lambda browser: browser.get(f"{STOPPED}add/"),
    "add-wrong": lambda browser: browser.post(f"{STOPPED}add/", {"catalog": "default", "item_id": "no good"}),
    "change": lambda browser: browser.get(_change("change")),
    "delete": lambda browser: browser.get(_change("delete")),
    "history": lambda browser: browser.get(_change("history")),
    "confirm-stop": lambda browser: browser.post(STOPPED, chosen("stop")),
    "confirm-release": lambda browser: browser.post(STOPPED, chosen("release")),
    "confirm-publish": lambda browser: browser.post(STOPPED, chosen("republish_selected")),
    "confirm-delete": lambda browser: browser.post(STOPPED, chosen("delete_selected")),
    "bulk": lambda browser: browser.get(f"{STOPPED}bulk/"),
    "bulk-empty": lambda browser: browser.post(f"{STOPPED}bulk/", {**BULK, "pasted": ""}),
    "bulk-preview": lambda browser: browser.post(
        f"{STOPPED}bulk/", {**BULK, "pasted": "P001\nP001\nOLD\nBACK\nno good\n\n"}
    ),
    "bulk-release": lambda browser: browser.post(
        f"{STOPPED}bulk/", {**BULK, "verb": "release", "pasted": "P001\nOLD\nBACK"}
    ),
    "operations": lambda browser: browser.get(SOURCES),
    "isolate": lambda browser: browser.get(f"{SOURCES}default/primary/isolate/"),
    "isolated": lambda browser: browser.post(f"{SOURCES}default/primary/isolate/", {"reason": "..."}, follow=True),
    "restore": lambda browser: browser.get(f"{SOURCES}default/primary/restore/"),
    "reset": lambda browser: browser.get(f"{SOURCES}default/primary/reset/"),
    "look-up": lambda browser: browser.get(f"{SOURCES}lookup/", LOOKUP),
    "look-up-wrong": lambda browser: browser.get(f"{SOURCES}lookup/", {**LOOKUP, "item_id": "no good"}),
    "look-up-stopped": lambda browser: browser.get(f"{SOURCES}lookup/", {**LOOKUP, "item_id": "OLD"}),
    "looked-up": lambda browser: browser.post(f"{SOURCES}lookup/", {**LOOKUP, "run": "1"}),
    "unanswered": lambda browser: browser.get(f"{ADMIN}unanswereditem/"),
    "error-page": lambda browser: browser.get("/broken/", headers={"Accept": "text/html"}),
}


@pytest.mark.parametrize("directory", CODES)
@pytest.mark.parametrize("name", PAGES)
def test_no_english_is_left_on_a_page(speaking: Speaking, name: str, directory: str) -> None:
    """Neither a text of ours that has a translation, nor a sentence that nobody marked for translation."""
    page = PAGES[name](speaking(CODES[directory]))
    assert page.status_code in {200, 503}
    assert page.headers["Content-Language"] == CODES[directory]
    assert english_in(page.content.decode(), directory) == []


@pytest.mark.parametrize("directory", CODES)
def test_english_would_be_noticed(speaking: Speaking, directory: str) -> None:
    """The same pages, asked for in English, are full of it."""
    for name in ("stop-list", "bulk-preview", "operations", "looked-up"):
        assert len(english_in(PAGES[name](speaking("en")).content.decode(), directory)) > 2, name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("<p>nobody marked this one</p>", ["nobody marked this one"], id="sentence"),
        pytest.param('<button aria-label="nobody marked this one">', ["nobody marked this one"], id="spoken"),
        pytest.param("<p>見つかりました: Tea</p>", [], id="name"),
        pytest.param("<code>manage.py is no text at all</code>", [], id="code"),
    ],
)
def test_an_unmarked_sentence_would_be_noticed(text: str, expected: list[str]) -> None:
    """Wherever it is read; names and code are no sentences."""
    assert english_in(text, "ja") == expected


HEADINGS = {
    "stop-list": ("artículo bloqueado", "停止アイテム", "屏蔽条目"),
    "confirm-stop": ("Bloquear artículos", "アイテムを停止する", "屏蔽条目"),
    "bulk": ("Bloquear o desbloquear muchos artículos", "多数のアイテムの停止・停止解除", "批量屏蔽或解除屏蔽条目"),
    "bulk-preview": ("¿Bloquear estos artículos?", "これらのアイテムを停止しますか？", "要屏蔽这些条目吗？"),
    "operations": ("Catálogos y sus fuentes", "カタログとソース", "目录及其数据源"),
    "look-up": ("Consultar un ID", "ID を照会する", "查询 ID"),
    "looked-up": ("Qué trajo la consulta", "照会の結果", "查询结果"),
    "error-page": ("No se ha podido averiguar", "確認できませんでした", "无法查明"),
}


@pytest.mark.parametrize("directory", CODES)
@pytest.mark.parametrize("name", HEADINGS)
def test_a_page_has_its_heading(speaking: Speaking, name: str, directory: str) -> None:
    """In the words of the language."""
    expected = HEADINGS[name][list(CODES).index(directory)]
    assert expected in words_of(PAGES[name](speaking(CODES[directory])).content.decode())


PROBLEMS = {
    "not_found": (
        "P404",
        ("Ningún catálogo tiene este artículo", "このアイテムはどのカタログにもありません", "没有任何目录有此条目"),
    ),
    "stopped": ("OLD", ("Este artículo ha sido retirado", "このアイテムは取り下げられました", "此条目已撤下")),
    "unavailable": (
        "BUSY",
        (
            "No se ha podido averiguar si este artículo existe",
            "このアイテムがあるかどうか確認できませんでした",
            "无法查明此条目是否存在",
        ),
    ),
    "invalid_item_id": (
        "no%20good",
        ("Esto no puede ser un ID de artículo", "アイテム ID として正しくありません", "这不可能是条目 ID"),
    ),
}


@pytest.mark.parametrize("directory", CODES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_told_in_the_clients_language(speaking: Speaking, name: str, directory: str) -> None:
    """Title and detail; its type, by which programs know it, stays, and caches are told what it depends on."""
    item_id, titles = PROBLEMS[name]
    answer = speaking(CODES[directory]).get(f"{ITEMS}{item_id}/")
    problem = answer.json()
    assert problem["type"] == f"urn:problem-type:catalog-fallback:{name}"
    assert problem["title"] == titles[list(CODES).index(directory)]
    assert english_in(problem["detail"], directory) == []
    assert "Accept-Language" in answer.headers["Vary"]


@pytest.mark.parametrize("directory", CODES)
@pytest.mark.parametrize(
    ("url", "method"),
    [
        pytest.param("/catalog/nowhere/items/P001/", "get", id="unknown-catalog"),
        pytest.param(f"{ITEMS}P001/", "delete", id="method"),
        pytest.param("/catalog/default/notices/", "get", id="notice-method"),
        pytest.param("/catalog/default/notices/", "post", id="notice-type"),
    ],
)
def test_no_english_is_left_in_a_problem(speaking: Speaking, url: str, method: str, directory: str) -> None:
    """Whatever was wrong with the request."""
    problem = getattr(speaking(CODES[directory]), method)(url).json()
    assert english_in(f"{problem['title']} . {problem.get('detail', '')}", directory) == []


@pytest.mark.parametrize("directory", CODES)
@pytest.mark.parametrize("item_id", ["P001", "P404", "OLD", "BUSY"])
def test_the_template_for_readers_is_translated(speaking: Speaking, item_id: str, directory: str) -> None:
    """Each of the four states."""
    speaking("en")
    with translation.override(CODES[directory]):
        shown = render_to_string("catalog_fallback/item.html", {"lookup": services.find_item(item_id)})
    assert english_in(shown, directory) == []


def test_without_the_middleware_the_sites_language_counts(speaking: Speaking, settings: Any) -> None:
    """As for every text of Django."""
    settings.MIDDLEWARE = [each for each in settings.MIDDLEWARE if "LocaleMiddleware" not in each]
    settings.LANGUAGE_CODE = "es"
    assert speaking("ja").get(f"{ITEMS}P404/").json()["title"] == PROBLEMS["not_found"][1][0]


def test_an_error_is_english_for_logs_and_told_in_a_language() -> None:
    """``str()`` does not depend on who looks; ``told()`` does, also after a journey between processes."""
    with translation.override("es"), pytest.raises(exceptions.InvalidItemID) as caught:
        services.find_item("no good")
    assert "is no item ID of catalog 'default'" in str(caught.value)
    with translation.override("es"):
        assert told(caught.value).startswith("'no good' no es un ID de artículo del catálogo 'default': debe")
        assert told(ValueError("{as} it is")) == "{as} it is"
        assert told(exceptions.InvalidItemID("{as} it is")) == "{as} it is"


def test_commands_speak_english(speaking: Speaking, settings: Any, tmp_path: Path) -> None:
    """As Django's own do, whatever LANGUAGE_CODE is; also where they repeat what a notice is told."""
    settings.LANGUAGE_CODE = "es"
    lines = tmp_path / "notices.jsonl"
    lines.write_text('{"type": "item.stopped"}\nno good\n', encoding="utf-8")
    errors = StringIO()
    with pytest.raises(CommandError, match="Nothing was done"):
        call_command("invalidate_item", "--file", str(lines), stderr=errors)
    assert '"timestamp" has to be a moment since 1970' in errors.getvalue()
    assert "is no item ID of catalog" in errors.getvalue()
