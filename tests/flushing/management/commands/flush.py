"""Django's ``flush`` in a tenth of its time: content types and permissions stay, unless a test has changed them.

It runs after every test that is not in a transaction, and making them anew was a quarter of the whole suite's work.
"""

from __future__ import annotations

from typing import Any

from django.core.management.commands import flush
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

#: What stays.
KEPT = ("django_content_type", "auth_permission")
#: Never emptied by Django either.
HISTORY = "django_migrations"

#: Alias → the rows of the tables that stay, as Django has made them.
_made: dict[str, list[Any]] = {}


class Command(flush.Command):
    """Empty all tables but those that hold what migrating has made."""

    def handle(self, **options: Any) -> None:
        """Do it in Django's own way the first time, and whenever something that stays has been changed."""
        alias = options["database"]
        connection = connections[alias]
        if not options["interactive"] and alias in _made and _made[alias] == _kept(connection):
            _empty(connection)
            return
        super().handle(**options)
        _made[alias] = _kept(connection)


def _kept(connection: BaseDatabaseWrapper) -> list[Any]:
    """The rows that stay; none where a table is missing."""
    there = set(connection.introspection.table_names())
    rows: list[Any] = []
    with connection.cursor() as cursor:
        for table in (table for table in KEPT if table in there):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)} ORDER BY id")  # noqa: S608
            rows += cursor.fetchall()
    return rows


def _empty(connection: BaseDatabaseWrapper) -> None:
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with (
        transaction.atomic(using=connection.alias),
        connection.constraint_checks_disabled(),
        connection.cursor() as cursor,
    ):
        for table in sorted({*tables} - {*KEPT, HISTORY}):
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")  # noqa: S608
