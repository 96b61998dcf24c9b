"""Do the cookbook, and the page on what happens when nobody answers, do what they say? Every block runs."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import requests
import responses
from django.core.management import call_command
from django.db import OperationalError

from catalog_fallback import services
from catalog_fallback.conf import parse
from catalog_fallback.exceptions import CircuitOpen, ItemUnavailable
from catalog_fallback.guards import guards_of
from catalog_fallback.models import UnansweredItem
from catalog_fallback.retrying import Retried
from catalog_fallback.testing import fake_source
from tests.docs.scene import listeners_taken_back

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {
    name: BLOCK.findall((HOW_TO / f"{name}.md").read_text("utf-8")) for name in ("cookbook", "when-nobody-answers")
}
PAY = "https://pay.example.com/payments"
CUSTOMER = "https://portal.example.com/customers/C042"
NOWHERE = requests.ConnectionError("nobody there")


def block(page: str, *words: str) -> str:
    """The one block of a page that holds all of these words."""
    (found,) = [code for code in PAGES[page] if all(word in code for word in words)]
    return found


class Rows:
    """A table of a site's own: just enough of a manager."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def get_or_create(self, *, key: str, defaults: dict[str, Any]) -> None:
        """Add a row, unless there is one with this key."""
        if not any(row.key == key for row in self.rows):
            row = SimpleNamespace(key=key, pk=len(self.rows), **defaults)
            row.delete = lambda: self.rows.remove(row)
            self.rows.append(row)

    def order_by(self, *_: str) -> list[Any]:
        """All rows."""
        return list(self.rows)

    def filter(self, *, number: str) -> Any:
        """Those with a number, of which the first is asked for."""
        return SimpleNamespace(first=lambda: next((row for row in self.rows if row.number == number), None))


