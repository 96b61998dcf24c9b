"""Who is asked, in which order, and what do all replies together mean? The chain of one catalog."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from catalog_fallback import classify, clock, conf, signals
from catalog_fallback.cache import entries_of, store_of
from catalog_fallback.calling import NO_DIRECTIVES, Answer, BeforeCall, Caller, Outlook, longest_pause
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.headers import Directives
from catalog_fallback.hit_counts import HitCounts
from catalog_fallback.isolation import Isolation
from catalog_fallback.item_store import ItemStore
from catalog_fallback.last_look import Expected, LastLook
from catalog_fallback.queries import Query
from catalog_fallback.redis_scripts import Precondition, Unmet
from catalog_fallback.resilience.breaker_record import BreakerState
from catalog_fallback.resilience.guard import Guard, Stores
from catalog_fallback.resilience.keys import Names
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.store import ProcessStore, Store
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.resilience.views import View, are_all, complete, keys_of
from catalog_fallback.results import Attempt, Item, State
from catalog_fallback.sources.base import Source
from catalog_fallback.statistics import Statistics


class Search(NamedTuple):
    """What asking the sources came to. ``fetched_at`` is seconds since the epoch; ``directives`` are the strictest."""

    state: State
    reason: str
    trace: tuple[Attempt, ...] = ()
    item: Item | None = None
    source: str | None = None
    fetched_at: float = 0.0
    directives: Directives = NO_DIRECTIVES
    retry_after: float | None = None


class Chain:
    """The sources of one catalog, in priority order, each behind its guard. One object per catalog and process."""

    def __init__(self, config: CatalogConfig) -> None:
        self.config = config
        self.stores = Stores(_shared_store(config.state_cache))
        self.callers = tuple(self._caller(conf.build_source(source)) for source in config.sources)
        self._guards = tuple(caller.guard for caller in self.callers)
        self.isolation = Isolation(config.alias, {each.config.alias: each.guard.names for each in self.callers})
        self.hit_counts = HitCounts(entries_of[config.alias], self.stores.shared)
        self._last_look = LastLook()

    def _caller(self, source: Source) -> Caller:
        config = source.config
        names = Names(self.config.alias, config.alias, self.config.key_prefix, self.config.version)
        guard = Guard.of(config, names, self.stores, on_change=partial(self._changed, config.alias))
        return Caller(source, guard, Statistics(self.stores.shared, names, config.timeout))

    def look(self) -> Outlook:
        """Look at all guards with one read; takes no permit."""
        view = self.stores.read(self._guards, self.isolation.keys)
        return Outlook(view, self.isolation.of(view))

    def expect(self, store: ItemStore) -> Expected | None:
        """Return what :meth:`look` would bring if nothing has changed; None where ``store`` cannot see to that."""
        scripts = store.scripts
        if scripts is None or not scripts.takes_any_keys or self.stores.now is not store:
            return None
        keys, asked_at = keys_of(self.stores.readers(self._guards), self.isolation.keys), clock.monotonic()
        if (seen := self._last_look.found(keys)) is not None:
            outlook = Outlook(View(store, seen.found, asked_at), seen.isolated)
            if self.refused(outlook) is None:
                return Expected(seen.precondition, outlook, asked_at)
        return Expected(Precondition(keys, None), None, asked_at)

    def saw(self, expected: Expected, unmet: Unmet) -> Outlook:
        """Return what :meth:`look` would have brought when something else was found than expected."""
        readers, keys = self.stores.readers(self._guards), expected.precondition.keys
        view = complete(View(self.stores.shared, unmet.found, expected.asked_at), readers, keys)
        isolated = self.isolation.of(view)
        if are_all(readers, view.found, keys) and self.isolation.is_known(view):
            self._last_look.remember(keys, unmet, isolated)
        return Outlook(view, isolated)

    def refused(self, outlook: Outlook) -> list[Answer] | None:
        """Return the answers of a search in which nobody would be called; None when somebody would."""
        answers = []
        for stage, caller in enumerate(self.callers):
            refusal = caller.refusal(outlook)
            if refusal is None:
                return None
            answers.append(caller.refused(refusal))
            if not self.goes_on(stage, answers[-1]):
                break
        return answers

    def search(
        self, query: Query, deadline: Deadline, outlook: Outlook, before_call: BeforeCall | None = None
    ) -> Search:
        """Ask the sources in order until one answers for all or the time is over; never raises.

        ``before_call`` is told the limit, in seconds, of the calls of each source after the first.
        """
        answers: list[Answer] = []
        for stage in range(len(self.callers)):
            if stage and before_call is not None:
                before_call(self.longest_wait(stage, deadline))
            answers += self.ask(stage, (query,), deadline, outlook)
            self.announce(answers[-1])
            if not self.goes_on(stage, answers[-1]):
                break
        return self.conclude(answers, deadline)

    def longest_wait(self, stage: int, deadline: Deadline) -> float:
        """Return how long a source may take at most, all attempts together, in seconds."""
        config = self.callers[stage].config
        pauses = sum(map(longest_pause, range(1, config.attempts)))
        return min(config.attempts * config.timeout + pauses, deadline.left())

    def ask(self, stage: int, queries: Sequence[Query], deadline: Deadline, outlook: Outlook) -> list[Answer]:
        """Ask one source for items, in one call where there are several; return an answer for each."""
        if deadline.has_passed:
            return [self.callers[stage].refused(Refusal("deadline"))] * len(queries)
        return self.callers[stage].ask(queries, deadline, outlook)

    def goes_on(self, stage: int, answer: Answer) -> bool:
        """Whether the next source is asked after this answer."""
        return classify.goes_on(answer.verdict, self.callers[stage].config.next_on)

    def announce(self, answer: Answer) -> None:
        """Tell whoever listens that a source was called, or that a guard refused the call."""
        if signals.source_called.receivers:
            for attempt in answer.attempts:
                signals.source_called.send_robust(Chain, catalog=self.config.alias, attempt=attempt)

    def conclude(self, answers: Sequence[Answer], deadline: Deadline) -> Search:
        """Return what all answers together mean."""
        self.hit_counts.write_if_due()
        trace = tuple(attempt for answer in answers for attempt in answer.attempts)
        state, reason = classify.conclude(trace, self.config.sources, deadline_passed=deadline.has_passed)
        last = answers[-1].verdict if state is State.FOUND else None
        return Search(
            state,
            reason,
            trace,
            item=last.item if last is not None else None,
            source=trace[-1].source if last is not None else None,
            fetched_at=clock.wall(),
            directives=_strictest(answers[-1:] if state is State.FOUND else answers),
            retry_after=_earliest(answers) if state is State.UNAVAILABLE else None,
        )

    def close(self) -> None:
        """Give back the sources' connections."""
        for caller in self.callers:
            caller.source.close()

    def _changed(self, source: str, old: BreakerState, new: BreakerState, reason: str) -> None:
        """The breaker of a source changed its state, and this process made the change."""
        for caller in self.callers:
            if caller.config.alias == source:
                caller.statistics.write()  # what has led to the change is to be seen with it
        if signals.breaker_changed.receivers:
            signals.breaker_changed.send_robust(
                Chain, catalog=self.config.alias, source=source, old=str(old), new=str(new), reason=reason
            )


#: The chain of each catalog.
chain_of: conf.PerCatalog[Chain] = conf.PerCatalog(Chain, dispose=Chain.close)


def _shared_store(alias: str) -> Store:
    """Return the store of an alias of CACHES; where that is a dummy, the guards keep their state in the process."""
    facts = conf.cache_facts(alias)
    return ProcessStore() if facts is not None and facts.is_dummy else store_of[alias]


def _strictest(answers: Sequence[Answer]) -> Directives:
    if len(answers) == 1:
        return answers[0].directives
    limits = [answer.directives.ttl for answer in answers if answer.directives.ttl is not None]
    return Directives(
        may_store=all(answer.directives.may_store for answer in answers),
        ttl=min(limits, default=None),
        may_serve_stale=all(answer.directives.may_serve_stale for answer in answers),
    )


def _earliest(answers: Sequence[Answer]) -> float | None:
    """When something could change at the earliest, as far as the sources and their guards said so."""
    return min((each.verdict.retry_after for each in answers if each.verdict.retry_after is not None), default=None)
