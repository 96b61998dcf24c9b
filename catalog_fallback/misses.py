"""How are the misses of one ``find_items`` fetched? Side by side, by workers who do nothing else.

The caller's thread does all that touches entries and stop list; workers only pass the guards and call. An item is
started (lease, second look at the cache, stop list) only when a worker is free for it; what others fetch is waited for
last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import partial

from django.db import connections

from catalog_fallback import clock, stop_list
from catalog_fallback.batch_item import BatchItem
from catalog_fallback.boarding import Boarding, board, take_lease, take_off
from catalog_fallback.cache import entries_of
from catalog_fallback.calling import Answer
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.entry_form import Entry, Kept
from catalog_fallback.fallback import chain_of
from catalog_fallback.filling import Fill
from catalog_fallback.flight_table import Flight
from catalog_fallback.queries import Query
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup
from catalog_fallback.waiting import Others, from_entry


class Misses:
    """The misses of one ``find_items``, and their answers by ID."""

    def __init__(self, catalog: str, deadline: Deadline, *, refresh: bool) -> None:
        self.lookups: dict[str, Lookup] = {}
        self._alias = catalog
        self._entries = entries_of[catalog]
        self._chain = chain_of[catalog]
        self._workers = _workers(self._entries.config)
        self._deadline = deadline
        self._refresh = refresh
        self._is_old_view = stop_list.sees_old_state()
        self._to_start: deque[tuple[Query, Kept]] = deque()
        #: With ``refresh``: the entry of each item that must not be its answer.
        self._seen: dict[str, Entry | None] = {}
        self._others = Others(self._fill, self._seen, deadline)
        self._started: dict[str, BatchItem] = {}
        #: For each source, the items that it is to be asked for next.
        self._stages: list[deque[BatchItem]] = [deque() for _ in self._chain.callers]
        self._running: dict[Future[list[Answer]], tuple[int, list[BatchItem]]] = {}

    def look_up(self, misses: Sequence[tuple[Query, Kept]]) -> None:
        """Answer all of them into ``lookups``; whatever happens, every flight lands and every lease is given back."""
        if self._refresh:
            self._seen.update((query.item_id, kept.entry) for query, kept in misses)
        self._to_start.extend(self._not_answered_by_entries(misses))
        if not self._to_start:
            return
        try:
            with ThreadPoolExecutor(self._workers, "catalog-fallback-batch") as pool:
                self._run(pool)
                while self._others:
                    self._take_from_others()
                    self._run(pool)
        finally:
            for started in self._started.values():
                started.boarding.end()

    def _fill(self, query: Query) -> Fill:
        return Fill(query, self._entries, self._deadline, self._is_old_view)

    def _not_answered_by_entries(self, misses: Sequence[tuple[Query, Kept]]) -> Iterable[tuple[Query, Kept]]:
        """Answer from fresh entries that the database has to agree to, with one query for all; yield the others."""
        now = clock.wall()
        fresh = {query.item_id for query, kept in misses if kept.entry is not None and kept.entry.expires_at > now}
        if self._refresh or not fresh:
            yield from misses
            return
        said = stop_list.ask(self._alias, sorted(fresh))
        for query, kept in misses:
            lookup = self._fill(query).confirm(kept, is_stopped=said(query.item_id)) if query.item_id in fresh else None
            if lookup is None:
                yield query, kept
            else:
                self.lookups[query.item_id] = lookup

    # ------------------------------------------------------------------------------------------ working

    def _run(self, pool: ThreadPoolExecutor) -> None:
        """Start and fetch all that can be, until nothing is left but what others fetch."""
        while True:
            while len(self._running) < self._workers and (work := self._next_work()) is not None:
                stage, items = work
                queries = [item.query for item in items]
                context = copy_context()
                context.run(take_off, self._deadline)
                call = partial(context.run, self._chain.ask, stage, queries, self._deadline, items[0].boarding.outlook)
                self._running[pool.submit(_without_trace, call)] = work
            if not self._running:
                return
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                self._take_in(*self._running.pop(future), future.result())

    def _next_work(self) -> tuple[int, list[BatchItem]] | None:
        """Return a source's place and the items to ask it for: what is under way goes before what has not begun."""
        for stage in range(len(self._stages) - 1, 0, -1):
            if self._stages[stage]:
                items = self._take(stage)
                for item in items:
                    item.extend_lease(self._chain.longest_wait(stage, self._deadline))
                return stage, items
        while self._to_start and not self._stages[0]:
            if not self._start(max(self._chain.callers[0].source.batch_size, self._workers - len(self._running))):
                return None
        return (0, self._take(0)) if self._stages[0] else None

    def _take(self, stage: int) -> list[BatchItem]:
        queue = self._stages[stage]
        return [queue.popleft() for _ in range(min(len(queue), self._chain.callers[stage].source.batch_size))]

    def _take_in(self, stage: int, items: list[BatchItem], answers: Sequence[Answer]) -> None:
        """Pass an item on to the next source, or settle it."""
        for item, answer in zip(items, answers, strict=True):
            item.answers.append(answer)
            self._chain.announce(answer)
            if stage + 1 < len(self._stages) and self._chain.goes_on(stage, answer):
                self._stages[stage + 1].append(item)
            else:
                self._settle(item)

    def _settle(self, item: BatchItem) -> None:
        boarding = item.boarding
        search = self._chain.conclude(item.answers, self._deadline)
        lookup, is_for_all = boarding.fill.conclude(
            search, boarding.gate, item.old, is_new_gate=boarding.is_new_gate, lease=boarding.lease
        )
        if is_for_all:
            boarding.share(lookup)
        self._end(item, lookup)

    def _end(self, item: BatchItem, lookup: Lookup | None) -> None:
        del self._started[item.query.item_id]
        item.boarding.end()
        if lookup is not None:
            self.lookups[item.query.item_id] = lookup

    def _take_from_others(self) -> None:
        """Take what others have brought, and start what they have left."""
        for query, brought in self._others.look():
            if isinstance(brought, Lookup):
                self.lookups[query.item_id] = brought
            else:
                self._to_start.append((query, brought))

    # ------------------------------------------------------------------------------------------ starting

    def _start(self, count: int) -> bool:
        """Board up to ``count`` items, look at the cache again, ask the stop list; queue what has to be fetched.

        False when nobody may be called before one of our own calls has ended.
        """
        outlook = self._chain.look()
        refused = self._chain.refused(outlook)
        if refused is not None:
            if not self._running:
                self._without_call(refused)
            return not self._running
        boarded: list[tuple[Boarding, Kept]] = []
        for _ in range(min(count, len(self._to_start))):
            query, kept = self._to_start.popleft()
            fill = self._fill(query)
            if self._deadline.has_passed:
                self.lookups[query.item_id] = fill.past_deadline(kept)
                continue
            boarding = board(fill, kept, outlook)
            if isinstance(boarding, Flight):
                self._others.fly(query, kept, boarding)
                continue
            self._started[query.item_id] = BatchItem(boarding, kept.entry)
            if self._others.is_fruitless(query) or take_lease(boarding):
                boarded.append((boarding, kept))
            else:
                self._others.have_lease(query, kept, boarding.gate)
                self._end(self._started[query.item_id], None)
        self._ask_stop_list(list(self._looked_again(boarded)))
        return True

    def _without_call(self, refused: Sequence[Answer]) -> None:
        """No source may be called: nothing is started any more, one query says what is stopped."""
        said = stop_list.ask(self._alias, [query.item_id for query, _ in self._to_start])
        while self._to_start:
            query, kept = self._to_start.popleft()
            lookup = self._fill(query).without_call(refused, kept, is_stopped=said(query.item_id))
            self.lookups[query.item_id] = lookup

    def _looked_again(self, boarded: list[tuple[Boarding, Kept]]) -> Iterable[BatchItem]:
        """Read the shared ones again in one round trip; yield the items that still have to be fetched."""
        shared = [boarding.fill.query for boarding, _ in boarded if boarding.flight is not None]
        again = dict(zip((query.item_id for query in shared), self._entries.look_many(shared), strict=True))
        for boarding, _ in boarded:
            item = self._started[boarding.fill.query.item_id]
            now = again.get(item.query.item_id)
            if now is None or self._still_to_fetch(item, now):
                yield item

    def _still_to_fetch(self, item: BatchItem, now: Kept) -> bool:
        boarding = item.boarding
        if now.gate is None:
            boarding.leave()
        elif now.gate != boarding.gate:
            self._end(item, None)
            self._to_start.append((item.query, now))
            return False
        item.old = now.entry
        lookup = from_entry(boarding.fill, now, self._seen.get(item.query.item_id))
        if lookup is None:
            return True
        boarding.share(lookup, is_fetched=False)
        self._end(item, lookup)
        return False

    def _ask_stop_list(self, items: list[BatchItem]) -> None:
        """One query for all of them, after their gates were read."""
        if not items:
            return
        said = stop_list.ask(self._alias, [item.query.item_id for item in items])
        for item in items:
            boarding = item.boarding
            refused = boarding.fill.refused(boarding.gate, is_stopped=said(item.query.item_id))
            if refused is None:
                self._stages[0].append(item)
                continue
            boarding.share(refused)
            self._end(item, refused)


def _workers(config: CatalogConfig) -> int:
    """Return how many calls a batch makes at a time: not so many that one source's bulkhead refuses the others."""
    return min([config.max_parallel, *(source.max_concurrent for source in config.sources)])


def _without_trace(call: Callable[[], list[Answer]]) -> list[Answer]:
    """Guards whose state is in a database cache have opened a connection, which would outlive its thread."""
    try:
        return call()
    finally:
        connections.close_all()
