"""Is somebody who has forgotten to migrate told so, instead of a traceback or a riddle?"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.db import OperationalError, connection

from catalog_fallback.management import missing_tables
from tests.management.conftest import Runner

HINT = "Tables of catalog_fallback are missing: run manage.py migrate."


@pytest.fixture
def unmigrated(transactional_db: None) -> Iterator[None]:
    """A database without this app's tables."""
    models = list(apps.get_app_config("catalog_fallback").get_models())
    with connection.schema_editor() as editor:
        for model in models:
            editor.delete_model(model)
    yield
    with connection.schema_editor() as editor:
        for model in models:
            editor.create_model(model)


COMMANDS: dict[str, tuple[tuple[str, ...], int]] = {
    "status": (("catalog_status",), 0),
    "status-json": (("catalog_status", "--json"), 0),
    "isolate": (("catalog_status", "--catalog", "default", "--isolate", "only"), 1),
    "restore": (("catalog_status", "--catalog", "default", "--restore", "only"), 1),
    "lookup": (("lookup_item", "P001"), 5),
    "explain": (("lookup_item", "P001", "--explain"), 0),
    "forget": (("invalidate_item", "P001"), 1),
    "stop": (("invalidate_item", "P001", "--stop", "legal"), 1),
    "release": (("invalidate_item", "P001", "--release"), 1),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_commands_say_what_to_do(run: Runner, unmigrated: None, case: str) -> None:
    """Once, and their exit codes stay what they are."""
    arguments, code = COMMANDS[case]
    done = run(*arguments)
    assert (done.code, f"{done.err}{done.message}".count(HINT)) == (code, 1)


@pytest.mark.parametrize("case", COMMANDS)
def test_other_trouble_is_not_blamed_on_migrations(run: Runner, case: str) -> None:
    """The tables are there, the database is not."""
    arguments, code = COMMANDS[case]
    with connection.execute_wrapper(_down):
        done = run(*arguments)
    assert (done.code, HINT in f"{done.err}{done.message}{done.out}") == (code, False)


def test_where_all_is_well_nothing_is_said(run: Runner) -> None:
    """Neither about tables nor about the database."""
    assert missing_tables.hint() == ""
    done = run("catalog_status")
    assert (done.err, "The database does not answer" in done.out) == ("", False)


def test_another_database_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the stop list has a database of its own."""
    empty = SimpleNamespace(introspection=SimpleNamespace(table_names=list))
    monkeypatch.setattr(missing_tables, "database", lambda: "stops")
    monkeypatch.setattr(missing_tables, "connections", {"stops": empty})
    assert missing_tables.hint() == HINT.replace("migrate.", "migrate --database stops.")


def _down(*_: object) -> Any:
    raise OperationalError("down")
