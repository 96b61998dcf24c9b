"""What happens in one call of a source? A permit from its guard, a call with a hard limit, a judgement of the reply.

Retries are made here and nowhere else: only where ATTEMPTS allows them, only after ``temporary``, inside the budget.
"""

from __future__ import annotations

import logging
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import NamedTuple

from catalog_fallback import classify, clock
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.headers import Directives, directives
from catalog_fallback.log_events import fields
from catalog_fallback.plain_json import is_plain, to_plain
from catalog_fallback.queries import Query
from catalog_fallback.resilience.guard import Guard
from catalog_fallback.resilience.permit import Permit
from catalog_fallback.resilience.refusal import Refusal
from catalog_fallback.resilience.time_budget import Deadline
from catalog_fallback.resilience.views import View
from catalog_fallback.results import Attempt, NoReply, Outcome, Reply, Verdict
from catalog_fallback.sources import text
from catalog_fallback.sources.base import Source
from catalog_fallback.statistics import Statistics

logger = logging.getLogger("catalog_fallback")

#: Before the n-th retry a random time is waited, up to the first of these doubled n - 1 times, and the second at most.
RETRY_PAUSE, LONGEST_RETRY_PAUSE = 0.1, 2.0
#: Seconds past its limit after which a call is said to ignore it; a busy machine needs some.
OVERRUN = 1.0

NO_DIRECTIVES = Directives()
_REASON = re.compile(r"[a-z0-9_]{1,64}")
_OWN_ADAPTERS = "catalog_fallback.sources."


class BadAdapter(TypeError):
    """An adapter of the site's own has brought what nobody can use; the message names types, and no values."""


class Answer(NamedTuple):
    """What one source said of one item: its attempts, of which the last counts, and what the reply allows."""

    attempts: tuple[Attempt, ...]
    verdict: Verdict
    directives: Directives = NO_DIRECTIVES


class Outlook(NamedTuple):
    """What one look at the guards of a catalog brought; ``isolated`` are the sources that an operator took out."""

    view: View
    isolated: frozenset[str]


