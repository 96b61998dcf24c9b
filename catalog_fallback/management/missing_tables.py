"""Is the database in trouble because nobody has migrated it? Then a command says what to do about it."""

from __future__ import annotations

from django.apps import apps
from django.db import Error as DatabaseError
from django.db import connections

from catalog_fallback.stop_list import database


def hint() -> str:
    """Return what to do where tables of this app are missing; "" where they are there, or nobody can tell."""
    alias = database()
    try:
        found = set(connections[alias].introspection.table_names())
    except DatabaseError:
        return ""
    wanted = {model._meta.db_table for model in apps.get_app_config("catalog_fallback").get_models()}
    if wanted <= found:
        return ""
    option = "" if alias == "default" else f" --database {alias}"
    return f"Tables of catalog_fallback are missing: run manage.py migrate{option}."
