"""Do all pages of the example keep to a strict policy, and is nothing of the demonstration shipped or reachable?"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from django.conf import settings as site_settings
from django.test import Client, override_settings

import catalog_fallback
from catalog_fallback import urls as package_urls
from catalog_fallback.models import StoppedItem
from catalog_fallback.services import stop_item
from catalogs.server import CatalogServer
from portal.actions import ON_ALL, ON_ITEMS
from tests.example.pages import PATHS, double_ids, refused_by_the_policy, text_of, unlabelled

pytestmark = pytest.mark.django_db(transaction=True)

PACKAGE = Path(catalog_fallback.__file__).parent
PYPROJECT = PACKAGE.parent / "pyproject.toml"
STRICT = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
P001 = {"catalog": "default", "id": "P001"}


def policy_of(header: str) -> dict[str, str]:
    """The directives of a policy."""
    return dict(part.strip().split(" ", 1) for part in header.split(";"))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("is_debug", [True, False], ids=["demonstration", "production"])
def test_pages_keep_to_their_policy(site: Client, path: str, is_debug: bool) -> None:
    """The strict policy is sent; no script, style or handler stands in the page, nothing comes from elsewhere."""
    stop_item("GONE")
    with override_settings(DEBUG=is_debug):
        page = site.get(path)
    assert policy_of(page.headers["Content-Security-Policy"]) == STRICT
    assert refused_by_the_policy(page.content) == []


def test_a_page_full_of_news_keeps_to_the_policy(site: Client, catalogs: CatalogServer) -> None:
    """Messages, a hammer's report, refused calls and what a catalog sent do not break it."""
    catalogs.switchboard.switch("primary", "503-wait")
    site.get("/", P001)
    site.post("/do/hammer/", {**P001, "id": "P404"})
    site.post("/do/stop/", {"catalog": "default", "id": "nonsense <script>"})
    page = site.get("/", {"catalog": "default", "id": "P404"})
    shown = text_of(page.content)
    for words in ("50 callers at once", "asked to be left alone", "There is no such item"):
        assert words in shown
    assert refused_by_the_policy(page.content) == []


@pytest.mark.parametrize("path", ["/", "/?catalog=default&id=P002", "/notices/"], ids=["start", "answer", "notices"])
def test_fields_have_labels_and_ids_are_unique(site: Client, path: str) -> None:
    """Every field is named for those who cannot see it, and no ID stands twice."""
    page = site.get(path).content
    assert list(unlabelled(page)) == []
    assert double_ids(page) == set()


def test_the_scan_finds_what_it_looks_for() -> None:
    """The scanner itself sees inline scripts, styles, handlers and strangers."""
    page = (
        b'<script>x</script><style>x</style><p style="x" onclick="x"><a href="javascript:x"></a>'
        b'<img src="//cdn.example.com/x.png"><form action="https://example.com"></form><a href="/ok?x=a:b">ok</a>'
    )
    assert len(refused_by_the_policy(page)) == 7


def test_the_admin_may_show_its_pictures(site: Client) -> None:
    """Apart from pictures in its style sheets and a font, the admin gets the same policy."""
    policy = policy_of(site.get("/admin/login/").headers["Content-Security-Policy"])
    assert policy == {**STRICT, "img-src": "'self' data:", "font-src": "'self'"}


def test_the_icon_is_found_where_browsers_look(site: Client) -> None:
    """The admin names none, and a missing one would be an error in the console."""
    assert site.get("/favicon.ico").headers["Location"].endswith("/portal/icon.svg")


# ------------------------------------------------------------------------------------------------ only to demonstrate


@pytest.mark.parametrize("action", [*ON_ITEMS, *ON_ALL])
def test_in_production_the_buttons_do_not_exist(site: Client, catalogs: CatalogServer, action: str) -> None:
    """Without DEBUG an action is no page, and nothing happens."""
    form = {**P001, "source": "primary", "fault": "slow", "scene": "withdrawn"}
    with override_settings(DEBUG=False):
        assert site.post(f"/do/{action}/", form).status_code == 404
    assert catalogs.switchboard.as_dict()["primary"] == {"fault": "ok", "calls": 0}
    assert not StoppedItem.objects.exists()


def test_in_production_the_page_offers_no_buttons(site: Client) -> None:
    """What is left is the question and its answer."""
    with override_settings(DEBUG=False):
        page = site.get("/", P001).content
    assert b"Found: Blue teapot" in page
    assert b'method="post"' not in page
    assert b"/do/" not in page
    assert b'href="/notices/"' not in page


def test_nothing_of_the_demonstration_is_shipped() -> None:
    """The wheel holds the package only, which knows neither the example nor its buttons."""
    build = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["packages"] == ["catalog_fallback"]
    assert {pattern.name for pattern in package_urls.urlpatterns} - {None} == {"item", "notice"}
    sources = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.js")]
    assert len(sources) > 50
    for source in sources:
        text = source.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(from|import) (portal|catalogs|tour)\b", text, re.MULTILINE), source
        assert not re.search(r"do/(hammer|flush|reset|scene|fault)|portal/", text), source


def test_the_example_is_no_installed_app_of_the_tests() -> None:
    """What the tests of the package see is the package alone."""
    assert not {"portal", "catalogs"} & set(site_settings.INSTALLED_APPS)