class Caller:
    """One source behind its guard, and the figures of its calls."""

    def __init__(self, source: Source, guard: Guard, statistics: Statistics) -> None:
        self.source = source
        self.guard = guard
        self.statistics = statistics
        self.config = source.config
        #: Its items are made of what our own strict decoder brought: plain JSON, which needs no second look. Walking
        #: through an item of 10 KB would cost a tenth of a whole lookup.
        self._brings_plain_items = _is_our_own(source)

    def refusal(self, outlook: Outlook) -> Refusal | None:
        """Return the refusal that a call would meet now; takes nothing."""
        return self.guard.look(outlook.view, is_isolated=self.config.alias in outlook.isolated)

    def refused(self, refusal: Refusal) -> Answer:
        """Return the answer of a source that was not called."""
        verdict = refusal.verdict
        attempt = Attempt(self.config.alias, verdict.outcome, verdict.reason, 0.0, called=False)
        return Answer((attempt,), verdict)

    def ask(self, queries: Sequence[Query], deadline: Deadline, outlook: Outlook) -> list[Answer]:
        """Ask for items, in one call where there are several, as often as ATTEMPTS allows; one answer for each."""
        is_isolated = self.config.alias in outlook.isolated
        answers = self._ask_once(queries, deadline, outlook.view, is_isolated=is_isolated)
        for retry in range(1, self.config.attempts):
            if not all(_may_retry(answer) for answer in answers):
                break
            pause = random.uniform(0.0, longest_pause(retry))  # noqa: S311 - jitter, no secret
            if pause >= deadline.left():
                break
            clock.sleep(pause)
            # The last call may have changed what the guard says: it is looked at again.
            again = self._ask_once(queries, deadline, None, is_isolated=is_isolated)
            pairs = zip(answers, again, strict=True)
            answers = [new._replace(attempts=old.attempts + new.attempts) for old, new in pairs]
        return answers

    def _ask_once(
        self, queries: Sequence[Query], deadline: Deadline, view: View | None, *, is_isolated: bool
    ) -> list[Answer]:
        permit = self.guard.take(view, deadline=deadline, is_isolated=is_isolated)
        if isinstance(permit, Refusal):
            return [self.refused(permit)] * len(queries)
        with permit:
            started_at = clock.monotonic()
            reply, verdicts = self._called(queries, deadline)
            elapsed = clock.monotonic() - started_at
            self._tell_overrun(elapsed)
            self._settle(permit, reply, _weightiest(verdicts), elapsed)
        rules = NO_DIRECTIVES
        if isinstance(reply, Reply) and self.config.respect_cache_control:
            rules = directives(reply.headers)
        return [self._answer(verdict, elapsed, rules) for verdict in verdicts]

    def _has_overrun(self, elapsed: float) -> bool:
        return elapsed > self.config.timeout + OVERRUN

    def _tell_overrun(self, elapsed: float) -> None:
        """Say that an adapter went on past its limit: nobody can end a call from outside."""
        if self._has_overrun(elapsed):
            catalog, source = self.config.catalog, self.config.alias
            about = fields("call_overran", catalog=catalog, source=source, seconds=elapsed)
            text = "Source %r of catalog %r took %.1f s for a call that was given %s s at most."
            logger.warning(text, source, catalog, elapsed, self.config.timeout, extra=about)

    def _settle(self, permit: Permit, reply: Reply | NoReply | None, verdict: Verdict, elapsed: float) -> None:
        """Report the call to its guard and to the figures; one that never left the adapter says nothing."""
        if reply is None:
            permit.cancel()
            return
        timed_out = isinstance(reply, NoReply) and reply.reason == "timeout"
        # That a call was cut off is noticed a moment later; it took its limit.
        just_over = math.nextafter(self.config.timeout, math.inf)
        seconds = elapsed if self._has_overrun(elapsed) else min(elapsed, just_over)
        self.statistics.note(verdict, seconds, timed_out=timed_out)
        permit.settle(verdict, timed_out=timed_out)
        self.statistics.write_if_due()

    def _answer(self, verdict: Verdict, elapsed: float, rules: Directives) -> Answer:
        attempt = Attempt(self.config.alias, verdict.outcome, verdict.reason, elapsed * 1000)
        return Answer((attempt,), verdict, rules)

    def _called(self, queries: Sequence[Query], deadline: Deadline) -> tuple[Reply | NoReply | None, list[Verdict]]:
        """Make the call within what is left of the budget, and judge its reply for each item."""
        timeout = max(min(self.config.timeout, deadline.left()), 0.001)
        reply: Reply | NoReply | None = None
        try:
            reply = _checked(self._fetch(queries, timeout))
            verdicts = self._judged(reply, queries)
        except InvalidItemID:  # the adapter's own rules: it cannot even ask for such an item
            verdicts = [classify.verdict("invalid_request")] * len(queries)
        except Exception as error:
            catalog, source, kind = self.config.catalog, self.config.alias, type(error).__name__
            about = fields("source_raised", catalog=catalog, source=source, reason=kind)
            logger.error(
                "Source %r of catalog %r raised.", source, catalog, exc_info=without_message(error), extra=about
            )
            verdicts = [classify.verdict("source_error")] * len(queries)
        if deadline.has_passed and isinstance(reply, Reply):
            verdicts = [classify.verdict("deadline")] * len(queries)
        return reply, verdicts

    def _fetch(self, queries: Sequence[Query], timeout: float) -> Reply | NoReply:
        first = queries[0]
        if len(queries) == 1:
            return self.source.fetch(first.item_id, first.language, first.vary, timeout=timeout)
        ids = [query.item_id for query in queries]
        return self.source.fetch_many(ids, first.language, first.vary, timeout=timeout)

    def _judged(self, reply: Reply | NoReply, queries: Sequence[Query]) -> list[Verdict]:
        if isinstance(reply, NoReply):
            return [classify.settle(classify.verdict(reply.reason), self.config)] * len(queries)
        if len(queries) == 1:
            item_id = queries[0].item_id
            return [classify.settle(self._sound(self.source.parse(reply, item_id), item_id), self.config)]
        ids = [query.item_id for query in queries]
        many = self.source.parse_many(reply, ids)
        if missing := [item_id for item_id in ids if item_id not in many]:
            kind = type(self.source).__name__
            logger.error("%s.parse_many() said nothing of %d of %d items.", kind, len(missing), len(ids))
        sound = (self._sound(many[each], each) if each in many else classify.verdict("source_error") for each in ids)
        return [classify.settle(verdict, self.config) for verdict in sound]

    def _sound(self, verdict: object, item_id: str) -> Verdict:
        """The last net below every adapter: a verdict it is, and a found item is the one that was asked for."""
        if not isinstance(verdict, Verdict):
            kind = type(self.source).__name__
            raise BadAdapter(f"{kind}.parse() has to return a Verdict, not {type(verdict).__name__}.")
        _check_verdict(verdict)
        if verdict.outcome is not Outcome.FOUND:
            return verdict
        if not _is_asked_item(verdict.item, item_id):
            return classify.verdict("invalid_item")
        if self._brings_plain_items or is_plain(verdict.item):
            return verdict
        return replace(verdict, item=to_plain(verdict.item or {}))


