"""Does the example speak its visitor's language: pages, live figures, messages, and nothing in English in between?"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from django.conf import settings as site_settings
from django.test import Client, override_settings
from django.utils import translation

import portal
from catalog_fallback.services import stop_item
from catalogs.server import CatalogServer
from devtools.messages import languages
from tests.example.pages import PATHS, double_ids, refused_by_the_policy, unlabelled
from tests.i18n.english import english_in, words_of
from tests.i18n.texts import CODES

pytestmark = pytest.mark.django_db(transaction=True)

PROJECT = Path(portal.__file__).parents[1]
P001 = {"catalog": "default", "id": "P001"}
Speaking = Callable[[str], Client]


@pytest.fixture
def speaking(site: Client) -> Iterator[Speaking]:
    """Return a browser on the example that asks for pages in a language."""
    middleware = [*site_settings.MIDDLEWARE]
    middleware.insert(
        middleware.index("django.contrib.sessions.middleware.SessionMiddleware") + 1,
        "django.middleware.locale.LocaleMiddleware",
    )
    with override_settings(MIDDLEWARE=middleware, LOCALE_PATHS=[PROJECT / "locale"]):
        yield lambda language: Client(headers={"Accept-Language": language})
    translation.deactivate()  # a request leaves its language to the thread


@pytest.fixture
def settings_of_the_example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The example's own settings, as a module of their own."""
    monkeypatch.setenv("EXAMPLE_VAR", str(tmp_path))
    monkeypatch.setenv("EXAMPLE_DATA", str(tmp_path))
    spec = importlib.util.spec_from_file_location("example_settings", PROJECT / "portal" / "settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "example_settings", module)
    spec.loader.exec_module(module)
    return module


def test_the_settings_offer_what_is_translated(settings_of_the_example: ModuleType) -> None:
    """No language that is half there; the middleware is where Django wants it."""
    offered = [code for code, _name in settings_of_the_example.LANGUAGES]
    assert sorted(offered) == sorted(["en", *CODES.values()])
    assert settings_of_the_example.LOCALE_PATHS == [PROJECT / "locale"]
    assert languages(PROJECT) == sorted(CODES)
    order = [each.rpartition(".")[2] for each in settings_of_the_example.MIDDLEWARE]
    assert order.index("SessionMiddleware") < order.index("LocaleMiddleware") < order.index("CommonMiddleware")


@pytest.mark.parametrize("directory", CODES)
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_no_english_is_left_on_a_page(speaking: Speaking, path: str, directory: str) -> None:
    """And the page keeps to the strict policy, with an ID and a label for each field, in every language."""
    stop_item("GONE")
    page = speaking(CODES[directory]).get(path)
    assert page.status_code == 200
    assert f'<html lang="{CODES[directory]}">' in page.content.decode()
    assert english_in(page.content.decode(), directory) == []
    assert refused_by_the_policy(page.content) == []
    assert double_ids(page.content) == set()
    assert [*unlabelled(page.content)] == []


@pytest.mark.parametrize("directory", CODES)
def test_no_english_is_left_in_an_outage(speaking: Speaking, catalogs: CatalogServer, directory: str) -> None:
    """Reasons, breakers and the site's own data."""
    for source in ("primary", "secondary"):
        catalogs.switchboard.switch(source, "down")
    browser = speaking(CODES[directory])
    for item_id in ("P404", "P009"):
        page = browser.get("/", {"catalog": "shop", "id": item_id})
        assert english_in(page.content.decode(), directory) == []


@pytest.mark.parametrize(
    ("directory", "expected"),
    [
        ("es", "Un artículo, varios catálogos, una respuesta honesta"),
        ("ja", "1 つのアイテム、複数のカタログ、正直な答え"),
        ("zh_Hans", "一个条目，多个目录，诚实的回答"),
    ],
)
def test_the_page_has_its_heading(speaking: Speaking, directory: str, expected: str) -> None:
    """In the words of the language."""
    assert f"<h1>{expected}</h1>" in speaking(CODES[directory]).get("/").content.decode()


@pytest.mark.parametrize("directory", CODES)
def test_live_figures_are_those_of_the_page(speaking: Speaking, directory: str) -> None:
    """What the script puts into the page is in the page's language."""
    browser = speaking(CODES[directory])
    page = words_of(browser.get("/", P001).content.decode())
    facts = browser.get("/state.json", P001).json()["facts"]
    breaker = facts["primary.breaker"]["text"]
    assert breaker in page
    assert english_in(json.dumps(facts, ensure_ascii=False), directory) == []


@pytest.mark.parametrize(
    ("directory", "expected"),
    [
        ("es", "P001 se puede volver a mostrar."),
        ("ja", "P001 を再び表示できます。"),
        ("zh_Hans", "P001 可以再次显示。"),
    ],
)
def test_messages_are_translated(speaking: Speaking, directory: str, expected: str) -> None:
    """What a button did is told in the language of who pressed it."""
    page = speaking(CODES[directory]).post("/do/release/", P001, follow=True)
    assert expected in page.content.decode()


@pytest.mark.parametrize("directory", CODES)
def test_a_visitor_may_choose_another_language(speaking: Speaking, directory: str) -> None:
    """With a button at the end of each page, which stays where they are and wins over the browser's wish."""
    browser = speaking("en")
    code = CODES[directory]
    own_name = {"es": "español", "ja": "日本語", "zh_Hans": "简体中文"}[directory]
    with override_settings(LANGUAGES=[("en", "English"), (code, "whatever the settings say")]):
        page = browser.get("/notices/")
        assert f'value="{code}" lang="{code}">{own_name}</button>' in page.content.decode()
        answer = browser.post("/i18n/setlang/", {"language": code}, headers={"Referer": "http://testserver/notices/"})
        assert answer.headers["Location"].endswith("/notices/")
        chosen = browser.get("/notices/").content.decode()
    assert f'<html lang="{code}">' in chosen
    assert f'value="{code}" lang="{code}" aria-current="true">' in chosen


def test_a_language_without_translations_gets_english(speaking: Speaking) -> None:
    """Whole pages in one language."""
    with override_settings(LANGUAGES=[("en", "English"), ("ja", "日本語")]):
        page = speaking("tlh,de;q=0.5").get("/")
    assert '<html lang="en' in page.content.decode()
    assert "One item, several catalogs" in page.content.decode()
