"""Who waits for whom in this process? Flights by name, with an event for threads and callbacks for event loops."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

from catalog_fallback import clock
from catalog_fallback.results import Lookup

logger = logging.getLogger("catalog_fallback")

Name = tuple[str, str]

#: Seconds after its owner's deadline from which nobody joins a flight any more: its owner was torn away from it.
OVERDUE = 10.0


class Flight:
    """One fetch that others in this process wait for. ``lookup`` is None where its result is not for sharing.

    ``ends_at``: the monotonic moment at which its owner's time is over. ``name``: what its leases are taken under, so
    that it knows one again whose taking it never heard of.
    """

    __slots__ = ("__weakref__", "_callbacks", "_has_landed", "_landed", "_lock", "ends_at", "lookup", "name")

    def __init__(self, ends_at: float) -> None:
        self._lock = threading.Lock()
        #: Made for the first one who waits: most flights are nobody else's.
        self._landed: threading.Event | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._has_landed = False
        self.ends_at = ends_at
        self.name = os.urandom(8).hex()
        self.lookup: Lookup | None = None

    @property
    def has_landed(self) -> bool:
        """It is over."""
        return self._has_landed

    @property
    def is_overdue(self) -> bool:
        """Whoever owns it should have landed it long ago."""
        return clock.monotonic() > self.ends_at + OVERDUE

    def wait(self, seconds: float) -> None:
        """Block until the flight has landed, for so long at most."""
        with self._lock:
            if self._has_landed:
                return
            landed = self._landed = self._landed or threading.Event()
        landed.wait(seconds)

    def when_landed(self, callback: Callable[[], None]) -> None:
        """Call back once, in whatever thread lands it; at once if it has landed."""
        with self._lock:
            if not self._has_landed:
                self._callbacks.append(callback)
                return
        callback()

    def land(self) -> None:
        """Let everybody who waits go on; one whose callback breaks keeps nobody else waiting."""
        with self._lock:
            self._has_landed = True
            landed = self._landed
            callbacks, self._callbacks = self._callbacks, []
        if landed is not None:
            landed.set()
        for callback in callbacks:
            try:
                callback()
            except Exception:
                logger.exception("Somebody who waited for a flight could not be told that it has landed.")


class FlightTable:
    """The flights of this process, by name. After a fork the child starts with an empty one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Name, Flight] = {}
        self._pid = os.getpid()

    def __len__(self) -> int:
        return len(self._flights)

    def find(self, name: Name) -> Flight | None:
        """Return the flight of that name, None where there is none to wait for."""
        flight = self._flights.get(name) if self._pid == os.getpid() else None
        return None if flight is None or flight.is_overdue else flight

    def join(self, name: Name, ends_at: float) -> tuple[Flight, bool]:
        """Return the flight of that name, and whether it is the caller's own and new; a new one ``ends_at`` then."""
        if self._pid != os.getpid():
            self._lock, self._flights, self._pid = threading.Lock(), {}, os.getpid()
        with self._lock:
            flight = self._flights.get(name)
            if flight is not None and not flight.is_overdue:
                return flight, False
            flight = self._flights[name] = Flight(ends_at)
            return flight, True

    def land(self, name: Name, flight: Flight) -> None:
        """End the flight: whoever comes now starts another, whoever waits goes on."""
        with self._lock:
            if self._flights.get(name) is flight:
                del self._flights[name]
        flight.land()


#: The flights of this process.
table = FlightTable()
