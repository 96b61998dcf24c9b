"""What does a site look like whose stop list is at stake? One fake source, a cache to look into, other connections.

::

    shop = Shop(settings)                       # "P001" is there, everything else is not
    shop.find(), shop.gate(), shop.entry()      # a lookup; the gate's token; the kept entry
    elsewhere(lambda: services.stop_item("P001"))       # the same in a thread with a connection of its own
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.core.cache import caches
from django.db import connections, transaction

from catalog_fallback import services
from catalog_fallback.cache import entries_of
from catalog_fallback.entry_form import Entry
from catalog_fallback.queries import Query
from catalog_fallback.results import Lookup
from catalog_fallback.testing import fake_source
from tests import stores

T = TypeVar("T")

#: How long anybody waits for anybody, in seconds.
PATIENCE = 30


class Shop:
    """A catalog of one fake source, over a cache of its own."""

    def __init__(self, settings: Any, cache: dict[str, Any] | None = None, **keys: Any) -> None:
        self.location = uuid.uuid4().hex
        self.asked: list[str] = []
        memory = {"BACKEND": "tests.stores.MemoryCache", "LOCATION": self.location}
        settings.CACHES = {"default": cache or memory}
        items = {f"P{number:03}": f"Tea {number}" for number in range(1, 10)}
        catalog = {"STOP_CHECK": "cache", "SOURCES": {"only": fake_source(items, asked=self.asked)}, **keys}
        settings.CATALOG_FALLBACK = {"default": catalog, "other": catalog}

    @property
    def shelf(self) -> stores.Shelf:
        """What the cache holds, where it is the test double."""
        return stores.shelf(self.location)

    def find(self, item_id: str = "P001", **arguments: Any) -> Lookup:
        """One lookup."""
        return services.find_item(item_id, **arguments)

    def query(self, item_id: str = "P001", catalog: str = "default") -> Query:
        """The keys of an item."""
        return entries_of[catalog].query(item_id)

    def gate(self, item_id: str = "P001", catalog: str = "default") -> Any:
        """What is under the key of the gate."""
        return caches["default"].get(self.query(item_id, catalog).gate_key)

    def entry(self, item_id: str = "P001") -> Entry | None:
        """The entry that counts, whether it is checked or not."""
        return entries_of["default"].look(self.query(item_id)).entry


@contextmanager
def rolled_back(using: str = "default") -> Iterator[None]:
    """A transaction, or a savepoint in one, that is rolled back at its end."""
    with transaction.atomic(using=using):
        yield
        transaction.set_rollback(True, using=using)


def elsewhere(function: Callable[[], T]) -> T:
    """Run it in another thread, with its own connections; what it raises is raised here."""
    return later(function)()


def later(function: Callable[[], T]) -> Callable[[], T]:
    """Start it in another thread; calling what is returned waits for what came of it."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((function(), None))
        except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
            outcome.append((None, error))
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result() -> T:
        thread.join(PATIENCE)
        assert outcome, "it never ended"
        value, error = outcome[0]
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    return result
