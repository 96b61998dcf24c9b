"""Who is asked, in which order, and what do all replies together mean? The chain of one catalog."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType

from catalog_fallback import classify, clock, conf, signals
from catalog_fallback.cache import Query
from catalog_fallback.configuration import CatalogConfig, SourceConfig
from catalog_fallback.headers import Directives, directives
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.results import Attempt, Item, NoReply, Outcome, Reply, State, Verdict
from catalog_fallback.sources import text
from catalog_fallback.sources.base import Source

logger = logging.getLogger("catalog_fallback")


@dataclass(frozen=True, slots=True)
class Search:
    """What asking the sources came to. ``fetched_at`` is seconds since the epoch; ``directives`` are the strictest."""

    state: State
    reason: str
    trace: tuple[Attempt, ...] = ()
    item: Item | None = None
    source: str | None = None
    fetched_at: float = 0.0
    directives: Directives = field(default_factory=Directives)
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    """One source's attempt with what it brought."""

    attempt: Attempt
    verdict: Verdict
    directives: Directives


class Chain:
    """The sources of one catalog, in priority order."""

    def __init__(self, config: CatalogConfig) -> None:
        self.config = config
        self.sources: tuple[Source, ...] = tuple(conf.build_source(source) for source in config.sources)

    def search(self, query: Query, deadline: Deadline) -> Search:
        """Ask each source at most once, in order, until one answers for all or the time is over; never raises."""
        answers = list(self._answers(query, deadline))
        trace = tuple(answer.attempt for answer in answers)
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
        for source in self.sources:
            source.close()

    def _answers(self, query: Query, deadline: Deadline) -> Iterator[_Answer]:
        for source in self.sources:
            answer = _ask(source, query, deadline)
            if signals.source_called.receivers:
                signals.source_called.send_robust(Chain, catalog=self.config.alias, attempt=answer.attempt)
            yield answer
            if not classify.goes_on(answer.verdict, source.config.next_on):
                return


#: The chain of each catalog.
chain_of: conf.PerCatalog[Chain] = conf.PerCatalog(Chain, dispose=Chain.close)

_NO_DIRECTIVES = Directives()


def _ask(source: Source, query: Query, deadline: Deadline) -> _Answer:
    """Make one call within what is left of the budget, and judge its reply."""
    timeout = min(source.config.timeout, deadline.left())
    if timeout <= 0.0:
        return _answer(source.config, classify.verdict("deadline"), 0.0, was_called=False)
    started_at = clock.monotonic()
    try:
        reply = source.fetch(query.item_id, query.language, query.vary, timeout=timeout)
        verdict = _judged(source, reply, query.item_id)
    except Exception as error:
        shown = _without_message(error)
        logger.error("Source %r of catalog %r raised.", source.alias, query.catalog.alias, exc_info=shown)
        reply, verdict = None, classify.verdict("source_error")
    if deadline.has_passed and isinstance(reply, Reply):
        verdict = classify.verdict("deadline")
    elapsed = clock.monotonic() - started_at
    rules = directives(reply.headers) if isinstance(reply, Reply) and source.config.respect_cache_control else None
    return _answer(source.config, verdict, elapsed, rules=rules)


def _without_message(error: Exception) -> tuple[type[Exception], Exception, TracebackType | None]:
    """Return kind and place of an error: its message, and what is behind it, may quote the URL, a header or a body."""
    kind = type(error)
    namesake = type(kind.__name__, (Exception,), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})
    return namesake, namesake("(the message may hold secrets and is not logged)"), error.__traceback__


def _judged(source: Source, reply: Reply | NoReply, item_id: str) -> Verdict:
    if isinstance(reply, NoReply):
        return classify.settle(classify.verdict(reply.reason), source.config)
    verdict = source.parse(reply, item_id)
    if not isinstance(verdict, Verdict):
        raise TypeError(f"{type(source).__name__}.parse() has to return a Verdict, not {type(verdict).__name__}.")
    if verdict.outcome is Outcome.FOUND and not _is_asked_item(verdict.item, item_id):
        verdict = classify.verdict("invalid_item")
    return classify.settle(verdict, source.config)


def _is_asked_item(item: object, item_id: str) -> bool:
    """The last net below every adapter: an item has the ID that was asked for, and a name."""
    if not isinstance(item, Mapping) or item.get("id") != item_id:
        return False
    name = item.get("name")
    return isinstance(name, str) and not text.is_blank(name)


def _answer(
    config: SourceConfig,
    verdict: Verdict,
    elapsed: float,
    *,
    was_called: bool = True,
    rules: Directives | None = None,
) -> _Answer:
    attempt = Attempt(config.alias, verdict.outcome, verdict.reason, elapsed * 1000, was_called)
    return _Answer(attempt, verdict, rules or _NO_DIRECTIVES)


def _strictest(answers: list[_Answer]) -> Directives:
    limits = [answer.directives.ttl for answer in answers if answer.directives.ttl is not None]
    return Directives(
        may_store=all(answer.directives.may_store for answer in answers),
        ttl=min(limits, default=None),
        may_serve_stale=all(answer.directives.may_serve_stale for answer in answers),
    )


def _earliest(answers: list[_Answer]) -> float | None:
    """When something could change at the earliest, as far as the sources said so."""
    return min((each.verdict.retry_after for each in answers if each.verdict.retry_after is not None), default=None)
