"""What does the operations page say of a catalog? Whether its state is shared, how long a lookup may take, its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog_fallback.admin.measures import duration, icon_url
from catalog_fallback.admin.source_words import SourceRow, disabled_row, guard_row, source_row
from catalog_fallback.hit_counts import Answered
from catalog_fallback.status import CatalogStatus
from catalog_fallback.waits import Waits

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and what there is to say, with an icon where something is good or bad."""

    name: _StrPromise | str
    text: str
    icon: str = ""


@dataclass(frozen=True, slots=True)
class CatalogPart:
    """One catalog as the page shows it."""

    alias: str
    sharing: Fact
    facts: tuple[Fact, ...]
    rows: tuple[SourceRow, ...]
    guards: tuple[SourceRow, ...]


def catalog_part(status: CatalogStatus) -> CatalogPart:
    """Return what is said of one catalog."""
    longest = dict(status.waits.calls)
    rows = [source_row(each, longest[each.config.alias]) for each in status.sources]
    out = {row.source: row for row in status.disabled_rows}
    rows += [disabled_row(source.alias, out.get(source.alias)) for source in status.disabled]
    guards = tuple(guard_row(each.config, each.guard) for each in status.guards)
    return CatalogPart(status.config.alias, _sharing(status), _facts(status), tuple(rows), guards)


def _sharing(status: CatalogStatus) -> Fact:
    cache, name = status.config.state_cache, gettext_lazy("State")
    if not status.answers:
        text = _("The cache “{cache}” does not answer: what is shown is what this process knows by itself.")
        return Fact(name, text.format(cache=cache), icon_url("icon-no.svg"))
    if status.is_shared:
        text = _("All processes share this state (cache “{cache}”).")
        return Fact(name, text.format(cache=cache), icon_url("icon-yes.svg"))
    text = _(
        "Each process has a state of its own, because the cache “{cache}” is not shared. This is the state of the "
        "process that made this page; when you load it again, another one may answer."
    )
    return Fact(name, text.format(cache=cache), icon_url("icon-alert.svg"))


def _facts(status: CatalogStatus) -> tuple[Fact, ...]:
    return (
        Fact(gettext_lazy("Answered by the cache"), _hits(status.answered)),
        Fact(gettext_lazy("Budget of a lookup"), duration(status.waits.budget)),
        Fact(gettext_lazy("Longest wait of a lookup"), _longest(status.waits)),
        _web_server(status.waits),
    )


def _hits(answered: Answered) -> str:
    if answered.percent is None:
        return _("no lookups in the last 5 minutes")
    percent, count = number_format(answered.percent), number_format(answered.lookups, force_grouping=True)
    share = _("{number} %").format(number=percent)
    return _("{share} of {count} lookups in the last 5 minutes").format(share=share, count=count)


def _longest(waits: Waits) -> str:
    longest = duration(waits.lookup)
    if not waits.is_cut:
        return longest
    text = _("{longest} (cut by the budget; all calls together could take {calls})")
    return text.format(longest=longest, calls=duration(waits.all_calls))


def _web_server(waits: Waits) -> Fact:
    name, outer = gettext_lazy("The web server waits"), duration(waits.outer)
    if waits.fits:
        return Fact(name, _("{outer}: long enough for one lookup").format(outer=outer))
    text = _("{outer}: too short for one lookup (OUTER_TIMEOUT)")
    return Fact(name, text.format(outer=outer), icon_url("icon-no.svg"))
