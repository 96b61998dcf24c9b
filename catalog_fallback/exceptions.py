"""What can go wrong for a caller, as one tree.

::

    CatalogError
    ├── InvalidItemID(ValueError)        the ID does not match the catalog's ID_PATTERN
    ├── UnknownCatalog(LookupError)      no such alias in CATALOG_FALLBACK
    ├── ItemNotFound(LookupError)        every source said that it has no such item
    ├── ItemStopped                      the ID is on the stop list
    ├── ItemUnavailable                  could not find out (has retry_after)
    ├── InvalidationFailed               an invalidation that cannot be confirmed
    └── CallRejected                     a guard refused the call (has retry_after)
        ├── CircuitOpen                  the breaker is open, or the source is isolated
        ├── RateLimited
        ├── CoolingDown
        ├── BulkheadFull
        └── BudgetExhausted

Lookups return values. Only ``Lookup.raise_for_state()``, ``guarded()`` and misuse raise.
"""

from __future__ import annotations

from typing import Any


def gettext_noop(text: str) -> str:
    """Mark a message for translators: makemessages knows a call of this name, and the heart imports no Django."""
    return text


class CatalogError(Exception):
    """Base of everything this package raises on purpose.

    Where a person may be shown the message, ``values`` fill the placeholders of ``template``, which is marked with
    :func:`gettext_noop`: ``str()`` is English, for logs, and ``told_errors.told()`` speaks the reader's language.
    """

    def __init__(self, message: str = "", /, **values: Any) -> None:
        super().__init__(message.format(**values) if values else message)
        self.template = message
        self.values = values


class InvalidItemID(CatalogError, ValueError):
    """The item ID does not match the catalog's pattern; nobody was asked."""


class UnknownCatalog(CatalogError, LookupError):
    """The catalog alias is not in the ``CATALOG_FALLBACK`` setting."""


class ItemNotFound(CatalogError, LookupError):
    """Every source of the catalog said that it has no such item. ``reason`` is that of the lookup."""

    def __init__(self, message: str, *, reason: str = "", catalog: str = "", item_id: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.catalog = catalog
        self.item_id = item_id


class ItemStopped(CatalogError):
    """The item is on the stop list. ``reason`` is the stop's reason where it is known."""

    def __init__(self, message: str, *, reason: str = "", catalog: str = "", item_id: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.catalog = catalog
        self.item_id = item_id


class _HasRetryAfter(CatalogError):
    """Carries the seconds after which a new try could end differently, or None, and the catalog where it is known."""

    def __init__(self, message: str, *, retry_after: float | None = None, catalog: str = "") -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.catalog = catalog


class ItemUnavailable(_HasRetryAfter):
    """It could not be found out whether the item exists. ``reason`` is that of the lookup."""

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        catalog: str = "",
        item_id: str = "",
        reason: str = "",
    ) -> None:
        super().__init__(message, retry_after=retry_after, catalog=catalog)
        self.item_id = item_id
        self.reason = reason


class InvalidationFailed(CatalogError):
    """The cache did not confirm an invalidation, or the stop list could not be read."""


class CallRejected(_HasRetryAfter):
    """A guard refused a call before it was made."""


class CircuitOpen(CallRejected):
    """The circuit breaker is open, or an operator isolated the source."""


class RateLimited(CallRejected):
    """Our own rate limit for the source is used up."""


class CoolingDown(CallRejected):
    """The source asked to be left alone (``Retry-After``)."""


class BulkheadFull(CallRejected):
    """As many calls as MAX_CONCURRENT allows are running in this process."""


class BudgetExhausted(CallRejected):
    """The time budget is used up."""
