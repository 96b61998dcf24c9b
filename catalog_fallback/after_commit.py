"""What has a transaction to publish once it is committed? Collected in Django's own list of what to do then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

#: What publishes IDs of one catalog for a reason.
Publish = Callable[[str, Sequence[str], str], None]


class _AfterCommit:
    """What a transaction has to publish once it is committed; that it is there says that something was changed."""

    def __init__(self, reason: str, publish: Publish) -> None:
        self.reason = reason
        self.changes: dict[str, set[str]] = defaultdict(set)
        self._publish = publish
        self.__qualname__ = type(self).__qualname__

    def __call__(self) -> None:
        for catalog, item_ids in self.changes.items():
            self._publish(catalog, sorted(item_ids), self.reason)


def publish(
    connection: BaseDatabaseWrapper, changes: Mapping[str, Iterable[str]], reason: str, publish: Publish
) -> None:
    """Add to what the transaction publishes already, unless a savepoint has begun since: it may be rolled back."""
    after = pending(connection)
    if after is None or after.reason != reason or not _is_last_of_savepoint(connection, after):
        after = _AfterCommit(reason, publish)
        transaction.on_commit(after, using=connection.alias, robust=True)
    for catalog, item_ids in changes.items():
        after.changes[catalog].update(item_ids)


def pending(connection: BaseDatabaseWrapper) -> _AfterCommit | None:
    """Return the transaction's last publish to come; a rollback (of a savepoint too) has taken it out of this list."""
    hooks = [hook[1] for hook in connection.run_on_commit]
    return next((hook for hook in reversed(hooks) if isinstance(hook, _AfterCommit)), None)


def _is_last_of_savepoint(connection: BaseDatabaseWrapper, after: _AfterCommit) -> bool:
    savepoints, hook = connection.run_on_commit[-1][:2]
    return hook is after and savepoints == set(connection.savepoint_ids)
