"""Which guard stands around a call that is no lookup, and what does the end of the call say of the other side?

One guard for each alias, catalog and process; its state is shared by all processes, as that of a source's guard is.
"""

from __future__ import annotations

import copy
import enum
import logging
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import requests

from catalog_fallback import conf, signals
from catalog_fallback.cache import store_of
from catalog_fallback.conf.complaints import did_you_mean
from catalog_fallback.configuration import CatalogConfig, GuardConfig
from catalog_fallback.exceptions import CallRejected
from catalog_fallback.process_lock import ProcessLock
from catalog_fallback.resilience.breaker_record import BreakerState
from catalog_fallback.resilience.guard import Guard, Stores
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.time_budget import shared_deadline

logger = logging.getLogger("catalog_fallback")


class NotSet(enum.Enum):
    """The type of :data:`NOT_SET`."""

    NOT_SET = "not set"

    def __repr__(self) -> str:
        return self.name


#: "No fallback": None is one.
NOT_SET: Final = NotSet.NOT_SET

#: What counts as a failure where nothing else is said. Not OSError: ``requests.HTTPError`` is one, and an HTTP error
#: proves that somebody is there.
COUNTED: tuple[type[Exception], ...] = (ConnectionError, TimeoutError, requests.ConnectionError, requests.Timeout)


class Guards:
    """The guards of one catalog, made when they are first asked for."""

    def __init__(self, config: CatalogConfig) -> None:
        self._catalog = config
        self.stores = Stores(store_of[config.state_cache])
        self._lock = ProcessLock()
        self._made: dict[str, tuple[GuardConfig, Guard]] = {}

    def configured(self) -> list[tuple[GuardConfig, Guard]]:
        """Return the guards of GUARDS, in the order of the settings; others are known once they are used."""
        return [self.get(alias) for alias in self._catalog.guards]

    def get(self, alias: str) -> tuple[GuardConfig, Guard]:
        """Return the guard of an alias and its settings; one that is not in GUARDS has the defaults."""
        found = self._made.get(alias)
        if found is not None:
            return found
        with self._lock.own:
            if alias not in self._made:
                self._made[alias] = self._make(alias)
            return self._made[alias]

    def _make(self, alias: str) -> tuple[GuardConfig, Guard]:
        known = self._catalog.guards
        hint = did_you_mean(alias, known)
        if alias not in known and hint.startswith("Did you mean"):
            logger.warning("Guard %r is not in GUARDS of %r: it has the defaults. %s", alias, self._catalog.alias, hint)
        config = known.get(alias) or GuardConfig(alias)
        names = Names(self._catalog.alias, alias, self._catalog.key_prefix, self._catalog.version, kind="guard")
        return config, Guard.of(config, names, self.stores, on_change=partial(self._changed, alias))

    def _changed(self, alias: str, old: BreakerState, new: BreakerState, reason: str) -> None:
        """The breaker of a guard changed its state, and this process made the change."""
        if signals.breaker_changed.receivers:
            signals.breaker_changed.send_robust(
                Guards, catalog=self._catalog.alias, source=alias, old=str(old), new=str(new), reason=reason
            )


#: The guards of each catalog.
guards_of: conf.PerCatalog[Guards] = conf.PerCatalog(Guards)


@dataclass(frozen=True, slots=True)
class Rules:
    """What one call goes by: its guard, the exceptions that count as failures, and what stands in for a result."""

    guard: Guard
    counted: tuple[type[Exception], ...]
    fallback: Any

    @classmethod
    def of(cls, alias: str, catalog: str, fallback: Any, counted: tuple[type[Exception], ...] | None) -> Rules:
        """Return what holds now: the arguments, where they are given, else the settings, else the defaults."""
        config, guard = guards_of[conf.catalog(catalog).alias].get(alias)
        if fallback is NOT_SET and config.has_fallback:
            fallback = config.fallback
        if counted is None:
            counted = COUNTED if config.counted is None else config.counted
        return cls(guard, counted, fallback)

    @property
    def has_fallback(self) -> bool:
        """Whether something stands in for a result."""
        return self.fallback is not NOT_SET

    def take(self) -> Permit | Refusal:
        """Return a permit for a call that starts at once, or why it must not be made."""
        return self.guard.take(deadline=shared_deadline())

    def settle(self, permit: Permit, error: BaseException | None) -> None:
        """Report how the call ended.

        Only what is counted speaks against the other side; what else ended the call (a bug, a cancelled task, a guard
        further in that refused) proves nothing.
        """
        if error is None:
            permit.succeed()
        elif isinstance(error, self.counted) and not isinstance(error, CallRejected):
            permit.fail()
        else:
            permit.cancel()

    def rejection(self, refusal: Refusal) -> CallRejected:
        """Return a new exception for a call that was not made."""
        return refusal.error(f"Guard {self.guard.names}", self.guard.names.catalog)

    def substitute(self, args: Any, kwargs: Any) -> Any:
        """Return what stands in for a result: a copy where it is a container, which its receiver may change."""
        if callable(self.fallback):
            return self.fallback(*args, **kwargs)
        return copy.deepcopy(self.fallback) if isinstance(self.fallback, (dict, list, set)) else self.fallback
