"""What changes while nobody does anything? The sources' guards and the kept answer, as texts to be polled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from catalog_fallback import clock, conf
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.resilience.breaker_record import BreakerState
from catalog_fallback.results import Lookup
from catalog_fallback.services import explain_item
from catalog_fallback.status import SourceStatus, status_of
from catalogs.replies import CATALOGS
from portal import switchboard
from portal.fault_words import fault_words
from portal.forms import FaultForm
from portal.wording import STATES, Text, moment_words, reason_words, seconds_words


class Fact(NamedTuple):
    """One text that changes. ``tone`` is its colour: good, busy, bad, quiet."""

    key: str
    label: Text
    text: str
    tone: str = "quiet"


@dataclass(frozen=True, slots=True)
class Card:
    """One source: how it stands, and what can be done with it. ``form`` is None where it is not a simulated one."""

    alias: str
    place: int
    breaker: Fact
    facts: tuple[Fact, ...]
    fault: Fact | None = None
    effect: Fact | None = None
    form: FaultForm | None = None

    @property
    def all_facts(self) -> Iterator[Fact]:
        """Everything on it that changes."""
        yield self.breaker
        yield from self.facts
        yield from (fact for fact in (self.fault, self.effect) if fact is not None)


def as_json(facts: Iterable[Fact]) -> dict[str, dict[str, str]]:
    """The facts by their keys, as the page's script wants them."""
    return {fact.key: {"text": str(fact.text), "tone": fact.tone} for fact in facts}


def rules(catalog: str) -> str:
    """How long answers of a catalog are kept, and how long a visitor waits at most; these change with the settings."""
    config = conf.catalog(catalog)
    said = [
        _("Answers are kept for %(seconds)s.") % {"seconds": seconds_words(config.ttl)},
        _("A look-up takes at most %(seconds)s.") % {"seconds": seconds_words(config.budget)},
    ]
    if config.stale_if_error:
        stale = {"seconds": seconds_words(config.stale_if_error)}
        said.append(_("When nobody answers, an old answer is shown for another %(seconds)s.") % stale)
    if config.fallback is not None:
        said.append(_("After that, the site shows its own data."))
    return " ".join(said)


# ------------------------------------------------------------------------------------------------ sources


def cards(catalog: str) -> list[Card]:
    """The sources of a catalog in the order in which they are asked; nobody is called."""
    simulated = switchboard.state() or {}
    sources = status_of(catalog).sources
    return [_card(place, source, simulated) for place, source in enumerate(sources, start=1)]


def _card(place: int, source: SourceStatus, simulated: Mapping[str, Mapping[str, Any]]) -> Card:
    alias = source.config.alias
    facts = [_may_be_called(source), _cool_down(source), _rate(source), _running(source), _calls(source)]
    row = simulated.get(alias) if _is_simulated(source.config) else None
    if row is None:
        return Card(alias, place, _breaker(source), tuple(facts))
    counted = ngettext("%(count)s call since the last reset", "%(count)s calls since the last reset", row["calls"]) % {
        "count": row["calls"]
    }
    facts.append(Fact(f"{alias}.counted", _("Counted by the catalog"), counted))
    fault = row["fault"]
    words = fault_words(fault)
    return Card(
        alias,
        place,
        _breaker(source),
        tuple(facts),
        fault=Fact(f"{alias}.fault", _("Now"), str(words.label), "good" if fault == "ok" else "busy"),
        effect=Fact(f"{alias}.effect", "", str(words.effect)),
        form=FaultForm(initial={"source": alias, "fault": fault}, auto_id=f"id_{alias}_%s", label_suffix=""),
    )


def _is_simulated(config: SourceConfig) -> bool:
    return config.alias in CATALOGS and (config.url or "").startswith(switchboard.address("/"))


def _breaker(source: SourceStatus) -> Fact:
    key, label = f"{source.config.alias}.breaker", _("Circuit breaker")
    match source.guard.state:
        case BreakerState.OPEN:
            return Fact(key, label, _("open: left alone"), "bad")
        case BreakerState.HALF_OPEN:
            return Fact(key, label, _("half-open: one call may try"), "busy")
        case BreakerState.ISOLATED:
            return Fact(key, label, _("isolated by an operator"), "bad")
    return Fact(key, label, _("closed: in use"), "good")


