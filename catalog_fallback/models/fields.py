"""What do all rows of this app have in common? Columns that compare exactly, and slices that every database takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

#: Longest ID, in characters, that can be a column of an index on every database.
MAX_ID_LENGTH = 255


class ExactCharField(models.CharField):  # type: ignore[type-arg]  # Django's cannot be subscripted at run time
    """Text that every database compares character by character.

    Otherwise MySQL and MariaDB would take "a" for "A", and two IDs for one; PostgreSQL would sort by the rules of a
    language, and no search for a beginning could use the index.
    """

    _COLLATIONS: ClassVar[Mapping[str, str]] = {"postgresql": "C", "mysql": "utf8mb4_bin"}

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, str | None]:
        """Return the column's type with the collation of this kind of database."""
        parameters = super().db_parameters(connection)
        parameters["collation"] = self._COLLATIONS.get(connection.vendor)
        return parameters


def chunks(values: Sequence[Any], size: int = 500) -> Iterable[Sequence[Any]]:
    """Yield the values in slices that every database takes as parameters of one query."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