@pytest.fixture
def shop(settings: Any, monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[ModuleType]:
    """The package that the pages speak of, with its models, in a site with an empty cache."""
    settings.CACHES = {"default": {"BACKEND": "tests.stores.MemoryCache", "LOCATION": uuid.uuid4().hex}}
    package, models = ModuleType("shop"), ModuleType("shop.models")
    package.__path__ = []
    models.QueuedPayment = SimpleNamespace(objects=Rows())  # type: ignore[attr-defined]
    models.Product = SimpleNamespace(objects=Rows())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop", package)
    monkeypatch.setitem(sys.modules, "shop.models", models)
    with listeners_taken_back():
        yield models
    for name in [name for name in sys.modules if name.startswith("shop.") and name != "shop.models"]:
        del sys.modules[name]


def module(page: str, name: str) -> Any:
    """Load the block that begins with the name of its file."""
    code = block(page, f"# shop/{name}.py\n")
    found = ModuleType(f"shop.{name}")
    sys.modules[found.__name__] = found
    setattr(sys.modules["shop"], name, found)
    exec(compile(code, f"{name}.py", "exec"), vars(found))  # noqa: S102  # our own page
    return found


def settings_of(page: str, *words: str) -> dict[str, Any]:
    """The settings of a page; nothing in them may be worth a complaint."""
    names: dict[str, Any] = {}
    exec(block(page, "# settings.py\n", *words), names)  # noqa: S102  # our own page
    found: dict[str, Any] = names["CATALOG_FALLBACK"]
    assert [str(one) for one in parse(found)[1]] == []
    return found


def test_every_block_is_tested_here() -> None:
    """A new one needs a test."""
    known = {
        "cookbook": ["forecast", "GUARDS", "payments.py", "licences.py", "reports.py", "mails.py", '"licences"'],
        "when-nobody-answers": ["FALLBACK", "own_data.py", 'find_item("P001")', "receivers.py", "enqueue_retry"],
    }
    for page, words in known.items():
        assert all(any(word in code for word in words) for code in PAGES[page])
    assert {name: len(codes) for name, codes in PAGES.items()} == {"cookbook": 7, "when-nobody-answers": 5}


# --- the cookbook ---------------------------------------------------------------------------------------------------


def test_the_first_example(shop: Any) -> None:
    """Five failures, then None at once."""
    asked: list[str] = []

    def ask(town: str) -> None:
        asked.append(town)
        raise TimeoutError

    names: dict[str, Any] = {"ask_the_weather_service": ask}
    exec(block("cookbook", "forecast"), names)  # noqa: S102  # our own page
    assert [names["forecast"]("Oslo") for _ in range(8)] == [None] * 8
    assert len(asked) == 5


@responses.activate
def test_a_payment_is_queued_while_the_provider_is_down(shop: Any, settings: Any) -> None:
    """Three failures of any kind, and nobody is called any more; once it works, what is queued is paid in order."""
    settings.CATALOG_FALLBACK = settings_of("cookbook", "payments")
    payments, queued = module("cookbook", "payments"), shop.QueuedPayment.objects.rows
    responses.post(PAY, json={})
    assert payments.pay(1, 350, "k1") == "paid"
    for failure in ({"body": NOWHERE}, {"status": 503}, {"body": requests.ReadTimeout()}):
        responses.upsert(responses.POST, PAY, **failure)
        assert payments.pay(2, 500, "k2") == "queued"
    assert payments.pay(3, 700, "k3") == "queued"
    assert len(responses.calls) == 4
    assert [(row.order_id, row.cents, row.key) for row in queued] == [(2, 500, "k2"), (3, 700, "k3")]
    payments.pay_what_is_queued()
    assert (len(queued), len(responses.calls)) == (2, 4)
    guards_of["default"].get("payments")[1].reset()
    responses.upsert(responses.POST, PAY, json={})
    payments.pay_what_is_queued()
    assert (queued, [call.request.headers["Idempotency-Key"] for call in responses.calls][4:]) == ([], ["k2", "k3"])


@responses.activate
def test_a_payment_that_is_refused_by_the_provider(shop: Any, settings: Any) -> None:
    """The page hears of it, nothing is queued, and the breaker does not mind."""
    settings.CATALOG_FALLBACK = settings_of("cookbook", "payments")
    payments = module("cookbook", "payments")
    responses.post(PAY, status=402)
    for _ in range(5):
        with pytest.raises(requests.HTTPError):
            payments.pay(1, 350, "k1")
    assert (shop.QueuedPayment.objects.rows, len(responses.calls)) == ([], 5)


@pytest.fixture
def licences(shop: Any, settings: Any) -> Iterator[Any]:
    """The portal's module; the portal knows a customer with one licence."""
    configured = settings_of_licences()
    settings.CATALOG_FALLBACK = configured
    with responses.RequestsMock(assert_all_requests_are_fired=False) as portal:
        portal.get(CUSTOMER, json={"item": {"id": "C042", "name": "Ms Tea", "licences": ["L1"]}})
        yield SimpleNamespace(portal=portal, module=sys.modules["shop.licences"])


def settings_of_licences() -> dict[str, Any]:
    """The settings name a class of the module, so that has to be there first."""
    module("cookbook", "licences")
    return settings_of("cookbook", "portal_writes")


def gets(licences: Any) -> int:
    """How often the portal was asked for the customer."""
    return len([call for call in licences.portal.calls if call.request.method == "GET"])


def test_the_list_is_kept(licences: Any) -> None:
    """Two pages, one call."""
    assert [licences.module.licences_of("C042") for _ in range(2)] == [["L1"], ["L1"]]
    assert gets(licences) == 1


WRITES = {
    "created": ("POST", f"{CUSTOMER}/licences", {"json": {"number": "L2"}}, None),
    "not taken": ("POST", f"{CUSTOMER}/licences", {"status": 409}, requests.HTTPError),
    "created, perhaps": ("POST", f"{CUSTOMER}/licences", {"body": requests.ReadTimeout()}, requests.ReadTimeout),
    "deleted": ("DELETE", f"{CUSTOMER}/licences/L1", {"status": 204}, None),
    "was gone": ("DELETE", f"{CUSTOMER}/licences/L1", {"status": 404}, None),
    "not deleted": ("DELETE", f"{CUSTOMER}/licences/L1", {"status": 403}, requests.HTTPError),
    "nobody there": ("DELETE", f"{CUSTOMER}/licences/L1", {"body": NOWHERE}, requests.ConnectionError),
}


@pytest.mark.parametrize("case", WRITES)
def test_a_write_always_forgets_the_list(licences: Any, case: str) -> None:
    """Whether it succeeded or raised; 404 is a deletion that succeeded."""
    method, url, reply, error = WRITES[case]
    licences.module.licences_of("C042")
    licences.portal.add(method, url, **reply)
    write = licences.module.create_licence if method == "POST" else licences.module.delete_licence
    if error is None:
        write("C042", "L1")
    else:
        with pytest.raises(error):
            write("C042", "L1")
    licences.module.licences_of("C042")
    assert gets(licences) == 2


def test_a_portal_that_is_down_is_left_alone(licences: Any) -> None:
    """Five failures; then the caller hears it at once, and reading goes on."""
    licences.portal.post(f"{CUSTOMER}/licences", status=500)
    for _ in range(5):
        with pytest.raises(licences.module.PortalDown):
            licences.module.create_licence("C042", "Tea")
    with pytest.raises(CircuitOpen) as caught:
        licences.module.create_licence("C042", "Tea")
    assert caught.value.retry_after is not None
    assert licences.module.licences_of("C042") == ["L1"]


class ReportsDatabase:
    """``connections`` of a site whose database "reports" may be away."""

    def __init__(self) -> None:
        self.is_away = False
        self.asked = 0
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE TABLE sales (day TEXT, cents INTEGER)")
        self._database.execute("INSERT INTO sales VALUES ('2026-03-01', 350), ('2026-03-01', 150)")

    def __getitem__(self, alias: str) -> ReportsDatabase:
        assert alias == "reports"
        return self

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        """A cursor, unless it is away."""
        self.asked += 1
        if self.is_away:
            raise OperationalError("away")
        cursor = self._database.cursor()
        yield SimpleNamespace(
            execute=lambda sql, values: cursor.execute(sql.replace("%s", "?"), values), fetchone=cursor.fetchone
        )

    def close(self) -> None:
        """At the end of the test."""
        self._database.close()


def test_a_page_without_its_database(shop: Any) -> None:
    """The number while it is there, None while it is not, and no waiting after five failures."""
    reports = module("cookbook", "reports")
    with closing(ReportsDatabase()) as database:
        reports.connections = database
        assert [reports.turnover(f"2026-03-0{day}") for day in (1, 2)] == [500, 0]
        database.is_away = True
        assert [reports.turnover("2026-03-01") for _ in range(8)] == [None] * 8
        assert database.asked == 2 + 5


def test_a_mail_server(shop: Any) -> None:
    """A coroutine function, its fallback, and a block with the same guard."""
    mails = module("cookbook", "mails")
    sent: list[str] = []

    class Server:
        error: Exception | None = None

        async def send(self, message: str) -> None:
            if self.error is not None:
                raise self.error
            sent.append(message)

    mails.server = Server()
    assert asyncio.run(mails.send("one")) is True
    asyncio.run(mails.send_many(["two", "three"]))
    mails.server.error = TimeoutError()
    assert [asyncio.run(mails.send(f"late {n}")) for n in range(6)] == [False] * 6
    with pytest.raises(CircuitOpen):
        asyncio.run(mails.send_many(["four"]))
    assert (sent, len(mails.outbox)) == (["one", "two", "three"], 6)


# --- when nobody answers --------------------------------------------------------------------------------------------


@pytest.fixture
def outage(shop: Any, settings: Any) -> Any:
    """A site as the page describes it, whose source is down, and that knows one item by itself."""
    module("when-nobody-answers", "own_data")
    shop.Product.objects.rows.append(SimpleNamespace(number="P001", title="Tea, our own words"))
    configured = settings_of("when-nobody-answers", "FALLBACK")
    configured["default"]["SOURCES"] = {"primary": fake_source({"P001": "Tea"}, failure=503)}
    settings.CATALOG_FALLBACK = configured
    return configured


def test_the_sites_own_data(outage: Any) -> None:
    """What the page asserts; an item that the site does not know stays without one."""
    exec(block("when-nobody-answers", 'find_item("P001")'), {})  # noqa: S102  # our own page
    assert services.find_item("P002").item is None
    with pytest.raises(ItemUnavailable):
        services.find_item("P001").raise_for_state()


def test_tried_again_later(outage: Any, settings: Any) -> None:
    """The command finds it, and whoever listens hears of it."""
    receivers = module("when-nobody-answers", "receivers")
    services.find_item("P001")
    assert UnansweredItem.objects.get().item_id == "P001"
    UnansweredItem.objects.update(next_try_at="2026-01-01T00:00:00Z")
    outage["default"]["SOURCES"] = {"primary": fake_source({"P001": "Tea"})}
    settings.CATALOG_FALLBACK = {**outage}
    call_command("retry_unavailable_items")
    assert (receivers.arrived, UnansweredItem.objects.count()) == (["P001"], 0)


def test_tried_again_by_a_worker(outage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job is enqueued for the catalog; what a worker does is what the command does."""
    from catalog_fallback.contrib import tasks  # noqa: PLC0415  # it looks for task queues

    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(tasks, "_sender", lambda name: lambda *args: sent.append((name, *args)))
    exec(block("when-nobody-answers", "enqueue_retry"), {})  # noqa: S102  # our own page
    assert sent == [("retry_unavailable_items", "default", None)]
    assert tasks._JOBS["retry_unavailable_items"]("default", 5) == {
        name: getattr(Retried(), name) for name in Retried.__slots__
    }


def test_the_pages_speak_of_what_is_there() -> None:
    """Numbers of the table are those of the code."""
    from catalog_fallback import retrying, unanswered  # noqa: PLC0415  # only here

    text = (HOW_TO / "when-nobody-answers.md").read_text("utf-8")
    assert f"after {retrying.MAX_ATTEMPTS} tries or a week" in text
    assert (retrying.MAX_AGE.days, retrying.KEEP_GIVEN_UP.days) == (7, 30)
    assert f"about {unanswered.MAX_ROWS:,} rows a catalog" in text
    assert (unanswered.FIRST_PAUSE, unanswered.LONGEST_PAUSE, unanswered.MAX_VARY_LENGTH) == (60, 6 * 3600, 255)
