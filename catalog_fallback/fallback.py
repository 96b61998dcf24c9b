"""Who is asked, in which order, and what do all replies together mean? The chain of one catalog."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

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
class Answer:
    """One source's attempt with what it brought."""

    attempt: Attempt
    verdict: Verdict
    directives: Directives


class Chain:
    """The sources of one catalog, in priority order."""

    def __init__(self, config: CatalogConfig) -> None:
        self.config = config
        self.sources: tuple[Source, ...] = tuple(conf.build_source(source) for source in config.sources)

    def search(self, query: Query, deadline: Deadline, before_call: Callable[[float], None] | None = None) -> Search:
        """Ask each source at most once, in order, until one answers for all or the time is over; never raises.

        ``before_call`` is told the limit, in seconds, of each call after the first.
        """
        answers: list[Answer] = []
        for stage, source in enumerate(self.sources):
            if stage and before_call is not None:
                before_call(min(source.config.timeout, deadline.left()))
            answers += self.ask(stage, (query,), deadline)
            self.announce(answers[-1])
            if not self.goes_on(stage, answers[-1]):
                break
        return self.conclude(answers, deadline)

    def ask(self, stage: int, queries: Sequence[Query], deadline: Deadline) -> list[Answer]:
        """Ask one source for items, in one call where there are several; return an answer for each."""
        source = self.sources[stage]
        return [_ask(source, queries[0], deadline)] if len(queries) == 1 else _ask_many(source, queries, deadline)

    def goes_on(self, stage: int, answer: Answer) -> bool:
        """Whether the next source is asked after this answer."""
        return classify.goes_on(answer.verdict, self.sources[stage].config.next_on)

    def announce(self, answer: Answer) -> None:
        """Tell whoever listens that a source was called, or that a guard refused the call."""
        if signals.source_called.receivers:
            signals.source_called.send_robust(Chain, catalog=self.config.alias, attempt=answer.attempt)

    def conclude(self, answers: Sequence[Answer], deadline: Deadline) -> Search:
        """Return what all answers together mean."""
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


#: The chain of each catalog.
chain_of: conf.PerCatalog[Chain] = conf.PerCatalog(Chain, dispose=Chain.close)

_NO_DIRECTIVES = Directives()


def _ask(source: Source, query: Query, deadline: Deadline) -> Answer:
    """Make one call within what is left of the budget, and judge its reply."""

    def call(timeout: float) -> Reply | NoReply:
        return source.fetch(query.item_id, query.language, query.vary, timeout=timeout)

    def judge(reply: Reply) -> list[Verdict]:
        return [source.parse(reply, query.item_id)]

    return _called(source, (query,), deadline, call, judge)[0]


def _ask_many(source: Source, queries: Sequence[Query], deadline: Deadline) -> list[Answer]:
    """Make one call for several items of one language and variant, and judge its reply for each of them."""
    ids = [query.item_id for query in queries]

    def call(timeout: float) -> Reply | NoReply:
        return source.fetch_many(ids, queries[0].language, queries[0].vary, timeout=timeout)

    def judge(reply: Reply) -> list[Verdict]:
        verdicts = source.parse_many(reply, ids)
        return [verdicts[item_id] for item_id in ids]

    return _called(source, queries, deadline, call, judge)


def _called(
    source: Source,
    queries: Sequence[Query],
    deadline: Deadline,
    call: Callable[[float], Reply | NoReply],
    judge: Callable[[Reply], list[Verdict]],
) -> list[Answer]:
    timeout = min(source.config.timeout, deadline.left())
    if timeout <= 0.0:
        return [_answer(source.config, classify.verdict("deadline"), 0.0, was_called=False) for _ in queries]
    started_at = clock.monotonic()
    reply: Reply | NoReply | None = None
    try:
        reply = call(timeout)
        verdicts = _judged(source, reply, queries, judge)
    except Exception:
        logger.exception("Source %r of catalog %r raised.", source.alias, source.config.catalog)
        verdicts = [classify.verdict("source_error")] * len(queries)
    if deadline.has_passed and isinstance(reply, Reply):
        verdicts = [classify.verdict("deadline")] * len(queries)
    elapsed = clock.monotonic() - started_at
    rules = directives(reply.headers) if isinstance(reply, Reply) and source.config.respect_cache_control else None
    return [_answer(source.config, verdict, elapsed, rules=rules) for verdict in verdicts]


def _judged(
    source: Source, reply: Reply | NoReply, queries: Sequence[Query], judge: Callable[[Reply], list[Verdict]]
) -> list[Verdict]:
    if isinstance(reply, NoReply):
        return [classify.settle(classify.verdict(reply.reason), source.config)] * len(queries)
    return [
        classify.settle(_sound(source, verdict, query.item_id), source.config)
        for verdict, query in zip(judge(reply), queries, strict=True)
    ]


def _sound(source: Source, verdict: object, item_id: str) -> Verdict:
    """The last net below every adapter: a verdict it is, and a found item is the one that was asked for."""
    if not isinstance(verdict, Verdict):
        raise TypeError(f"{type(source).__name__}.parse() has to return a Verdict, not {type(verdict).__name__}.")
    if verdict.outcome is Outcome.FOUND and not _is_asked_item(verdict.item, item_id):
        return classify.verdict("invalid_item")
    return verdict


def _is_asked_item(item: object, item_id: str) -> bool:
    """Whether the item has the ID that was asked for, and a name."""
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
) -> Answer:
    attempt = Attempt(config.alias, verdict.outcome, verdict.reason, elapsed * 1000, was_called)
    return Answer(attempt, verdict, rules or _NO_DIRECTIVES)


def _strictest(answers: Sequence[Answer]) -> Directives:
    limits = [answer.directives.ttl for answer in answers if answer.directives.ttl is not None]
    return Directives(
        may_store=all(answer.directives.may_store for answer in answers),
        ttl=min(limits, default=None),
        may_serve_stale=all(answer.directives.may_serve_stale for answer in answers),
    )


def _earliest(answers: Sequence[Answer]) -> float | None:
    """When something could change at the earliest, as far as the sources said so."""
    return min((each.verdict.retry_after for each in answers if each.verdict.retry_after is not None), default=None)
