"""``catalog_status``: how do the sources stand, who waits for how long, and what shall be done about a source?"""

from __future__ import annotations

import json
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError

from catalog_fallback import conf, operating
from catalog_fallback.management import missing_tables
from catalog_fallback.management.printing import catalog_or_exit, harmless_pipe, plain
from catalog_fallback.management.status_text import shown
from catalog_fallback.operating import UnknownSource
from catalog_fallback.status import overview
from catalog_fallback.status_values import catalog_values

VERBS = ("isolate", "restore", "reset")
#: What was done, and why nothing was, for people.
_DONE = {
    "isolate": "isolated: nobody calls it until it is restored",
    "restore": "restored",
    "reset": "reset: its breaker is closed and counts anew",
}
_NOTHING = {"restore": "it is not isolated", "reset": "the cache did not take it"}


class Command(BaseCommand):
    """Exit codes: 0 done, 1 configuration or nothing done, 2 usage."""

    help = (
        "Show the state of all sources: breaker, calls and failures of the last minutes, limits, and how long a lookup "
        "may take. Or take a source out (--isolate), let it in again (--restore), close its breaker (--reset)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take at most one verb."""
        parser.add_argument("--catalog", help="Alias of the catalog (default: all; needed where a source is in two).")
        verb = parser.add_mutually_exclusive_group()
        verb.add_argument("--isolate", metavar="SOURCE", help="Take the source out: nobody calls it any more.")
        verb.add_argument("--restore", metavar="SOURCE", help="Let an isolated source in again.")
        verb.add_argument("--reset", metavar="SOURCE", help="Close the circuit breaker of the source.")
        parser.add_argument("--reason", help="Why, for whoever reads it later (with --isolate).")
        parser.add_argument("--json", action="store_true", help="Print one JSON object a line.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what is asked for, or show what there is."""
        verb = next((each for each in VERBS if options[each] is not None), None)
        if options["reason"] is not None and verb != "isolate":
            raise CommandError("--reason goes with --isolate.", returncode=2)
        catalogs = [catalog_or_exit(options["catalog"]).alias] if options["catalog"] is not None else _all_catalogs()
        if verb is None:
            self._show(catalogs, as_json=options["json"])
        else:
            self._operate(verb, options[verb], catalogs, options)

    def _show(self, catalogs: list[str], *, as_json: bool) -> None:
        found = overview(catalogs)
        answers, between = found.database_answers, ""
        with harmless_pipe():
            for status in found.catalogs:
                values = {**catalog_values(status), "database_answers": answers}
                text = json.dumps(values) if as_json else between + shown(status, database_answers=answers)
                self.stdout.write(text)
                between = "\n"
        if not answers and (hint := missing_tables.hint()):
            self.stderr.write(hint)

    def _operate(self, verb: str, source: str, catalogs: list[str], options: dict[str, Any]) -> None:
        catalog = _catalog_of(source, catalogs)
        try:
            is_done = _carry_out(verb, catalog, source, options["reason"] or "")
        except UnknownSource as error:
            raise CommandError(plain(error)) from error
        except DatabaseError as error:
            message = f"Nothing was done: the database raised {type(error).__name__}. {missing_tables.hint()}"
            raise CommandError(message.strip()) from error
        if not is_done:
            raise CommandError(f"Nothing was done to source {plain(source)} of catalog {catalog}: {_NOTHING[verb]}.")
        done = {"catalog": catalog, "source": source, "action": verb, "done": True}
        text = f"Catalog {catalog}: source {source} is {_DONE[verb]}."
        with harmless_pipe():
            self.stdout.write(json.dumps(done) if options["json"] else plain(text))


def _carry_out(verb: str, catalog: str, source: str, reason: str) -> bool:
    """Call the service; isolating what is isolated already is done, too."""
    match verb:
        case "isolate":
            operating.isolate_source(catalog, source, reason)
            return True
        case "restore":
            return operating.restore_source(catalog, source)
        case _:
            return operating.reset_source(catalog, source)


def _all_catalogs() -> list[str]:
    try:
        return list(conf.catalogs())
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from error


def _catalog_of(source: str, catalogs: list[str]) -> str:
    """Return the one catalog that has the source; with none of them, the first is to say so."""
    having = [alias for alias in catalogs if any(each.alias == source for each in conf.catalog(alias).all_sources)]
    if len(having) > 1:
        message = f"Source {plain(source)} is in several catalogs ({', '.join(having)}): say which with --catalog."
        raise CommandError(message, returncode=2)
    if not having and len(catalogs) > 1:
        raise CommandError(f"No catalog has a source {plain(source)}.")
    return (having or catalogs)[0]
