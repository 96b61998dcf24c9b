"""Does the item view say over HTTP exactly what a lookup says, sync and async, whatever middleware is around it?"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.cache import cache
from django.db import OperationalError, connection
from django.test import AsyncClient, Client
from django.urls import include, path, reverse
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from catalog_fallback import cdn, problems, services, stop_list, urls, views
from catalog_fallback.exceptions import InvalidItemID, UnknownCatalog
from catalog_fallback.problems import PROBLEMS, TYPE_PREFIX
from tests.posting import SECRET, payload, post
from tests.sites import SIMULATED, MovableClock

URL = "/catalog/default/items/P001/"
ITEMS = {"P001": "Tea", "P002": {"name": "Coffee", "tags": ["a", "緑"]}}
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "statuses.md"
Ask = Callable[..., Any]


@pytest.fixture
def shop(settings: Any, transactional_db: None) -> Iterator[Callable[..., None]]:
    """A site whose items can be asked for; it may be configured anew."""
    cache.clear()
    options = {"items": ITEMS, "failing": {"BUSY": 503, "DEAD": "timeout", "ODD": 403}}
    source = {"BACKEND": SIMULATED, "OPTIONS": options, "BREAKER": None}

    def configure(source_keys: dict[str, Any] | None = None, **keys: Any) -> None:
        sources = {"only": {**source, **(source_keys or {})}}
        settings.CATALOG_FALLBACK = {"default": {"SOURCES": sources, "STOP_CHECK": "cache", **keys}}

    configure()
    yield configure
    cache.clear()


class _AsyncUrls:
    """A URLconf with the asynchronous twins."""

    urlpatterns = [path("catalog/", include((urls.async_urlpatterns, "catalog_fallback")))]  # noqa: RUF012


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, settings: Any, shop: Any) -> Ask:
    """GET through the test client of WSGI, or through that of ASGI to the asynchronous twin."""
    if request.param == "sync":
        return lambda url=URL, method="get", **how: getattr(Client(), method)(url, **how)
    settings.ROOT_URLCONF = _AsyncUrls

    def call(url: str = URL, method: str = "get", **how: Any) -> Any:
        return asyncio.run(getattr(AsyncClient(), method)(url, **how))

    return call


# ------------------------------------------------------------------------------------------------ states


def test_found(ask: Ask) -> None:
    """The lookup's own fields, without the trace."""
    reply = ask()
    told = reply.json()
    assert reply.status_code == 200
    assert reply["Content-Type"] == "application/json"
    assert (told["item"], told["source"], told["cache"]) == ({"id": "P001", "name": "Tea"}, "only", "miss")
    assert {*told, "trace"} == set(services.find_item("P001").as_dict())
    assert datetime.fromisoformat(told["expires_at"]) > datetime.fromisoformat(told["fetched_at"])
    assert ask().json() == {**told, "cache": "hit"}


def problem_of(reply: Any) -> dict[str, Any]:
    """The problem details, after a look at what is the same in all of them."""
    told: dict[str, Any] = reply.json()
    assert reply["Content-Type"] == "application/problem+json"
    name = told["type"].removeprefix(TYPE_PREFIX)
    assert told["title"] == PROBLEMS[name].title
    assert told["status"] == reply.status_code
    return {**told, "name": name}


def test_not_found(ask: Ask) -> None:
    """404, and nobody keeps it where the site does not."""
    reply = ask("/catalog/default/items/P404/")
    told = problem_of(reply)
    assert (reply.status_code, told["name"], told["state"], told["reason"]) == (
        404,
        "not_found",
        "not_found",
        "all_not_found",
    )
    assert reply["Cache-Control"] == "no-store"


def test_an_unknown_catalog_is_another_problem(ask: Ask) -> None:
    """404 too, and told apart by its type."""
    reply = ask("/catalog/nowhere/items/P001/")
    assert (reply.status_code, problem_of(reply)["name"]) == (404, "unknown_catalog")


