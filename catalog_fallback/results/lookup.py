"""What does a whole lookup answer? A frozen value that is cheap to make."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NoReturn

from catalog_fallback.exceptions import ItemNotFound, ItemStopped, ItemUnavailable
from catalog_fallback.results.replies import Attempt, Item


class State(StrEnum):
    """What a whole lookup means."""

    FOUND = "found"
    NOT_FOUND = "not_found"
    UNAVAILABLE = "unavailable"
    STOPPED = "stopped"


class CacheStatus(StrEnum):
    """Where the answer came from."""

    HIT = "hit"
    MISS = "miss"
    STALE = "stale"


class _Fields:
    """The slots of a Lookup while it is being built; assigning to a frozen class costs twice the time."""

    __slots__ = (
        "_expires_at",
        "_fetched_at",
        "cache",
        "catalog",
        "degraded",
        "item",
        "item_id",
        "reason",
        "retry_after",
        "source",
        "state",
        "trace",
    )

    item_id: str
    catalog: str
    state: State
    reason: str
    item: Item | None
    source: str | None
    cache: CacheStatus
    trace: tuple[Attempt, ...]
    degraded: bool
    retry_after: float | None
    _fetched_at: float | None
    _expires_at: float | None


class Lookup(_Fields):
    """The answer to one lookup: immutable, comparable by value, cheap to make.

    ``item_id``, ``catalog``
        What was asked, the ID in its normal form.
    ``state``, ``reason``
        A :class:`State` and why (``ok``, ``all_not_found``, ``incomplete_search``, ``deadline``, …).
    ``item``
        The item's mapping, None unless found or degraded.
    ``source``, ``fetched_at``, ``expires_at``
        Provenance: which source answered, and when (aware datetimes, UTC). A hit keeps the original ones.
    ``cache``
        ``hit``, ``miss`` or ``stale``.
    ``trace``
        One :class:`Attempt` per source that was considered; empty for a hit.
    ``degraded``
        The item is the site's own fallback data; the state stays ``unavailable``.
    ``retry_after``
        Seconds after which a new lookup could end differently, where that is known.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Lookup:
        """Make a lookup; the arguments are those of :func:`make_lookup`."""
        return make_lookup(*args, **kwargs)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Lookup is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Lookup is immutable: cannot delete {name!r}")

    def _values(self) -> Iterator[Any]:
        return (getattr(self, name) for name in _ARGUMENTS)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lookup):
            return NotImplemented
        return all(a == b for a, b in zip(self._values(), other._values(), strict=True))

    def __hash__(self) -> int:
        return hash((self.item_id, self.catalog, self.state, self.reason, self.source, self._fetched_at))

    def __reduce__(self) -> tuple[type[Lookup], tuple[Any, ...]]:
        return type(self), tuple(self._values())

    def __repr__(self) -> str:
        return (
            f"<Lookup {self.catalog}:{self.item_id} {self.state}/{self.reason} cache={self.cache} source={self.source}>"
        )

    @property
    def fetched_at(self) -> datetime | None:
        """When the answer was fetched from its source."""
        return _moment(self._fetched_at)

    @property
    def expires_at(self) -> datetime | None:
        """Until when the answer counts as fresh."""
        return _moment(self._expires_at)

    @property
    def is_found(self) -> bool:
        """There is an item, fresh or (where the site allows it) stale."""
        return self.state is State.FOUND

    @property
    def is_not_found(self) -> bool:
        """Every source said that there is no such item."""
        return self.state is State.NOT_FOUND

    @property
    def is_unavailable(self) -> bool:
        """It could not be found out."""
        return self.state is State.UNAVAILABLE

    @property
    def is_stopped(self) -> bool:
        """The ID is on the stop list."""
        return self.state is State.STOPPED

    @property
    def is_stale(self) -> bool:
        """The item is an expired one that the site allows to be shown while nobody can answer."""
        return self.cache is CacheStatus.STALE

    def raise_for_state(self) -> Item:
        """Return the item of a ``found``.

        Raises ItemNotFound, ItemStopped, or ItemUnavailable (for degraded data too).
        """
        if self.state is State.FOUND and self.item is not None:
            return self.item
        where = f"{self.item_id!r} in catalog {self.catalog!r}"
        what: dict[str, Any] = {"catalog": self.catalog, "item_id": self.item_id}
        if self.state is State.NOT_FOUND:
            raise ItemNotFound(f"No source has item {where}.", reason=self.reason, **what)
        if self.state is State.STOPPED:
            raise ItemStopped(f"Item {where} is stopped.", **what)
        message = f"Could not find out about item {where}: {self.reason}."
        raise ItemUnavailable(message, retry_after=self.retry_after, reason=self.reason, **what)

    def as_dict(self) -> dict[str, Any]:
        """The lookup as JSON-ready values; moments in ISO 8601."""
        return {
            "item_id": self.item_id,
            "catalog": self.catalog,
            "state": str(self.state),
            "reason": self.reason,
            "item": None if self.item is None else dict(self.item),
            "source": self.source,
            "cache": str(self.cache),
            "fetched_at": _iso(self.fetched_at),
            "expires_at": _iso(self.expires_at),
            "trace": [attempt.as_dict() for attempt in self.trace],
            "degraded": self.degraded,
            "retry_after": self.retry_after,
        }


def make_lookup(
    item_id: str,
    catalog: str,
    state: State,
    reason: str,
    item: Item | None = None,
    source: str | None = None,
    cache: CacheStatus = CacheStatus.MISS,
    fetched_at: float | None = None,
    expires_at: float | None = None,
    trace: tuple[Attempt, ...] = (),
    degraded: bool = False,
    retry_after: float | None = None,
) -> Lookup:
    """Make a :class:`Lookup`, faster than calling the class; moments are seconds since the epoch."""
    self = _Fields()
    self.item_id = item_id
    self.catalog = catalog
    self.state = state
    self.reason = reason
    self.item = item
    self.source = source
    self.cache = cache
    self._fetched_at = fetched_at
    self._expires_at = expires_at
    self.trace = trace
    self.degraded = degraded
    self.retry_after = retry_after
    self.__class__ = Lookup  # frozen from here on
    return self  # type: ignore[return-value]


#: The attributes behind make_lookup's arguments, in their order.
_ARGUMENTS = (
    "item_id",
    "catalog",
    "state",
    "reason",
    "item",
    "source",
    "cache",
    "_fetched_at",
    "_expires_at",
    "trace",
    "degraded",
    "retry_after",
)


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
