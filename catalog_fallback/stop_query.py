"""Is this one item stopped? The query of every miss, which Django's ORM writes once for each kind of database.

Building the same query set anew costs several times as much as the query itself.
"""

from __future__ import annotations

from django.db import connections

from catalog_fallback.models import StoppedItem

#: Vendor → the statement, whose parameters are catalog and ID.
_statements: dict[str, str] = {}


def is_stopped(catalog: str, item_id: str, using: str) -> bool:
    """Return what the database says; raises what it raises (``django.db.Error``)."""
    connection = connections[using]
    statement = _statements.get(connection.vendor) or _write_statement(connection.vendor, using)
    with connection.cursor() as cursor:
        cursor.execute(statement, (catalog, item_id))
        row = cursor.fetchone()
    return row is not None and bool(row[0])


def _write_statement(vendor: str, using: str) -> str:
    rows = StoppedItem.objects.using(using).filter(catalog="catalog").filter(item_id="id").order_by()
    statement, parameters = rows.values_list("is_active").query.get_compiler(using).as_sql()
    assert tuple(parameters) == ("catalog", "id"), parameters
    _statements[vendor] = str(statement)
    return _statements[vendor]