@pytest.mark.parametrize(("reason", "status"), [("withdrawn", 410), ("quality", 410), ("other", 410), ("legal", 451)])
def test_stopped(ask: Ask, reason: str, status: int) -> None:
    """Gone, or unavailable for legal reasons; of the item nothing is told."""
    services.find_item("P001")
    services.stop_item("P001", reason=reason)
    for _ in range(2):
        reply = ask()
        told = problem_of(reply)
        assert (reply.status_code, told["name"], told["stop_reason"]) == (status, "stopped", reason)
        assert reply["Cache-Control"] == "no-store"
        assert b"Tea" not in reply.content
        assert "ETag" not in reply.headers


def test_stopped_while_the_database_cannot_be_asked_why(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache still knows that it is stopped: 410."""
    services.stop_item("P001", reason="legal")
    services.find_item("P001")

    def off(*args: Any) -> Any:
        raise OperationalError("no database")

    monkeypatch.setattr(stop_list, "rows_of", off)
    monkeypatch.setattr("catalog_fallback.filling.stop_list.is_stopped", lambda query: True)
    reply = ask()
    assert (reply.status_code, "stop_reason" in problem_of(reply)) == (410, False)


@pytest.mark.parametrize("status", [503, 504])
@pytest.mark.parametrize(("item_id", "reason"), [("BUSY", "incomplete_search"), ("ODD", "http_403")])
def test_unavailable(ask: Ask, shop: Any, item_id: str, reason: str, status: int) -> None:
    """Try again later; it is not said that there is no such item."""
    shop(UNAVAILABLE_STATUS=status)
    reply = ask(f"/catalog/default/items/{item_id}/")
    told = problem_of(reply)
    assert (reply.status_code, told["name"], told["reason"]) == (status, "unavailable", reason)
    assert (reply["Cache-Control"], int(reply["Retry-After"]) >= 1) == ("no-store", True)
    assert "item" not in told


@pytest.mark.parametrize(("retry_after", "seconds"), [(None, 5), (0.0, 1), (0.2, 1), (1.1, 2), (59.0, 59), (1e9, 3600)])
def test_retry_after(retry_after: float | None, seconds: int) -> None:
    """Whole seconds, at least one, at most an hour."""
    assert problems.retry_seconds(retry_after) == seconds


@pytest.mark.parametrize("item_id", ["no good", "..", "p001", "%00", "%EF%BF%BD", "P" * 33, "%ED%A0%80", "a%2Fb"])
def test_a_bad_id(ask: Ask, item_id: str) -> None:
    """400, and not a word about settings."""
    reply = ask(f"/catalog/default/items/{item_id}/")
    assert (reply.status_code, problem_of(reply)["name"]) == (400, "invalid_item_id")
    assert "ID_PATTERN" not in reply.content.decode()


def test_an_id_with_slashes(ask: Ask, shop: Any) -> None:
    """A DOI is one ID."""
    shop({"OPTIONS": {"items": {"10.1000/a/b": "Paper"}}}, ID_PATTERN=r"10\.\d+/.+")
    reply = ask("/catalog/default/items/10.1000/a/b/")
    assert reply.json()["item_id"] == "10.1000/a/b"


def test_the_route_can_be_reversed() -> None:
    """For links in templates."""
    assert reverse("catalog_fallback:item", args=("default", "10.1000/a b")) == "/catalog/default/items/10.1000/a%20b/"
    assert reverse("catalog_fallback:notice", args=("default",)) == "/catalog/default/notices/"


def test_an_id_in_another_spelling(ask: Ask, shop: Any) -> None:
    """One item, one answer."""
    shop(NORMALIZE_ID=lambda item_id: item_id.upper())
    assert ask("/catalog/default/items/p001/").json()["item_id"] == "P001"


def test_a_catalog_whose_items_have_variants(ask: Ask, shop: Any) -> None:
    """The view does not ask for them: each would be another entry in the cache."""
    shop(
        {
            "BACKEND": "catalog_fallback.sources.json_item.JSONItemSource",
            "URL": "https://a.example/{id}/{region}",
            "OPTIONS": {},
        }
    )
    reply = ask()
    assert (reply.status_code, problem_of(reply)["name"]) == (404, "unknown_catalog")


def test_query_parameters_change_nothing(ask: Ask) -> None:
    """No language, no variant, no refresh from outside."""
    ask()
    reply = ask(f"{URL}?refresh=1&language=de&vary=x&budget=0")
    assert reply.json()["cache"] == "hit"


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options"])
def test_other_methods(ask: Ask, method: str) -> None:
    """405, with what is possible."""
    reply = ask(method=method)
    assert (reply.status_code, reply["Allow"], problem_of(reply)["name"]) == (405, "GET, HEAD", "method_not_allowed")


def test_head(ask: Ask) -> None:
    """The same headers, no body."""
    got, reply = ask(), ask(method="head")
    assert (reply.status_code, reply.content, reply["ETag"]) == (200, b"", got["ETag"])


# ------------------------------------------------------------------------------------------------ fallback data


def test_degraded_data(ask: Ask, shop: Any) -> None:
    """The site's own data, as members of the problem: still 503."""
    from decimal import Decimal  # noqa: PLC0415  # only here

    shop(FALLBACK={"name": "Tea?", "price": Decimal("1.50")})
    reply = ask("/catalog/default/items/BUSY/")
    told = problem_of(reply)
    assert (reply.status_code, told["degraded"]) == (503, True)
    assert told["item"] == {"name": "Tea?", "price": "1.50"}


# ------------------------------------------------------------------------------------------------ validators, age


def test_the_etag_is_over_item_and_provenance(ask: Ask, moving: MovableClock) -> None:
    """A miss and the hits after it have the same; what is fetched anew has another."""
    first = ask()["ETag"]
    assert first.startswith('W/"')
    assert ask()["ETag"] == first
    services.invalidate_item("P001")
    moving.move(5)
    assert ask()["ETag"] != first


@pytest.mark.parametrize("form", ["{}", '"x", {}', "*", "{} "])
def test_not_modified(ask: Ask, form: str) -> None:
    """304 without a body, with what a cache has to know."""
    etag = ask()["ETag"]
    reply = ask(headers={"If-None-Match": form.format(etag)})
    assert (reply.status_code, reply.content, reply["ETag"]) == (304, b"", etag)
    assert (reply["Cache-Control"], reply["Age"]) == ("no-cache", "0")
    assert reply["Cache-Status"].startswith("catalog_fallback; hit; ttl=")


@pytest.mark.parametrize("etag", ["", "W/", '"', "x", 'W/"other"', "\\", ",,,", '"a" "b"'])
def test_odd_validators(ask: Ask, etag: str) -> None:
    """The whole answer."""
    assert ask(headers={"If-None-Match": etag}).status_code == 200


def test_a_stopped_item_is_never_not_modified(ask: Ask) -> None:
    """Who has a copy learns that it is gone."""
    etag = ask()["ETag"]
    services.stop_item("P001")
    for value in (etag, "*"):
        assert ask(headers={"If-None-Match": value}).status_code == 410


def test_age_and_cache_status(ask: Ask, moving: MovableClock) -> None:
    """How old it is, and where it came from (RFC 9211)."""
    reply = ask()
    assert (reply["Age"], reply["Cache-Status"]) == ("0", "catalog_fallback; fwd=miss; stored; ttl=59")
    moving.move(20)
    reply = ask()
    assert reply["Age"] == "20"
    assert reply["Cache-Status"] == "catalog_fallback; hit; ttl=39"


def test_what_is_not_kept_has_no_life(ask: Ask, shop: Any) -> None:
    """Neither here nor anywhere else."""
    shop(TTL=0)
    reply = ask()
    assert (reply["Cache-Status"], reply["Cache-Control"]) == ("catalog_fallback; fwd=miss", "no-store")


def test_stale(ask: Ask, shop: Any, moving: MovableClock) -> None:
    """200, told as stale, and no cache behind us may keep it."""
    shop(STALE_IF_ERROR=600, CDN_TAG_HEADER="Cache-Tag")
    ask()
    shop({"OPTIONS": {"failure": 503}}, STALE_IF_ERROR=600, CDN_TAG_HEADER="Cache-Tag")
    moving.move(100)
    reply = ask()
    assert (reply.status_code, reply.json()["cache"], reply["Age"]) == (200, "stale", "100")
    assert reply["Cache-Control"] == "no-cache"
    assert re.fullmatch(r"catalog_fallback; fwd=stale; ttl=-4\d", reply["Cache-Status"])


def test_the_detail_of_what_is_unavailable(ask: Ask) -> None:
    """The reason, as everywhere."""
    reply = ask("/catalog/default/items/DEAD/")
    assert reply["Cache-Status"] == "catalog_fallback; fwd=miss; detail=incomplete_search"
    assert "Age" not in reply.headers


# ------------------------------------------------------------------------------------------------ CDN


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Surrogate-Key", "catalog-default-P001 catalog-default"),
        ("Cache-Tag", "catalog-default-P001,catalog-default"),
    ],
)
def test_a_cdn_that_can_forget_may_answer(ask: Ask, shop: Any, header: str, value: str) -> None:
    """Browsers still ask each time."""
    shop(CDN_TAG_HEADER=header, TTL=300, NEGATIVE_TTL=30)
    reply = ask()
    assert reply["Cache-Control"] == "public, max-age=0, must-revalidate, s-maxage=300"
    assert reply[header] == value
    assert value.startswith(cdn.item_tag("P001") + value[len(cdn.item_tag("P001"))])
    assert ask(headers={"If-None-Match": reply["ETag"]})[header] == value
    missing = ask("/catalog/default/items/P404/")
    assert missing["Cache-Control"] == "public, max-age=0, must-revalidate, s-maxage=30"
    assert missing[header].startswith("catalog-default-P404")


