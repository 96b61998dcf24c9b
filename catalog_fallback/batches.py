"""How are many items looked up at once? Hits in one round trip, misses side by side inside one budget.

The caller's thread does all that touches cache and database; workers only call sources. An item is started (lease,
second look at the cache, stop list) only when a worker is free for it; what others fetch is waited for last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial

from catalog_fallback import clock, flights, refresh_ahead, stop_list
from catalog_fallback.cache import Entry, Kept, Query, entries_of
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.fallback import Answer, chain_of
from catalog_fallback.filling import Fill
from catalog_fallback.flights import Boarding
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Lookup, State


@dataclass(slots=True)
class _Started:
    """One item that this batch fetches: the right to, the expired entry in hand, and the sources' answers so far."""

    boarding: Boarding
    old: Entry | None
    answers: list[Answer] = field(default_factory=list)

    @property
    def query(self) -> Query:
        """What is asked."""
        return self.boarding.fill.query

    def extend_lease(self, seconds: float) -> None:
        """Make the lease outlive another call."""
        if self.boarding.lease is not None:
            self.boarding.lease.extend(seconds)


class Batch:
    """The misses of one ``find_items``."""

    def __init__(self, catalog: str, deadline: Deadline, *, refresh: bool) -> None:
        self.lookups: dict[str, Lookup] = {}
        self._alias = catalog
        self._entries = entries_of[catalog]
        self._workers = self._entries.config.max_parallel
        self._chain = chain_of[catalog]
        self._deadline = deadline
        self._refresh = refresh
        self._is_old_view = stop_list.sees_old_state()
        self._to_start: deque[tuple[Query, Kept]] = deque()
        self._to_wait: list[tuple[Query, Kept]] = []
        self._started: dict[str, _Started] = {}
        #: For each source, the items that it is to be asked for next.
        self._stages: list[deque[_Started]] = [deque() for _ in self._chain.sources]
        self._running: dict[Future[list[Answer]], tuple[int, list[_Started]]] = {}

    def look_up(self, misses: Iterable[tuple[Query, Kept]]) -> None:
        """Answer all of them into ``lookups``; whatever happens, every flight lands and every lease is given back."""
        self._to_start.extend(self._not_answered_by_entries(list(misses)))
        try:
            with ThreadPoolExecutor(self._workers, "catalog-fallback-batch") as pool:
                self._run(pool)
        finally:
            for started in self._started.values():
                started.boarding.end()
        for query, kept in self._to_wait:
            self.lookups[query.item_id] = flights.look_up(query, kept, self._deadline, refresh=self._refresh)

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

    def _run(self, pool: ThreadPoolExecutor) -> None:
        while True:
            while len(self._running) < self._workers and (work := self._next_work()) is not None:
                stage, items = work
                queries = [item.query for item in items]
                context = copy_context()
                context.run(flights.is_flying.set, True)
                call = partial(context.run, self._chain.ask, stage, queries, self._deadline)
                self._running[pool.submit(call)] = work
            if not self._running:
                return
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                self._take_in(*self._running.pop(future), future.result())

    def _next_work(self) -> tuple[int, list[_Started]] | None:
        """Return a source's place and the items to ask it for: what is under way goes before what has not begun."""
        for stage in range(len(self._stages) - 1, 0, -1):
            if self._stages[stage]:
                items = self._take(stage)
                for item in items:
                    item.extend_lease(self._chain.sources[stage].config.timeout)
                return stage, items
        while self._to_start and not self._stages[0]:
            self._start(max(self._chain.sources[0].batch_size, self._workers - len(self._running)))
        return (0, self._take(0)) if self._stages[0] else None

    def _take(self, stage: int) -> list[_Started]:
        queue = self._stages[stage]
        return [queue.popleft() for _ in range(min(len(queue), self._chain.sources[stage].batch_size))]

    def _start(self, count: int) -> None:
        """Board up to ``count`` items, look at the cache again, ask the stop list once, queue what has to be fetched."""
        boarded: list[tuple[Boarding, Kept]] = []
        for _ in range(min(count, len(self._to_start))):
            query, kept = self._to_start.popleft()
            fill = self._fill(query)
            if self._deadline.has_passed:
                self.lookups[query.item_id] = fill.past_deadline(kept)
                continue
            boarding = flights.board(fill, kept)
            if not isinstance(boarding, Boarding):
                self._to_wait.append((query, kept))
                continue
            self._started[query.item_id] = _Started(boarding, kept.entry)
            if flights.take_lease(boarding):
                boarded.append((boarding, kept))
            else:
                self._end(self._started[query.item_id], None)
                self._to_wait.append((query, kept))
        self._ask_stop_list(list(self._looked_again(boarded)))

    def _looked_again(self, boarded: list[tuple[Boarding, Kept]]) -> Iterable[_Started]:
        """Read the shared ones again in one round trip; yield the items that still have to be fetched."""
        shared = [boarding.fill.query for boarding, _ in boarded if boarding.flight is not None]
        again = dict(zip((query.item_id for query in shared), self._entries.look_many(shared), strict=True))
        for boarding, kept in boarded:
            item = self._started[boarding.fill.query.item_id]
            now = again.get(item.query.item_id)
            if now is None or self._still_to_fetch(item, now, kept.entry if self._refresh else None):
                yield item

    def _still_to_fetch(self, item: _Started, now: Kept, seen: Entry | None) -> bool:
        boarding = item.boarding
        if now.gate is None:
            boarding.leave()
        elif now.gate != boarding.gate:
            self._end(item, None)
            self._to_start.append((item.query, now))
            return False
        item.old = now.entry
        lookup = flights.from_entry(boarding.fill, now, seen)
        if lookup is None:
            return True
        boarding.share(lookup, is_fetched=False)
        self._end(item, lookup)
        return False

    def _ask_stop_list(self, items: list[_Started]) -> None:
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

    def _take_in(self, stage: int, items: list[_Started], answers: Sequence[Answer]) -> None:
        """Pass an item on to the next source, or settle it."""
        for item, answer in zip(items, answers, strict=True):
            item.answers.append(answer)
            self._chain.announce(answer)
            if stage + 1 < len(self._stages) and self._chain.goes_on(stage, answer):
                self._stages[stage + 1].append(item)
            else:
                self._settle(item)

    def _settle(self, item: _Started) -> None:
        boarding = item.boarding
        search = self._chain.conclude(item.answers, self._deadline)
        lookup, is_for_all = boarding.fill.conclude(search, boarding.gate, item.old, is_new_gate=boarding.is_new_gate)
        if is_for_all:
            boarding.share(lookup)
        self._end(item, lookup)

    def _end(self, item: _Started, lookup: Lookup | None) -> None:
        del self._started[item.query.item_id]
        item.boarding.end()
        if lookup is not None:
            self.lookups[item.query.item_id] = lookup


