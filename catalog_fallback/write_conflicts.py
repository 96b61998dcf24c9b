"""What if others change the same rows at the same moment? A change that lost against theirs is made again, whole."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, IntegrityError, connections, transaction

from catalog_fallback import clock

T = TypeVar("T")

#: How often a change is made at most, and for how many seconds it is waited before each further time, times its number.
TRIES = 5
_PAUSE = (0.005, 0.02)
#: SQLSTATE (ISO 9075; PostgreSQL, appendix A): serialization_failure, deadlock_detected.
_STATES = frozenset({"40001", "40P01"})
#: MySQL and MariaDB: ER_LOCK_DEADLOCK, and ER_CHECKREAD, MariaDB's for a row that has changed since the snapshot.
_NUMBERS = frozenset({1213, 1020})


def whole(using: str, work: Callable[[], T]) -> T:
    """Do the work in a transaction, and again from its beginning where it lost against somebody else's.

    Inside a transaction that has begun before, only a row that somebody else has just created is worth another try:
    for all else that transaction would have to begin anew. Raises what the database raises, the last time.
    """
    is_inside = connections[using].in_atomic_block
    for tries in range(1, TRIES + 1):
        try:
            with transaction.atomic(using=using):
                return work()
        except DatabaseError as error:
            if tries == TRIES or not (isinstance(error, IntegrityError) or (_is_conflict(error) and not is_inside)):
                raise
        clock.sleep(tries * random.uniform(*_PAUSE))  # noqa: S311 - jitter is no secret
    raise AssertionError("the loop returns or raises")


def _is_conflict(error: DatabaseError) -> bool:
    """Whether the database has chosen this transaction to give way: its driver says so in numbers."""
    cause = error.__cause__ or error
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    return state in _STATES or (bool(cause.args) and cause.args[0] in _NUMBERS)