def test_without_a_cdn_everybody_asks(ask: Ask) -> None:
    """So that a withdrawn item goes from every browser at once."""
    reply = ask()
    assert reply["Cache-Control"] == "no-cache"
    assert not {"Surrogate-Key", "Cache-Tag"} & set(reply.headers)


def test_tags(shop: Any) -> None:
    """Legal in every header, different for different items, one for a whole catalog."""
    shop(KEY_PREFIX="a,b;c", ID_PATTERN=".+")
    tags = {cdn.item_tag(item_id) for item_id in ("a b", "a,b", "a/b", "é", "P001", "x" * 200)}
    assert len(tags) == 6
    assert all(re.fullmatch(r"[A-Za-z0-9._~-]{1,200}", tag) for tag in tags)
    assert all(tag.startswith(cdn.catalog_tag()) for tag in tags)


def test_tags_of_nothing(shop: Any) -> None:
    """Misuse is an exception."""
    with pytest.raises(InvalidItemID):
        cdn.item_tag("no good")
    with pytest.raises(UnknownCatalog):
        cdn.catalog_tag("nowhere")


def test_the_purge_hook_is_told_what_to_purge(shop: Any) -> None:
    """``items_invalidated`` has what the tags are made of."""
    from catalog_fallback.signals import items_invalidated  # noqa: PLC0415  # only here

    purged: list[str] = []

    def purge(catalog: str, item_ids: tuple[str, ...], **_: Any) -> None:
        purged.extend(cdn.item_tag(item_id, catalog=catalog) for item_id in item_ids)

    shop(NOTICE_SECRETS=[SECRET])
    items_invalidated.connect(purge)
    try:
        assert post(payload("item.stopped", ["P001", "P002"])).status_code == 200
        assert post(payload("item.released", "P001")).status_code == 200
    finally:
        items_invalidated.disconnect(purge)
    assert purged == ["catalog-default-P001", "catalog-default-P002", "catalog-default-P001"]


