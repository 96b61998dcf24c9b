"""Which sources has an operator taken out? Rows in the database, with a copy in the cache for a minute.

The copy is read together with the guards' own state; only where it is missing the database is asked. A process that
can reach neither goes by what it knew last.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from django.db import Error as DatabaseError

from catalog_fallback.log_events import fields
from catalog_fallback.models import CatalogSource
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.store import Store
from catalog_fallback.resilience.views import View
from catalog_fallback.stop_list import database

logger = logging.getLogger("catalog_fallback")

#: Seconds for which the copy lives.
COPY_LIFE = 60.0
#: How often a change is copied, while others change the same; what is left then is right when the copy's time is over.
_ROUNDS = 5


class Isolation:
    """What is isolated of one catalog, for one process."""

    def __init__(self, catalog: str, names: Mapping[str, Names]) -> None:
        self._catalog = catalog
        self._key_of = {alias: each.isolated for alias, each in names.items()}
        #: The keys to be read together with the guards'.
        self.keys = tuple(self._key_of.values())
        #: What this process knew last, for the time when neither cache nor database answers.
        self._last: frozenset[str] = frozenset()

    def of(self, view: View) -> frozenset[str]:
        """Return the aliases of the isolated sources; asks the database when a copy is missing."""
        if self.is_known(view):
            copies = [view.found.get(key) for key in self.keys]
            if any(copies) or self._last:
                self._last = frozenset(alias for alias, copy in zip(self._key_of, copies, strict=True) if copy)
            return self._last
        try:
            self._last = self.ask()
        except DatabaseError as error:
            name = type(error).__name__
            about = fields("isolation_unreadable", catalog=self._catalog, reason=name)
            logger.warning("Catalog %r: isolation could not be read (%s).", self._catalog, name, extra=about)
            return self._last
        for alias, key in self._key_of.items():
            view.store.add(key, int(alias in self._last), COPY_LIFE)  # an operator's own, newer copy stays
        return self._last

    def is_known(self, view: View) -> bool:
        """Whether every copy was read, so that :meth:`of` asks nobody."""
        copies = (view.found.get(key) for key in self.keys)
        return all(type(copy) is int and 0 <= copy <= 1 for copy in copies)

    def copied(self, view: View) -> frozenset[str]:
        """Return what the copies say that were read, as far as there are any; asks nobody, writes nothing."""
        copies = {alias: view.found.get(key) for alias, key in self._key_of.items()}
        if not any(type(copy) is int for copy in copies.values()):
            return self._last
        return frozenset(alias for alias, copy in copies.items() if type(copy) is int and copy)

    def is_copied(self, view: View, isolated: Collection[str]) -> bool:
        """Whether the copies that were read say that these sources are isolated, and no others."""
        return all(view.found.get(key) == int(alias in isolated) for alias, key in self._key_of.items())

    def ask(self) -> frozenset[str]:
        """Return what the database says; raises what it raises."""
        rows = CatalogSource.objects.using(database()).filter(catalog=self._catalog)
        return frozenset(rows.values_list("source", flat=True)) & self._key_of.keys()

    def publish(self, stores: Iterable[Store]) -> None:
        """Copy what the database says into these stores, after the commit of a change; raises what the database raises.

        It is asked again afterwards: of two changes at the same time the last one has to be what is copied.
        """
        isolated = self.ask()
        for _ in range(_ROUNDS):
            for store in stores:
                for alias, key in self._key_of.items():
                    store.set(key, int(alias in isolated), COPY_LIFE)
            before, isolated = isolated, self.ask()
            if before == isolated:
                break
        self._last = isolated
