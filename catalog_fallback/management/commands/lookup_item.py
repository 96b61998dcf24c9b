"""``lookup_item``: what does the site know about this item, and where does it know it from?"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog_fallback import services
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.management import missing_tables
from catalog_fallback.management.printing import aligned, catalog_or_exit, harmless_pipe, plain
from catalog_fallback.results import Attempt, CacheStatus, Explanation, Lookup, State

#: Exit code of each state; with several IDs the highest counts.
EXIT_CODES = {State.FOUND: 0, State.NOT_FOUND: 4, State.UNAVAILABLE: 5, State.STOPPED: 6}

_MEANING = {
    State.FOUND: "found",
    State.NOT_FOUND: "not found: every source says that it has no such item",
    State.UNAVAILABLE: "unavailable: it could not be found out whether there is such an item",
    State.STOPPED: "stopped: the item is on the stop list and is not shown",
}
_CACHE = {
    CacheStatus.HIT: "hit: kept from an earlier answer, nobody was asked",
    CacheStatus.MISS: "miss: the cache had no answer",
    CacheStatus.STALE: "stale: expired, shown because nobody could answer",
}
#: The stop list has the last word, whatever the cache had.
_STOPPED_BY_DATABASE = "not used: the stop list in the database says so, and nobody was asked"
_WIDEST = 200


class Command(BaseCommand):
    """Exit codes: 0 found, 4 not found, 5 unavailable, 6 stopped; 1 configuration, 2 usage or an impossible ID."""

    help = (
        "Look items up and show the answer, where it comes from, and what each source said. Exit code: 0 found, "
        "4 not found, 5 unavailable, 6 stopped; of several the highest."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take one ID or more, and the arguments of find_item()."""
        parser.add_argument("item_ids", nargs="+", metavar="ID", help="IDs to look up.")
        parser.add_argument("--catalog", default="default", help="Alias of the catalog (default: default).")
        parser.add_argument("--language", help="Language of the item (default: the catalog's LANGUAGE).")
        parser.add_argument(
            "--vary",
            metavar="NAME=VALUE",
            action="append",
            default=[],
            type=_pair,
            help="A name of the sources' URLs and its value; may be given several times.",
        )
        how = parser.add_mutually_exclusive_group()
        how.add_argument(
            "--explain", action="store_true", help="Say what a lookup would meet; ask nobody. Exit code 0."
        )
        how.add_argument("--refresh", action="store_true", help="Ask the sources even if the cache has an answer.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object a line.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check all IDs, then look up and print one by one."""
        config = catalog_or_exit(options["catalog"])
        try:
            item_ids = list(dict.fromkeys(config.clean_id(each) for each in options["item_ids"]))
        except InvalidItemID as error:
            raise CommandError(plain(error), returncode=2) from error
        question = {"catalog": config.alias, "language": options["language"], "vary": dict(options["vary"]) or None}
        code, between, is_unsure = 0, "", False
        with harmless_pipe():
            for text, one_code, has_stop_list in _answers(item_ids, question, options):
                code, is_unsure = max(code, one_code), is_unsure or not has_stop_list
                self.stdout.write(between + text)
                between = "" if options["json"] else "\n"
        if is_unsure and (hint := missing_tables.hint()):
            self.stderr.write(hint)
        if code:
            sys.exit(code)


def _pair(text: str) -> tuple[str, str]:
    name, is_there, value = text.partition("=")
    if not is_there:
        raise ArgumentTypeError(f"{text!r} has to be NAME=VALUE.")
    return name, value


def _answers(
    item_ids: Iterable[str], question: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[tuple[str, int, bool]]:
    """Yield what to print, the exit code, and whether the stop list could be asked, ID by ID."""
    for item_id in item_ids:
        try:
            if options["explain"]:
                explanation = services.explain_item(item_id, **question)
                text = _json(_plain_explanation(explanation)) if options["json"] else _explained(explanation)
                yield text, 0, explanation.is_stopped is not None
                continue
            lookup = services.find_item(item_id, refresh=options["refresh"], **question)
        except ValueError as error:  # a language that cannot be, a name that is missing or that no URL has
            raise CommandError(plain(error), returncode=2) from error
        text = _json(lookup.as_dict()) if options["json"] else _shown(lookup)
        yield text, EXIT_CODES[lookup.state], lookup.reason != "stop_list_unavailable"


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value)


def _shown(lookup: Lookup) -> str:
    """One lookup for people: the answer first, then where it is from, then who was asked."""
    parts = [_headed(lookup.item_id, lookup.catalog), aligned(_facts(lookup))]
    if lookup.item is not None:
        parts += [
            "",
            "  Item" + (" (fallback data of this site)" if lookup.degraded else ""),
            aligned(_item(lookup.item), "    "),
        ]
    if lookup.trace:
        rows = [("SOURCE", "OUTCOME", "REASON", "TIME", ""), *map(_attempt, lookup.trace)]
        parts += ["", "  Asked, in this order", aligned(rows, "    ")]
    return "\n".join(parts)


def _headed(item_id: str, catalog: str) -> str:
    return f"{plain(item_id)} in catalog {plain(catalog)}"


def _facts(lookup: Lookup) -> list[tuple[str, str]]:
    facts = [
        ("state", _MEANING[lookup.state]),
        ("reason", lookup.reason),
        ("cache", _cache(lookup)),
        ("source", lookup.source),
        ("fetched", _moment(lookup.fetched_at)),
        ("fresh until", _moment(lookup.expires_at)),
        ("try again in", None if lookup.retry_after is None else f"{lookup.retry_after:.0f} s"),
    ]
    return [(name, value) for name, value in facts if value is not None]


def _cache(lookup: Lookup) -> str:
    if lookup.is_stopped and lookup.cache is CacheStatus.MISS:
        return _STOPPED_BY_DATABASE
    return _CACHE[lookup.cache]


def _item(item: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(str(name), _short(value)) for name, value in item.items()] or [("", "(empty)")]


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _attempt(attempt: Attempt) -> tuple[str, ...]:
    time = f"{attempt.elapsed_ms:.1f} ms" if attempt.called else "-"
    return attempt.source, attempt.outcome, attempt.reason, time, "" if attempt.called else "not called"


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _explained(explanation: Explanation) -> str:
    stopped = {True: "yes", False: "no", None: "unknown: the database cannot be asked"}[explanation.is_stopped]
    kept = "nothing" if explanation.entry is None else _kept(explanation.entry)
    rows = [("SOURCE", "MAY BE CALLED", "REASON", "TRY AGAIN IN")]
    rows += [
        (
            each.source,
            "yes" if each.may_call else "no",
            each.reason,
            "-" if each.retry_after is None else f"{each.retry_after:.0f} s",
        )
        for each in explanation.sources
    ]
    return "\n".join(
        [
            _headed(explanation.item_id, explanation.catalog),
            aligned([("on the stop list", stopped), ("in the cache", kept)]),
            "",
            "  The sources, in the order in which they are asked",
            aligned(rows, "    "),
        ]
    )


def _kept(entry: Lookup) -> str:
    return f"{entry.state}, from {entry.source or 'all sources'}, fresh until {_moment(entry.expires_at)}"


def _plain_explanation(explanation: Explanation) -> dict[str, Any]:
    return {
        "item_id": explanation.item_id,
        "catalog": explanation.catalog,
        "is_stopped": explanation.is_stopped,
        "entry": None if explanation.entry is None else explanation.entry.as_dict(),
        "sources": [each._asdict() for each in explanation.sources],
    }
