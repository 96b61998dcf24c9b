"""Is a cache in trouble, and may it be asked all the same? What one process remembers of its errors.

After one time-out, or three other errors in a row, the process leaves the cache alone for a few seconds; then one
caller tries, and the others go on waiting for what it sees.
"""

from __future__ import annotations

import logging

from catalog_fallback import clock
from catalog_fallback.cache_errors import is_about_a_value, is_timeout
from catalog_fallback.log_events import fields
from catalog_fallback.process_lock import ProcessLock

logger = logging.getLogger("catalog_fallback")

#: Seconds for which a process leaves a cache in trouble alone.
PAUSE = 5.0
#: Errors in a row, other than a time-out, after which it does.
ERRORS_BEFORE_PAUSE = 3
#: An operation that took so many seconds counts as a time-out, even if it came back: a backend may hide one (PyMemcache
#: with ignore_exc), or try again by itself. Not shorter: threads of a busy process wait for each other, too.
SLOW = 4.0


class Trouble:
    """What a process knows of the troubles of one alias of CACHES. ``started`` is when the operation began."""

    __slots__ = ("_alias", "_lock", "_paused_at", "errors", "paused_until")

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._lock = ProcessLock()
        #: Errors in a row so far.
        self.errors = 0
        #: Monotonic moment until which the cache is left alone; 0.0 while all is well.
        self.paused_until = 0.0
        #: When that was decided.
        self._paused_at = 0.0

    @property
    def is_there(self) -> bool:
        """The last operation failed, or the process leaves this cache alone."""
        return bool(self.errors or self.paused_until)

    @property
    def is_paused(self) -> bool:
        """The process leaves this cache alone just now. Asking takes nothing."""
        return self.paused_until > clock.monotonic()

    def may_try(self, now: float) -> bool:
        """Whether all is well, or the pause is over and this caller is the one who tries."""
        if not self.paused_until:
            return True
        with self._lock.own:
            if self.paused_until > now:
                return False
            if self.paused_until:
                self.paused_until = now + PAUSE
            return True

    def failed(self, error: Exception, started: float) -> None:
        """An operation raised. That a value cannot be understood is no trouble of the cache's."""
        if is_about_a_value(error):
            return
        with self._lock.own:
            self.errors += 1
            is_slow = is_timeout(error) or clock.monotonic() - started > SLOW
            if not is_slow and self.errors < ERRORS_BEFORE_PAUSE:
                return
            is_new = not self.paused_until
            self._paused_at = clock.monotonic()
            self.paused_until = self._paused_at + PAUSE
        if is_new:
            name = type(error).__name__
            logger.warning("Cache %r is left alone for %s s after %s.", self._alias, PAUSE, name, extra=self._why(name))

    def answered(self, started: float) -> None:
        """An operation ended without an error: all is well again, unless it took as long as a time-out."""
        if self.errors or self.paused_until or clock.monotonic() - started > SLOW:
            self._came_back(started)

    def _came_back(self, started: float) -> None:
        with self._lock.own:
            if self.paused_until and started < self._paused_at:
                return  # it was under way before the trouble, and says nothing of what is now
            self.errors = 0
            is_slow = clock.monotonic() - started > SLOW
            was_paused = bool(self.paused_until)
            self._paused_at = clock.monotonic()
            self.paused_until = self._paused_at + PAUSE if is_slow else 0.0
        if is_slow and not was_paused:
            logger.warning(
                "Cache %r is left alone for %s s: it took more than %s s.",
                self._alias,
                PAUSE,
                SLOW,
                extra=self._why("slow"),
            )
        elif was_paused and not is_slow:
            about = fields("cache_resumed", cache=self._alias, old="paused", new="ready", reason="answered")
            logger.info("Cache %r answers again.", self._alias, extra=about)

    def _why(self, reason: str) -> dict[str, object]:
        return fields("cache_paused", cache=self._alias, old="ready", new="paused", reason=reason, seconds=PAUSE)