# ------------------------------------------------------------------------------------------------ around it

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.cache.UpdateCacheMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.cache.FetchFromCacheMiddleware",
    "catalog_fallback.middleware.CatalogErrorMiddleware",
]


@pytest.fixture
def around(settings: Any, shop: Any) -> None:
    """Everything that a site may have switched on."""
    settings.MIDDLEWARE = MIDDLEWARE
    settings.DATABASES["default"]["ATOMIC_REQUESTS"] = True
    connection.settings_dict["ATOMIC_REQUESTS"] = True


@pytest.fixture(autouse=True)
def _not_atomic_afterwards() -> Iterator[None]:
    before = connection.settings_dict.get("ATOMIC_REQUESTS", False)
    yield
    connection.settings_dict["ATOMIC_REQUESTS"] = before


@pytest.mark.usefixtures("around")
def test_a_notice_gets_through_all_of_it(shop: Any, django_user_model: Any) -> None:
    """No login, no CSRF token, no transaction around it, no stored answer."""
    shop(NOTICE_SECRETS=[SECRET])
    services.find_item("P001")
    assert post(payload("item.stopped")).status_code == 200
    assert services.find_item("P001").is_stopped
    assert post(payload("item.released"), url="/catalog/default/notices").status_code == 200
    assert services.find_item("P001").is_found


