"""``retry_unavailable_items``: can the lookups that nobody could answer be answered by now?"""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError

from catalog_fallback import conf
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.management.printing import catalog_or_exit, harmless_pipe
from catalog_fallback.retrying import Retried, retry


class Command(BaseCommand):
    """Exit codes: 0 all that was due is answered, 1 configuration or nothing done, 2 usage, 3 some are unanswered."""

    help = (
        "Make the lookups again that RETRY_LATER has noted and that are due. Several may run at once; each ends early "
        "when no source may be called. Run it every minute or so."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take which catalog, and how many."""
        parser.add_argument("--catalog", help="Alias of the catalog (default: all).")
        parser.add_argument("--limit", metavar="N", type=_count, help="At most N lookups of each catalog.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object a line.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Work through one catalog after the other, and say what became of how many."""
        results = []
        with harmless_pipe():
            for config in _chosen(options["catalog"]):
                result = _retried(config, options["limit"])
                results.append(result)
                self.stdout.write(_as_json(config, result) if options["json"] else _as_text(config, result))
        _exit(results)


def _chosen(alias: str | None) -> Iterable[CatalogConfig]:
    if alias is not None:
        return (catalog_or_exit(alias),)
    try:
        return conf.catalogs().values()
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from error


def _retried(config: CatalogConfig, limit: int | None) -> Retried:
    try:
        return retry(config, limit)
    except DatabaseError as error:
        raise CommandError(f"Catalog {config.alias}: the database failed ({type(error).__name__}).") from error


def _as_json(config: CatalogConfig, result: Retried) -> str:
    return json.dumps({"catalog": config.alias, **asdict(result)})


def _as_text(config: CatalogConfig, result: Retried) -> str:
    parts = [
        f"{result.found:,} found",
        f"{result.not_found:,} not found",
        f"{result.stopped:,} stopped",
        f"{result.unavailable:,} still unavailable",
    ]
    parts += [f"{result.given_up:,} given up"] if result.given_up else []
    parts += [f"{result.not_tried:,} put off"] if result.not_tried else []
    end = "; no source may be called now" if result.nobody_answers else ""
    parts += [f"{result.left:,} left"] if result.left else []
    return f"Catalog {config.alias}: {', '.join(parts)}{end}."


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} has to be a whole number above 0.")
    return int(text)


def _exit(results: Iterable[Retried]) -> None:
    results = list(results)
    unanswered = sum(result.unanswered for result in results)
    if unanswered:
        has_done_some = any(result.answered or result.given_up for result in results)
        raise CommandError(f"{unanswered:,} have no answer yet.", returncode=3 if has_done_some else 1)
