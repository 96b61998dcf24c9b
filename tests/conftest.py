"""Which fixtures does every test have?"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from django.db import connection
from django.utils import translation

from catalog_fallback.testing import FrozenClock
from tests import loopback as wire
from tests import servers
from tests.cluster import Cluster, running_cluster
from tests.crew import Crew, settle
from tests.mariadb import mariadb_database
from tests.memcached import Memcached, running_memcached
from tests.sites import MovableClock, Site

if TYPE_CHECKING:
    from pytest_django.plugin import DjangoDbBlocker


# Examples are counted, not timed: how long one takes depends on what else the machine does.
hypothesis.settings.register_profile(
    "suite", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture(autouse=True)
def sites_own_language() -> Iterator[None]:
    """Whatever language a request of the last test has chosen, the next one begins in the site's."""
    yield
    translation.deactivate()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a real Redis or Valkey whose content belongs to the tests."""
    with servers.redis_server() as url:
        yield url
        assert servers.keys_for_ever(url) == [], "a key without an expiry was left behind"


@pytest.fixture
def forgotten_sockets() -> Iterator[None]:
    """Sockets that a client library forgets are gone before the next test begins, which would be blamed for them."""
    yield
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)
        gc.collect()


@pytest.fixture
def valkey() -> Iterator[servers.Valkey]:
    """A Valkey server of the test's own, which it may kill, freeze and start again."""
    with servers.running_valkey() as server:
        yield server


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[Cluster]:
    """A real Redis Cluster of three nodes whose content belongs to the tests; none of them kills a node of it."""
    with running_cluster() as cluster:
        yield cluster
        assert cluster.keys_for_ever() == [], "a key without an expiry was left behind"


@pytest.fixture(scope="session")
def postgres(django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The alias of a migrated PostgreSQL database: mark the test ``django_db(databases=["default", "postgres"])``."""
    from django.core.management import call_command  # noqa: PLC0415  # settings are ready only now
    from django.db import connections  # noqa: PLC0415

    alias = "postgres"
    with servers.postgres_database() as database, django_db_blocker.unblock():
        connections.databases[alias] = connections.configure_settings({"default": {}, alias: database})[alias]
        try:
            call_command("migrate", database=alias, verbosity=0)
            yield alias
        finally:
            connections[alias].close()
            del connections[alias], connections.databases[alias]


@pytest.fixture(scope="session")
def mariadb(django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The alias of a migrated MariaDB database: mark the test as for ``postgres``."""
    from django.core.management import call_command  # noqa: PLC0415  # settings are ready only now
    from django.db import connections  # noqa: PLC0415

    alias = "mariadb"
    with mariadb_database() as database, django_db_blocker.unblock():
        connections.databases[alias] = connections.configure_settings({"default": {}, alias: database})[alias]
        try:
            call_command("migrate", database=alias, verbosity=0)
            yield alias
        finally:
            connections[alias].close()
            del connections[alias], connections.databases[alias]


@pytest.fixture(scope="session")
def memcached() -> Iterator[Memcached]:
    """A real Memcached whose content belongs to the tests; none of them kills it."""
    with running_memcached() as server:
        yield server


@pytest.fixture
def loopback() -> Iterator[wire.Loopback]:
    """A scripted catalog on 127.0.0.1 over plain http; make a ``Loopback(...)`` yourself for https or IPv6."""
    with wire.Loopback() as server:
        yield server


@pytest.fixture
def trusted_ca(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make clients trust the certificates of loopback servers; the path of the authority's file."""
    monkeypatch.setattr("requests.certs.where", wire.ca_file)
    return wire.ca_file()


@pytest.fixture
def site(settings: Any, transactional_db: None) -> Iterator[Site]:
    """A site with two loopback catalogs, an empty cache and an empty stop list, outside any transaction."""
    with wire.Loopback() as primary, wire.Loopback() as secondary:
        yield Site(settings, primary, secondary)


@pytest.fixture(scope="session")
def processes(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Crew]:
    """Four processes that look items up, started once; ``settle`` gives them a test's settings."""
    with django_db_blocker.unblock():
        crew = Crew(4, str(connection.settings_dict["NAME"]))
    yield crew
    crew.close()


@pytest.fixture
def crew(processes: Crew, site: Site, redis_url: str, settings: Any) -> Crew:
    """These processes, and a site on a real cache that they share."""
    settle(site, processes, settings, redis_url)
    return processes


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> MovableClock:
    """A clock that the test may put forward."""
    return MovableClock(monkeypatch)


@pytest.fixture
def frozen_clock() -> Iterator[FrozenClock]:
    """A clock that stands still until the test moves it."""
    with FrozenClock() as clock:
        yield clock


def pytest_make_parametrize_id(val: object) -> str | None:
    """Give sets the same name in every process, so that the tests can be spread over several."""
    return "-".join(sorted(map(str, val))) or "nothing" if isinstance(val, frozenset) else None


def pytest_collection_finish() -> None:
    """Keep twelve thousand tests out of the sight of the garbage collector, which would walk through them for ever."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which services were missing, and how many tests that cost."""
    missing: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _, found, service = reason.partition(servers.MISSING)
        if found:
            missing[service] = missing.get(service, 0) + 1
    if missing:
        terminalreporter.section("NOT RUN for want of a service", sep="!", yellow=True)
        for service, count in sorted(missing.items()):
            terminalreporter.write_line(f"{count} test(s): {service}", yellow=True)