def look_up(queries: Mapping[str, Query], deadline: Deadline, *, refresh: bool) -> Mapping[str, Lookup]:
    """Answer queries of one catalog, by ID: hits in one round trip, the others as a batch."""
    if not queries:
        return {}
    asked = list(queries.values())
    catalog = asked[0].catalog
    if deadline.has_passed:
        return {query.item_id: past_deadline(query) for query in asked}
    entries = entries_of[catalog.alias]
    found = entries.look_many(asked) if refresh else entries.read_many(asked)
    lookups = {query.item_id: each for query, each in zip(asked, found, strict=True) if isinstance(each, Lookup)}
    misses = [(query, each) for query, each in zip(asked, found, strict=True) if not isinstance(each, Lookup)]
    if catalog.refresh_ahead:
        for query in asked:
            if query.item_id in lookups:
                refresh_ahead.notice(query, lookups[query.item_id])
    if misses:
        batch = Batch(catalog.alias, deadline, refresh=refresh)
        batch.look_up(misses)
        lookups |= batch.lookups
    return lookups


def past_deadline(query: Query) -> Lookup:
    """Return the answer to a lookup whose time was over before it began."""
    return Lookup(query.item_id, query.catalog.alias, State.UNAVAILABLE, "deadline")


class Lookups(dict[str, Lookup]):
    """Lookups by ID in its normal form, in the order asked; an ID as it was typed finds its lookup too."""

    def __init__(self, catalog: CatalogConfig, order: Iterable[str], lookups: Mapping[str, Lookup]) -> None:
        super().__init__((item_id, lookups[item_id]) for item_id in order)
        self._catalog = catalog

    def __missing__(self, item_id: str) -> Lookup:
        clean_id = self._catalog.clean_id(item_id)
        if clean_id == item_id or clean_id not in self:
            raise KeyError(item_id)
        return self[clean_id]
