"""Does the operations page open at once while everything else hangs, and what does it cost while all is well?"""

from __future__ import annotations

import signal
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog_fallback import conf
from tests import loopback as wire
from tests import servers
from tests.admin.operations import PAGE, STATUS, operator, text_of
from tests.crew import DJANGO_REDIS
from tests.sites import Site

DJANGO = "django.core.cache.backends.redis.RedisCache"
OPTIONS = {
    DJANGO_REDIS: {"SOCKET_CONNECT_TIMEOUT": 0.1, "SOCKET_TIMEOUT": 0.1},
    DJANGO: {"socket_connect_timeout": 0.1, "socket_timeout": 0.1},
}
#: Seconds: 0.1 for the one time-out, 0.05 for the page, and time for a machine that does much else.
SOON = 2.0


@pytest.fixture(params=OPTIONS, ids=["django-redis", "django"])
def on_valkey(request: pytest.FixtureRequest, site: Site, settings: Any, valkey: servers.Valkey) -> servers.Valkey:
    """Three catalogs over one Valkey with short time-outs; every source of theirs hangs."""
    backend = request.param
    site.cache_in(backend, LOCATION=valkey.url, OPTIONS=OPTIONS[backend], KEY_PREFIX=uuid.uuid4().hex)
    site.configure(GUARDS={"payments": {}, "mail": {"RATE_LIMIT": {"CALLS": 5, "PER": 60}}})
    one = settings.CATALOG_FALLBACK["default"]
    settings.CATALOG_FALLBACK = dict.fromkeys(("default", "second", "third"), one)
    site.say(wire.silence, wire.silence)
    return valkey


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The Redis commands that were begun."""
    begun: list[str] = []
    original = redis.Redis.execute_command

    def execute_command(self: Any, *args: Any, **options: Any) -> Any:
        begun.append(args[0])
        return original(self, *args, **options)

    monkeypatch.setattr(redis.Redis, "execute_command", execute_command)
    return begun


@pytest.mark.parametrize("url", [PAGE, STATUS], ids=["page", "json"])
def test_it_opens_while_everything_hangs(site: Site, on_valkey: servers.Valkey, commands: list[str], url: str) -> None:
    """One command that times out, for all catalogs together; then none while the cache is left alone."""
    browser = operator()
    assert browser.get(url).status_code == 200  # templates are compiled
    conf.forget()  # as if the process had just begun: nobody knows yet that the cache hangs
    commands.clear()
    on_valkey.process.send_signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        page = browser.get(url)
        first = time.monotonic() - started
        assert (page.status_code, commands) == (200, ["MGET"])
        assert first < SOON
        started = time.monotonic()
        assert browser.get(url).status_code == 200
        assert (time.monotonic() - started < SOON, len(commands)) == (True, 1)
    finally:
        on_valkey.process.send_signal(signal.SIGCONT)
    print(f"{url}: {first * 1000:.0f} ms")  # noqa: T201 - shown with -s
    assert "does not answer" in text_of(page) or '"cache_answers": false' in page.content.decode()
    assert site.calls == (0, 0)


def test_it_costs_one_command_while_all_is_well(site: Site, on_valkey: servers.Valkey, commands: list[str]) -> None:
    """However many catalogs share the cache; and the queries do not grow with them either."""
    browser = operator()
    browser.get(PAGE)
    commands.clear()
    with CaptureQueriesContext(connection) as captured:
        assert browser.get(PAGE).status_code == 200
    assert commands == ["MGET"]
    assert sum("catalog_fallback_" in query["sql"] for query in captured.captured_queries) == 1
    assert site.calls == (0, 0)