def _checked(reply: object) -> Reply | NoReply:
    """Return what an adapter's ``fetch`` brought if it is what it has to be; TypeError otherwise."""
    if isinstance(reply, Reply):
        is_sound = (
            isinstance(reply.status, int) and isinstance(reply.body, bytes) and isinstance(reply.headers, Mapping)
        )
        if is_sound and all(isinstance(value, str) for value in reply.headers.values()):
            return reply
    elif isinstance(reply, NoReply) and isinstance(reply.reason, str) and _REASON.fullmatch(reply.reason):
        return reply
    raise BadAdapter("fetch() has to return a Reply with text in its headers, or a NoReply with a reason")


def _check_verdict(verdict: Verdict) -> None:
    """Raise TypeError for a verdict with values that the rest could not work with."""
    wait = verdict.retry_after
    is_wait = wait is None or (isinstance(wait, (int, float)) and math.isfinite(wait) and wait >= 0)
    is_reason = isinstance(verdict.reason, str) and _REASON.fullmatch(verdict.reason) is not None
    if not (isinstance(verdict.outcome, Outcome) and is_reason and is_wait):
        raise BadAdapter("a Verdict needs an Outcome, a reason in lower case, and seconds or None as retry_after")


def _is_our_own(source: Source) -> bool:
    """Whether its replies are read by an adapter of this package, not by a site's own method in its place."""
    readers = type(source).parse, type(source).parse_many
    return all(each.__module__.startswith(_OWN_ADAPTERS) for each in readers)


def _may_retry(answer: Answer) -> bool:
    """Whether asking once more is allowed: a call was made, it ended ``temporary``, and nobody asked us to wait."""
    is_temporary = answer.verdict.outcome is Outcome.TEMPORARY
    return answer.attempts[-1].called and is_temporary and not answer.verdict.retry_after


def longest_pause(retry: int) -> float:
    """Return the seconds that are waited at most before a retry; the first one is 1."""
    return min(RETRY_PAUSE * 2.0 ** min(retry - 1, 10), LONGEST_RETRY_PAUSE)


def _weightiest(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict that says most about the source: one call, one result."""
    return next((each for each in verdicts if each.outcome is Outcome.TEMPORARY), verdicts[0])


def without_message(error: Exception) -> tuple[type[Exception], Exception, TracebackType | None]:
    """Return kind and place of an error: its message, and what is behind it, may quote the URL, a header or a body.

    What this package says of an adapter quotes nothing, and is told.
    """
    kind = type(error)
    if kind is BadAdapter:
        return kind, error, error.__traceback__
    namesake = type(kind.__name__, (Exception,), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})
    return namesake, namesake("(the message may hold secrets and is not logged)"), error.__traceback__


def _is_asked_item(item: object, item_id: str) -> bool:
    """Whether the item has the ID that was asked for, and a name."""
    if not isinstance(item, Mapping) or item.get("id") != item_id:
        return False
    name = item.get("name")
    return isinstance(name, str) and not text.is_blank(name)


BeforeCall = Callable[[float], None]