@pytest.mark.usefixtures("around")
def test_items_are_behind_the_login_where_the_site_is(ask: Ask) -> None:
    """The item view is the site's to open: ``login_not_required(views.item)``."""
    assert ask().status_code == 302


@pytest.mark.usefixtures("around")
def test_items_get_through_all_of_it(ask: Ask, settings: Any) -> None:
    """ATOMIC_REQUESTS does not make entries unchecked, and the site's cache middleware keeps no item."""
    settings.MIDDLEWARE = [each for each in MIDDLEWARE if "LoginRequired" not in each]
    reply = ask()
    assert ask().json()["cache"] == "hit"
    assert ask(headers={"If-None-Match": reply["ETag"]}).status_code == 304
    services.stop_item("P001")
    assert ask().status_code == 410


def test_no_view_is_atomic() -> None:
    """On no database, known or not."""
    for view in (views.item, views.aitem, views.notice):
        assert all(alias in view._non_atomic_requests for alias in ("default", "other"))  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------ odd input


@hypothesis_settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    item_id=st.text(min_size=1, max_size=60) | st.sampled_from(["P001", "BUSY", "P404"]),
    catalog=st.just("default") | st.text(alphabet="abz-_9", min_size=1, max_size=70),
    query=st.text(max_size=20),
    headers=st.dictionaries(
        st.sampled_from(["If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since", "Accept", "Range"]),
        st.text(alphabet=st.characters(max_codepoint=255), max_size=30),
    ),
)
def test_odd_questions(shop: Any, item_id: str, catalog: str, query: str, headers: dict[str, str]) -> None:
    """Whatever is in the path, the query and the headers: an answer of the table, never a 500."""
    path_ = quote(item_id.encode("utf-8", "surrogatepass"), safe="/")
    url = f"/catalog/{catalog}/items/{path_}/?{quote(query.encode('utf-8', 'surrogatepass'))}"
    reply = Client(raise_request_exception=False).get(url, headers=headers)
    assert reply.status_code in {200, 304, 400, 404, 412, 503}
    if reply.get("Content-Type") == "application/problem+json":  # else Django's own: no route, a precondition
        assert json.loads(reply.content)["status"] == reply.status_code
    else:
        assert reply.status_code in {200, 304, 404, 412}


# ------------------------------------------------------------------------------------------------ reference


def test_the_page_has_every_problem() -> None:
    """docs/reference/statuses.md, against the table in the code; statuses that follow from a setting are beside it."""
    rows = re.findall(r"^\| `([a-z_]+)` \| ([\d, ]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    statuses = {name: [int(each) for each in told.split(", ")] for name, told in rows}
    others = {"stopped": [451], "unavailable": [504], "call_rejected": [504]}
    assert statuses == {name: [kind.status, *others.get(name, [])] for name, kind in PROBLEMS.items()}
