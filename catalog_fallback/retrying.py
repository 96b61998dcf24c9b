"""What becomes of the lookups that nobody could answer? Those that are due are made again, a few at a time.

Taking a row already sets its next try, as if this one had failed: of two runs at once only one gets it, and a run that
is killed loses nothing. It ends as soon as no source may be called.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any

from django.db import connections, transaction
from django.db.models import QuerySet

from catalog_fallback import services
from catalog_fallback.cache import entries_of
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.fallback import chain_of
from catalog_fallback.models import UnansweredItem
from catalog_fallback.results import CacheStatus, Lookup
from catalog_fallback.unanswered import database, now, pause

#: A lookup is given up after so many tries, or at this age.
MAX_ATTEMPTS, MAX_AGE = 20, timedelta(days=7)
#: Rows of what was given up are kept for so long, for people to see.
KEEP_GIVEN_UP = timedelta(days=30)


@dataclass(slots=True)
class Retried:
    """What became of how many rows. ``not_tried``: nobody could be called for them; ``left``: are due still."""

    found: int = 0
    not_found: int = 0
    stopped: int = 0
    unavailable: int = 0
    given_up: int = 0
    not_tried: int = 0
    left: int = 0
    nobody_answers: bool = False

    @property
    def answered(self) -> int:
        """Lookups that have an answer now."""
        return self.found + self.not_found + self.stopped

    @property
    def unanswered(self) -> int:
        """Lookups that were due and still have none; those that a limit left out do not count."""
        return self.unavailable + self.not_tried + (self.left if self.nobody_answers else 0)


def retry(config: CatalogConfig, limit: int | None = None) -> Retried:
    """Make the lookups of one catalog that are due again, ``limit`` of them at most.

    Raises ``django.db.Error`` when the database does not answer.
    """
    run = _Run(config)
    run.clear_away()
    to_go = math.inf if limit is None else limit
    while to_go > 0 and run.due().exists():
        if _is_nobody_there(config):
            run.result.nobody_answers = True
            break
        rows = run.take(int(min(config.max_parallel, to_go)))
        if rows is None:
            break
        to_go -= len(rows)
        run.look_up(rows)
    run.result.left = run.due().count()
    return run.result


def _is_nobody_there(config: CatalogConfig) -> bool:
    """Whether a search would call nobody now; takes no permit."""
    chain = chain_of[config.alias]
    return chain.refused(chain.look()) is not None


class _Run:
    """One pass over the rows that were due when it began."""

    def __init__(self, config: CatalogConfig) -> None:
        self.result = Retried()
        self._config = config
        self._began_at = now()
        limits = sum(source.attempts * source.timeout for source in config.sources)
        #: Nobody waits for an answer here: enough for every source to use all the time that it may.
        self._budget = max(config.budget, limits)

    def due(self) -> QuerySet[UnansweredItem]:
        """Return the rows to be tried, the longest due first."""
        rows = self._rows().filter(given_up_at=None, next_try_at__lte=self._began_at)
        return rows.order_by("next_try_at", "pk")

    def clear_away(self) -> None:
        """Give up what is too old; delete what was given up long ago."""
        self._rows().filter(given_up_at__lt=self._began_at - KEEP_GIVEN_UP).delete()
        too_old = self._rows().filter(given_up_at=None, created_at__lt=self._began_at - MAX_AGE)
        self.result.given_up += too_old.update(given_up_at=self._began_at)

    def take(self, count: int) -> list[UnansweredItem] | None:
        """Take rows that are due; only those that no other run takes meanwhile. None when others have all of them."""
        using = database()
        features = connections[using].features
        with transaction.atomic(using=using) if features.has_select_for_update else nullcontext():
            rows = list(self.due().select_for_update(skip_locked=features.has_select_for_update_skip_locked)[:count])
            return [row for row in rows if self._claim(row)] if rows else None

    def _claim(self, row: UnansweredItem) -> bool:
        """Set the next try, if it is still the one that was read: there are databases without row locks."""
        before = row.next_try_at
        row.attempts += 1
        row.next_try_at = now() + pause(row.attempts)
        mine = self._rows().filter(pk=row.pk, next_try_at=before, given_up_at=None)
        return mine.update(attempts=row.attempts, next_try_at=row.next_try_at) == 1

    def look_up(self, rows: Sequence[UnansweredItem]) -> None:
        """Ask for all of them, those of one language and variant side by side, and settle each row."""
        for how, some in groupby(sorted(rows, key=_variant), key=_variant):
            askable = [row for row in some if self._is_askable(row)]
            if not askable:
                continue
            language, vary = how
            lookups = services.find_items(
                [row.item_id for row in askable],
                catalog=self._config.alias,
                language=language,
                vary=_mapping(vary),
                budget=self._budget,
            )
            for row in askable:
                self._settle(row, lookups[row.item_id])

    def _is_askable(self, row: UnansweredItem) -> bool:
        """Whether the settings still take the row's question; it is given up if not."""
        try:
            entries_of[self._config.alias].query(row.item_id, row.language, _mapping(row.vary))
        except ValueError:
            self._give_up(row, "invalid_query")
            return False
        return True

    def _settle(self, row: UnansweredItem, lookup: Lookup) -> None:
        if not lookup.is_unavailable and lookup.cache is not CacheStatus.STALE:
            setattr(self.result, lookup.state, getattr(self.result, lookup.state) + 1)
            self._rows().filter(pk=row.pk).delete()
            return
        reason = lookup.reason if lookup.is_unavailable else row.reason  # a stale item is shown, and no answer
        if not any(attempt.called for attempt in lookup.trace):
            self.result.not_tried += 1
            self._give_back(row, lookup.retry_after or 0.0)
        elif row.attempts >= MAX_ATTEMPTS:
            self._give_up(row, reason)
        else:
            self.result.unavailable += 1
            self._rows().filter(pk=row.pk).update(reason=reason)

    def _give_back(self, row: UnansweredItem, seconds: float) -> None:
        """It was not tried, so it does not count."""
        until = now() + max(pause(0), timedelta(seconds=seconds))
        self._rows().filter(pk=row.pk).update(attempts=row.attempts - 1, next_try_at=until)

    def _give_up(self, row: UnansweredItem, reason: str) -> None:
        self.result.given_up += 1
        self._rows().filter(pk=row.pk).update(reason=reason, given_up_at=now())

    def _rows(self) -> QuerySet[UnansweredItem]:
        return UnansweredItem.objects.using(database()).filter(catalog=self._config.alias).order_by()


def _variant(row: UnansweredItem) -> tuple[str, str]:
    return row.language, row.vary


def _mapping(vary: str) -> dict[str, Any] | None:
    """Return a ``vary`` from its canonical form; ValueError when somebody has changed the row into something else."""
    return json.loads(vary) if vary else None