def _may_be_called(source: SourceStatus) -> Fact:
    key, label, refusal = f"{source.config.alias}.may", _("May be called now"), source.guard.refusal
    if refusal is None:
        return Fact(key, label, _("yes"), "good")
    why = reason_words(refusal.reason)
    if refusal.retry_after is None:
        return Fact(key, label, why, "bad")
    wait = {"why": why, "seconds": seconds_words(refusal.retry_after)}
    return Fact(key, label, _("%(why)s; again in %(seconds)s") % wait, "bad")


def _cool_down(source: SourceStatus) -> Fact:
    key, label, cool_down = f"{source.config.alias}.cool", _("Cool-down"), source.guard.cool_down
    if cool_down is None or not cool_down.retry_after:
        return Fact(key, label, _("none asked for"))
    return Fact(key, label, _("another %(seconds)s") % {"seconds": seconds_words(cool_down.retry_after)}, "busy")


def _rate(source: SourceStatus) -> Fact:
    key, label, limit = f"{source.config.alias}.rate", _("Rate limit"), source.config.rate_limit
    left = source.guard.calls_left
    if limit is None or left is None:
        return Fact(key, label, _("none set"))
    numbers = {"left": left, "calls": limit.calls, "seconds": seconds_words(limit.per)}
    text = _("%(left)s of %(calls)s calls in %(seconds)s left") % numbers
    return Fact(key, label, text, "quiet" if left else "bad")


def _running(source: SourceStatus) -> Fact:
    numbers = {"running": source.guard.in_use, "most": source.config.max_concurrent}
    text = _("%(running)s of %(most)s at most") % numbers
    return Fact(f"{source.config.alias}.running", _("Calls running"), text)


def _calls(source: SourceStatus) -> Fact:
    figures = source.figures
    key, label = f"{source.config.alias}.calls", _("Last five minutes")
    median = figures.percentile(50)
    if not figures.calls or median is None:
        return Fact(key, label, _("no call"))
    numbers = {"calls": figures.calls, "failures": figures.failures, "median": seconds_words(median)}
    text = ngettext(
        "%(calls)s call, %(failures)s without an answer; half of them within %(median)s",
        "%(calls)s calls, %(failures)s without an answer; half of them within %(median)s",
        figures.calls,
    )
    return Fact(key, label, text % numbers, "busy" if figures.failures else "quiet")


# ------------------------------------------------------------------------------------------------ the kept answer


def kept(item_id: str, catalog: str) -> list[Fact]:
    """What a look-up would meet now: stop list and kept answer. Raises InvalidItemID and UnknownCatalog."""
    explanation = explain_item(item_id, catalog=catalog)
    return [_stop_list(explanation.is_stopped), *_entry(explanation.entry, is_stopped=bool(explanation.is_stopped))]


def _stop_list(is_stopped: bool | None) -> Fact:
    key, label = "item.stop", _("Stop list")
    if is_stopped is None:
        return Fact(key, label, _("could not be asked"), "bad")
    return Fact(key, label, _("stopped") if is_stopped else _("not on it"), "bad" if is_stopped else "good")


def _entry(entry: Lookup | None, *, is_stopped: bool) -> Iterator[Fact]:
    if entry is None or entry.expires_at is None or is_stopped:
        yield Fact("item.entry", _("Kept answer"), _("none that is fresh"))
        yield Fact("item.fresh", _("Fresh until"), "–")
        nobody = _("nobody: it is withdrawn")
        yield Fact("item.next", _("The next look-up asks"), nobody if is_stopped else _("the catalogs, in order"))
        return
    words = {"state": STATES[entry.state].badge, "source": entry.source or "–"}
    yield Fact("item.entry", _("Kept answer"), _("%(state)s, from %(source)s") % words, "good")
    left = entry.expires_at.timestamp() - clock.wall()
    until = {"moment": moment_words(entry.expires_at), "seconds": seconds_words(max(0.0, left))}
    yield Fact("item.fresh", _("Fresh until"), _("%(moment)s, another %(seconds)s") % until)
    yield Fact("item.next", _("The next look-up asks"), _("nobody: the cache has it"), "good")
