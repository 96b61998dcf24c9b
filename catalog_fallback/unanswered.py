"""Which lookups could nobody answer? With RETRY_LATER they are noted in the database, and go when they are answered.

Noting never breaks a lookup: a database that fails, or a transaction that is broken, costs the note. What is noted
already is not written again, so that an outage costs one write an item, not one a lookup.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import router, transaction
from django.db.models import QuerySet

from catalog_fallback import clock
from catalog_fallback.models import MAX_ID_LENGTH, UnansweredItem, chunks
from catalog_fallback.queries import Query
from catalog_fallback.results import CacheStatus, Lookup, State

logger = logging.getLogger("catalog_fallback")

#: About so many rows of one catalog are kept at most; what comes on top is not noted.
MAX_ROWS = 10_000
#: Seconds until the first try, and the longest pause between two; each pause is up to twice as long as the last one.
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 6 * 3600.0
#: Longest canonical form of a ``vary`` that the column takes.
MAX_VARY_LENGTH = 255


def database() -> str:
    """Return the alias of the database that holds the notes."""
    return router.db_for_write(UnansweredItem)


def now() -> datetime:
    """Return the present moment as the database takes it."""
    return datetime.fromtimestamp(clock.wall(), UTC if settings.USE_TZ else None)


def pause(attempts: int) -> timedelta:
    """Return how long to wait after so many tries: at least half of a time that doubles with each of them."""
    longest = min(FIRST_PAUSE * 2 ** min(attempts, 30), LONGEST_PAUSE)
    return timedelta(seconds=random.uniform(longest / 2, longest))  # noqa: S311 - jitter is no secret


def vary_text(vary: Mapping[str, str]) -> str:
    """Return a ``vary`` in its canonical form; "" where there is none."""
    return json.dumps(dict(sorted(vary.items())), separators=(",", ":")) if vary else ""


def note(answers: Sequence[tuple[Query, Lookup]]) -> None:
    """Note what nobody could answer, and forget what was answered. All queries have one catalog, language and vary."""
    told = [(query, lookup) for query, lookup in answers if _is_definite(lookup) or _may_be_noted(query, lookup)]
    if not told:
        return
    try:
        with transaction.atomic(using=database()):
            for some in chunks(told):
                _note(some)
    except DatabaseError as error:
        alias = told[0][0].catalog.alias
        logger.warning("Catalog %r: unanswered lookups could not be noted (%s).", alias, type(error).__name__)


def _note(answers: Sequence[tuple[Query, Lookup]]) -> None:
    first = answers[0][0]
    rows = _rows(first)
    same = rows.filter(language=first.language, vary=vary_text(first.vary))
    noted = dict(same.filter(item_id__in=[query.item_id for query, _ in answers]).values_list("item_id", "pk"))
    answered = [noted[query.item_id] for query, lookup in answers if _is_definite(lookup) and query.item_id in noted]
    if answered:
        rows.filter(pk__in=answered).delete()
    open_ones = [(query, lookup) for query, lookup in answers if lookup.state is State.UNAVAILABLE]
    new = [_row(query, lookup) for query, lookup in open_ones if query.item_id not in noted]
    if new:
        room = MAX_ROWS - rows[:MAX_ROWS].count()
        UnansweredItem.objects.using(database()).bulk_create(new[: max(0, room)], ignore_conflicts=True)


def _rows(query: Query) -> QuerySet[UnansweredItem]:
    return UnansweredItem.objects.using(database()).filter(catalog=query.catalog.alias).order_by()


def _row(query: Query, lookup: Lookup) -> UnansweredItem:
    moment = now()
    return UnansweredItem(
        catalog=query.catalog.alias,
        item_id=query.item_id,
        language=query.language,
        vary=vary_text(query.vary),
        reason=lookup.reason,
        next_try_at=moment + pause(0),
        created_at=moment,
    )


def _is_definite(lookup: Lookup) -> bool:
    """Whether it says how things are now: an expired item does not."""
    return lookup.state is not State.UNAVAILABLE and lookup.cache is not CacheStatus.STALE


def _may_be_noted(query: Query, lookup: Lookup) -> bool:
    """Whether it is unavailable though somebody was asked, and fits into a row.

    Not where only the caller's own time was over before anybody was asked, nor where the database is down.
    """
    if lookup.state is not State.UNAVAILABLE or lookup.reason == "stop_list_unavailable":
        return False
    if lookup.reason == "deadline" and not any(attempt.called for attempt in lookup.trace):
        return False
    return len(query.item_id) <= MAX_ID_LENGTH and len(vary_text(query.vary)) <= MAX_VARY_LENGTH
